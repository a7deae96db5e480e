/* aidge_onnx reads '/', '.' and ':' in names as '_', drops a leading '_' and puts "data_" before a
 * digit; names that are the same then it takes for one, and computes something else. Of values
 * whose names would clash all but one get others. What goes in and out is first to keep its name.
 * Nodes and constants share names there. */
#include "passes/edit.h"

#include <string.h>

typedef struct Names {
    Module *m;
    Diags *d;
    UniqueNames *unique;
    Map *values, *nodes; /* as they are read: who has it */
} Names;

static bool is_mark(char c) {
    return c == '/' || c == '.' || c == ':' || c == '_';
}

static Str as_read(Arena *a, Str name) {
    Buf b = buf_new(a);
    size_t i = name.n && is_mark(name.s[0]);
    if (name.n > i && name.s[i] >= '0' && name.s[i] <= '9')
        buf_text(&b, "data_");
    for (; i < name.n; i++)
        buf_byte(&b, is_mark(name.s[i]) ? '_' : (uint8_t)name.s[i]);
    return buf_as_str(&b);
}

static Str claim(Names *s, Map *used, Str name, const void *who) {
    Str now = name;
    for (;;) {
        Str read = as_read(s->m->arena, now);
        const void *has = map_get(used, read);
        if (has == who)
            return now;
        if (!has) {
            map_set(used, read, (void *)who);
            return now;
        }
        now = unique_name(s->unique, name);
    }
}

/* Inputs and outputs keep their names, even where Aidge takes two of them for one. */
static bool is_interface(const Names *s, const Value *v) {
    return v->graph == s->m->graph && (v->kind == VALUE_INPUT || value_is_output(v));
}

static void name_value(Value *v, void *ctx) {
    Names *s = ctx;
    if (is_interface(s, v))
        return;
    v->name = claim(s, s->values, v->name, v);
    if (v->kind == VALUE_CONST)
        v->name = claim(s, s->nodes, v->name, v);
}

static void name_interface(Names *s, const Value *v) {
    Str read = as_read(s->m->arena, v->name);
    const Value *has = map_get(s->values, read);
    if (has && has != v)
        diag_warning(s->d, v->loc, "Aidge takes '%s' and '%s' for one, as it reads both as '%s'",
                     diag_name(s->d, has->name), diag_name(s->d, v->name), diag_name(s->d, read));
    else
        map_set(s->values, read, (void *)v);
}

static void name_nodes(Graph *g, void *ctx) {
    Names *s = ctx;
    FOR_NODES(n, g)
    if (n->name.n)
        n->name = claim(s, s->nodes, n->name, n);
}

bool pass_aidge_names(Module *m, PassContext *c) {
    Names s = {m, c->d, unique_names_new(m), map_new(m->scratch), map_new(m->scratch)};
    for (size_t i = 0; i < m->graph->n_in; i++)
        name_interface(&s, m->graph->in[i]);
    for (size_t i = 0; i < m->graph->n_out; i++)
        name_interface(&s, m->graph->out[i]);
    module_each_value(m, name_value, &s);
    module_each_graph(m, name_nodes, &s);
    return true;
}
