/* From a module to a program. See exec/exec.h. */
#include "exec/binder.h"
#include "exec/memory.h"
#include "exec/order.h"
#include "exec/specialise.h"
#include "ir/ops/op.h"

/* A view lies where the buffer it views lies. */
static void place_views(Program *p) {
    for (size_t i = 0; i < p->n_buffers; i++) {
        const Buffer *root = &p->buffers[program_root(p, (int)i)];
        p->buffers[i].kind = root->kind;
        p->buffers[i].port = root->port;
    }
}

Program *program_build(Module *m, const ProgramOptions *o, Diags *d) {
    if (!module_check_static(m, d) || !module_refine(m, d) || !module_verify(m, d))
        return NULL;
    Arena *a = m->arena;
    Graph *g = m->graph;
    Binder *b = binder_new(a, m, o, d);
    Program *p = binder_program(b);
    p->inputs = NEW_ARRAY(a, int, g->n_in);
    p->outputs = NEW_ARRAY(a, int, g->n_out);
    for (size_t i = 0; i < g->n_in; i++)
        if (!g->in[i]->data)
            bind_input(b, g->in[i], (int)p->n_inputs++);
    bind_graph(b, g);
    if (!binder_finish(b))
        return NULL;
    for (size_t i = 0; i < g->n_out; i++)
        bind_output(b, g->out[i], (int)p->n_outputs++);
    if (!binder_finish(b))
        return NULL;
    place_views(p);
    p->arena_alive = program_alive(a, p);
    if (!o || (!o->keep_all && !o->observed)) {
        program_order(a, p);
        size_t alive = program_alive(a, p);
        p->arena_alive = alive < p->arena_alive ? alive : p->arena_alive;
    }
    program_plan(a, p, o && o->keep_all);
    return p;
}
