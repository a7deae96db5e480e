/* From a module to a program. See exec/exec.h. */
#include "exec/build.h"
#include "exec/bands.h"
#include "exec/const_calls.h"
#include "exec/dead.h"
#include "exec/evaluate.h"
#include "exec/memory.h"
#include "exec/order.h"
#include "exec/partial.h"
#include "exec/specialise.h"
#include "exec/tables.h"
#include "ir/ops/bind_node.h"
#include "program/foreign.h"
#include "program/split.h"

/* A view lies where the buffer it views lies, which may have become a constant since. */
static void place_views(Program *p) {
    for (size_t i = 0; i < p->n_buffers; i++) {
        const Buffer *root = &p->buffers[program_root(p, (int)i)];
        p->buffers[i].kind = root->kind;
        p->buffers[i].port = root->port;
        p->buffers[i].data = root->data;
    }
}

/* From here on they are buffers like others, but for how long they live (exec/memory.c). */
static void take_ports_in(Program *p) {
    p->ports_in_arena = true;
    for (size_t i = 0; i < p->n_inputs; i++)
        p->buffers[program_root(p, p->inputs[i])].kind = BUF_ARENA;
    for (size_t i = 0; i < p->n_outputs; i++)
        p->buffers[program_root(p, p->outputs[i])].kind = BUF_ARENA;
}

static Arena *arena_of(const Module *m, const ProgramOptions *o) {
    return o && o->arena ? o->arena : m->arena;
}

/* Binds all but the outputs; a partial program where `left_out` is given. */
static Binder *bind_module(Module *m, const ProgramOptions *o, LeftOut *left_out, Diags *d) {
    Graph *g = m->graph;
    Arena *a = arena_of(m, o);
    Binder *b = binder_new(a, m, o, d);
    Program *p = b->program;
    p->inputs = NEW_ARRAY(a, int, g->n_in);
    p->outputs = NEW_ARRAY(a, int, 2 * g->n_out);
    p->yields = NEW_ARRAY(a, const Value *, 2 * g->n_out);
    p->count_of = NEW_ARRAY(a, int, g->n_out);
    for (size_t i = 0; i < g->n_out; i++)
        p->count_of[i] = -1;
    p->left_out = left_out;
    for (size_t i = 0; i < g->n_in; i++)
        if (!g->in[i]->data)
            bind_input(b, g->in[i], (int)p->n_inputs++);
    if (left_out)
        bind_partly(b, g);
    else
        bind_graph(b, g);
    return b;
}

/* Again as long as more turns out not to run. */
static Binder *bind_partial(Module *m, const ProgramOptions *o, Diags *d) {
    Arena *a = arena_of(m, o);
    LeftOut *left_out = NEW(a, LeftOut);
    *left_out = (LeftOut){.why = NEW_ARRAY(a, Rejection *, m->n_nodes)};
    for (;;) {
        Binder *b = bind_module(m, o, left_out, d);
        if (b->failed || map_size(b->rejected) == 0) {
            partial_count(b->program);
            return b;
        }
    }
}

/* Once, where several have as many. */
void program_count_output(Binder *b, size_t i, int length) {
    Program *p = b->program;
    p->count_of[i] = p->buffers[length].port;
    if (p->buffers[length].kind != BUF_ARENA)
        return;
    Value *count = NEW(b->arena, Value);
    count->name = arena_strf(b->arena, STR_FMT "_count", STR_ARG(p->yields[i]->name));
    count->type = type_fixed(b->arena, ELEM_INT64, 0, NULL);
    p->count_of[i] = (int)p->n_outputs;
    p->buffers[length].kind = BUF_OUTPUT;
    p->buffers[length].port = (int)p->n_outputs;
    p->yields[p->n_outputs] = count;
    p->outputs[p->n_outputs++] = length;
}

/* How many elements an output has goes out, too. */
static void count_output(Binder *b, const Graph *g, size_t i) {
    Program *p = b->program;
    bool stated = type_is_static(g->out[i]->type); /* each run is held against that */
    const Counted *c = p->outputs[i] >= 0 && !stated ? program_counted(p, g->out[i]) : NULL;
    if (c && (p->buffers[c->count].kind == BUF_ARENA || p->buffers[c->count].kind == BUF_OUTPUT))
        program_count_output(b, i, c->count);
}

static void bind_outputs(Binder *b, const Graph *g) {
    Program *p = b->program;
    for (size_t i = 0; i < g->n_out; i++) {
        int port = (int)p->n_outputs++;
        p->yields[port] = g->out[i];
        if (program_left_out(p, g->out[i]))
            p->outputs[port] = -1;
        else
            bind_output(b, g->out[i], port);
    }
    for (size_t i = 0; i < g->n_out && !p->n_bounds; i++)
        count_output(b, g, i);
}

/* Of what runs here and is not written nobody looks for a better order below this many bytes. */
enum { WORTH_ORDERING = 64 << 20 };

Binder *program_bind(Module *m, const ProgramOptions *o, Diags *d) {
    if (!module_check_runnable(m, d))
        return NULL;
    bool partial = o && o->partial;
    Binder *b = partial ? bind_partial(m, o, d) : bind_module(m, o, NULL, d);
    Program *p = b->program;
    if (partial && b->failed)
        return NULL; /* a fault was reported */
    if (partial && p->left_out->n && !partial_is_useful(p) && !module_is_open(m)) {
        b = bind_module(m, o, NULL, d); /* fails, and says what cannot run */
        p = b->program;
    }
    if (!binder_finish(b))
        return NULL;
    bind_outputs(b, m->graph);
    return binder_finish(b) ? b : NULL;
}

void program_place(Program *p, const ProgramOptions *o) {
    Arena *a = arena_of(p->module, o);
    program_align(a, p);
    if (!o || (!o->keep_all && !o->observed))
        program_run_consts(a, p);
    if (o && o->ports_in_arena)
        take_ports_in(p);
    place_views(p);
    if (!o || (!o->keep_all && !o->observed)) {
        program_make_tables(a, p);
        program_drop_dead(a, p);
    }
    if (o && o->foreign)
        program_call_foreign(a, p, o->foreign);
    if (o && o->threads > 1)
        program_split(a, p, &(Splitting){.parts = o->threads, .worth = WORTH_WAKING});
    if (o && o->run_parts > 1)
        program_split(a, p,
                      &(Splitting){.parts = o->run_parts, .worth = WORTH_MAKING, .grown = true});
    p->arena_alive = program_alive(a, p);
    bool least = o && o->least_arena, kept = o && (o->keep_all || o->observed);
    if (!kept && (least || p->arena_alive > WORTH_ORDERING)) {
        program_order(a, p);
        size_t alive = program_alive(a, p);
        p->arena_alive = alive < p->arena_alive ? alive : p->arena_alive;
    }
    if (!kept && o && o->bands)
        program_band(a, p, o->bands == BANDS_CHAINS, o->enough_arena);
    program_plan(a, p, o && o->keep_all, least, o ? o->enough_arena : 0);
}

Program *program_build(Module *m, const ProgramOptions *o, Diags *d) {
    Binder *b = program_bind(m, o, d);
    if (b)
        program_place(b->program, o);
    return b ? b->program : NULL;
}
