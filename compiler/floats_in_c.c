#include "compiler/floats_in_c.h"
#include "backend/c/c.h"

typedef struct Note {
    Job *j;
    const Program *p;
} Note;

static void note_graph(Graph *g, void *ctx) {
    const Note *t = ctx;
    FOR_NODES(n, g)
    if (t->j->c_floats[n->id])
        pass_remark(&t->j->ctx, n, "%s", c_why_float(t->p, n)); /* the first reason stands */
}

static void look_for_integers(Value *v, void *ctx) {
    bool *found = ctx;
    *found = *found || type_is_quantized(v->type);
}

void find_floats(Job *j, const Program *p) {
    CFloats f = c_floats(p);
    bool integers = false;
    module_each_value(p->module, look_for_integers, &integers);
    j->c_floats = f.is;
    j->n_c_floats = f.n;
    j->c_converts = f.converts;
    j->c_all_float = f.n && !integers;
    for (size_t i = 0; i < p->module->n_nodes; i++) {
        j->n_c_mixed += p->converted[i] != 0;
        j->c_converted += p->converted[i];
    }
}

void note_floats(Job *j, const Program *p) {
    if (!j->c_all_float)
        module_each_graph(p->module, note_graph, &(Note){j, p});
}
