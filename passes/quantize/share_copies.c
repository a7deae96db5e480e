/* Readers of one constant get copies of it where they decide on their own, so that each can be
 * rounded for what it computes. Copies that came out alike are one again. Constants that the model
 * itself brings twice stay. */
#include "passes/edit.h"
#include "passes/quant_build.h"

typedef struct Share {
    Module *m;
    Uses *uses;
    Map *copies; /* graph and name of what they were made of -> the last Copy */
    bool any;
} Share;

typedef struct Copy {
    Value *v;
    const struct Copy *before;
} Copy;

/* Where the value was made of a constant. */
static Str key_of(const Share *s, const Value *v) {
    Buf key = buf_new(s->m->scratch);
    if (v->kind != VALUE_CONST || !v->data || !v->from.n || v->from.from[0].op.n)
        return STR_NONE;
    buf_put(&key, &v->graph, sizeof v->graph);
    buf_fmt(&key, STR_FMT, STR_ARG(v->from.from[0].name));
    return buf_as_str(&key);
}

static void look(Value *v, void *ctx) {
    Share *s = ctx;
    Str key = key_of(s, v);
    const Copy *last = key.n ? map_get(s->copies, key) : NULL;
    for (const Copy *c = last; c; c = c->before)
        if (const_is_same(c->v, v->type, v->data)) {
            value_replace(s->m, s->uses, v, c->v);
            s->any = true;
            return;
        }
    if (!key.n)
        return;
    Copy *copy = NEW(s->m->scratch, Copy);
    *copy = (Copy){v, last};
    map_set(s->copies, key, copy);
}

bool pass_share_copies(Module *m, PassContext *c) {
    (void)c;
    Share s = {.m = m, .uses = uses_new(m), .copies = map_new(m->scratch)};
    module_each_value(m, look, &s);
    if (s.any) {
        edit_sweep(m);
        drop_unused_quants(m);
    }
    return true;
}
