/* See compiler/lost_marks.h. */
#include "compiler/lost_marks.h"

#include "passes/edit.h"

struct Marks {
    Arena *arena;
    Value **values; /* that are marked and whose type is written */
    size_t n, cap;
    Map *holders; /* by the quantization: how many values had it */
};

typedef struct Present {
    Map *values, *holders;
    Arena *arena;
} Present;

static size_t *count_of(Map *holders, const Quant *q, Arena *a) {
    size_t *n = map_get_at(holders, q);
    if (!n) {
        n = NEW(a, size_t);
        map_set_at(holders, q, n);
    }
    return n;
}

static void note(Value *v, void *ctx) {
    Marks *m = ctx;
    const Quant *q = edit_tilde(v);
    if (!q || q->kind != QUANT_UNKNOWN || !q->storage)
        return;
    ARENA_PUSH(m->arena, m->values, m->n, m->cap, v);
    ++*count_of(m->holders, q, m->arena);
}

Marks *marks_note(Module *m) {
    Marks *marks = NEW(m->arena, Marks);
    *marks = (Marks){.arena = m->arena, .holders = map_new(m->arena)};
    module_each_value(m, note, marks);
    return marks;
}

static void look(Value *v, void *ctx) {
    Present *p = ctx;
    map_set_at(p->values, v, v);
    if (edit_tilde(v))
        ++*count_of(p->holders, v->type.quant, p->arena);
}

/* What its node gives now has the same, or another value that took its place. */
static bool is_lost(const Marks *m, const Present *p, const Value *v) {
    const Quant *q = v->type.quant;
    const Value *now = v->def && v->def->n_out ? v->def->out[0] : NULL;
    if (map_get_at(p->values, v) || (now && map_get_at(p->values, now) && edit_tilde(now) == q))
        return false;
    return *count_of(p->holders, q, p->arena) < *count_of(m->holders, q, m->arena);
}

void warn_of_lost_marks(const Marks *marks, Module *m, Diags *d) {
    enum { NAMED = 4 };
    Present p = {map_new(m->arena), map_new(m->arena), m->arena};
    Buf names = buf_new(m->arena);
    const Value *first = NULL;
    size_t n = 0;
    module_each_value(m, look, &p);
    for (size_t i = 0; i < marks->n; i++) {
        const Value *v = marks->values[i];
        if (!is_lost(marks, &p, v))
            continue;
        first = first ? first : v;
        if (n++ < NAMED)
            buf_fmt(&names, "%s'%s'", n > 1 ? ", " : "", diag_name(d, v->name));
    }
    if (n)
        diag_warning(d, first->loc,
                     "with data the nodes around " STR_FMT "%s become one, and what ~ says of %s "
                     "goes; without -calib, from lines `stat`, -form=fake keeps it",
                     STR_ARG(buf_as_str(&names)),
                     n > NAMED ? arena_others(m->arena, " and ", n - NAMED, "") : "",
                     n > 1 ? "them" : "it");
}
