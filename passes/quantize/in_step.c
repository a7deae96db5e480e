/* See passes/quantize/in_step.h. */
#include "passes/quantize/in_step.h"
#include "passes/quantize/output_errors.h"

enum { KEPT_MOST = 256 << 20 }; /* bytes of values that are kept at a time */

/* A value that parts behind read. */
typedef struct Kept {
    uint8_t *side[SIDES]; /* [samples, each]; the same memory of both for inputs of the graph; NULL:
                             it is not there */
    size_t each;          /* bytes */
} Kept;

/* Memory that a value had and none has now. */
typedef struct Spare {
    uint8_t *bytes;
    size_t n;
} Spare;

struct InStep {
    Module *m;
    PassContext *c;
    Arena *arena;
    Diags *mute;
    size_t n_values, n_samples;
    Kept *kept; /* by value id */
    Spare *spare;
    size_t n_spare, cap_spare;
    size_t *last;    /* by value id: the place of the last node that reads it, 0: none */
    size_t *place;   /* by node id, from 1 */
    Value ***first;  /* by node id: the operands in the beginning, */
    size_t *n_first; /* and how many there were */
    const Node *at;  /* the next to run */
    Value **copy;    /* by value id: what it is in the part that is made at the time */
    const Value **copied;
    size_t n_copied, cap_copied;
};

/* ---- whether it can be done ---- */

static bool is_plain(const Value *v) {
    size_t count;
    return !v || v->data ||
           (v->type.kind == TYPE_TENSOR && v->type.elem != ELEM_STRING &&
            type_count(v->type, &count) && !value_is_counted(v));
}

const char *in_step_why_not(Module *m, const PassContext *c) {
    if (c->on_grids)
        return "types of the model round, too";
    FOR_NODES(n, m->graph) {
        if (has_bodies(n))
            return "it has branches or loops";
        if (!n->def || !n->def->bind || n->faulty)
            return "an operator cannot run";
        for (size_t i = 0; i < n->n_in; i++)
            if (!is_plain(n->in[i]))
                return "shapes depend on data";
        for (size_t i = 0; i < n->n_out; i++)
            if (!is_plain(n->out[i]))
                return "shapes depend on data";
    }
    return NULL;
}

/* ---- values ---- */

static size_t bytes_of(const Value *v) {
    size_t count = 0;
    type_count(v->type, &count);
    return elem_bytes(v->type.elem, count);
}

/* Values of a network have few sizes, and memory that was used once has its pages. */
static uint8_t *take_memory(InStep *s, size_t bytes) {
    for (size_t i = 0; i < s->n_spare; i++) {
        Spare found = s->spare[i];
        if (found.n < bytes || found.n / 2 > bytes)
            continue;
        s->spare[i] = s->spare[--s->n_spare];
        return found.bytes;
    }
    return arena_alloc(s->arena, bytes + 1);
}

static void keep(InStep *s, const Value *v, bool both) {
    Kept *k = &s->kept[v->id];
    k->each = bytes_of(v);
    for (int side = 0; side < SIDES; side++)
        k->side[side] = side && both ? k->side[0] : take_memory(s, s->n_samples * k->each);
}

static void drop(InStep *s, Kept *k) {
    for (int side = 0; side < SIDES; side++) {
        Spare freed = {k->side[side], s->n_samples * k->each};
        if (!side || freed.bytes != k->side[0])
            ARENA_PUSH(s->arena, s->spare, s->n_spare, s->cap_spare, freed);
    }
    *k = (Kept){0};
}

/* What nobody reads from `place` on. */
static void drop_read(InStep *s, size_t place) {
    for (size_t i = 0; i < s->n_values; i++)
        if (s->kept[i].side[0] && s->last[i] < place)
            drop(s, &s->kept[i]);
}

static void find_places(InStep *s, const Node *last) {
    size_t place = 0;
    FOR_NODES(n, s->m->graph) {
        s->place[n->id] = ++place;
        s->first[n->id] = arena_copy(s->arena, n->in, n->n_in * sizeof *n->in);
        s->n_first[n->id] = n->n_in;
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i])
                s->last[n->in[i]->id] = place;
        if (n == last)
            return;
    }
}

/* Bytes of a sample that are kept at one time, were each node a part. */
static size_t most_bytes(const InStep *s) {
    const Graph *g = s->m->graph;
    size_t *gone = NEW_ARRAY(s->arena, size_t, s->m->n_nodes + 2), now = 0, most = 1;
    for (size_t i = 0; i < g->n_in; i++)
        if (!g->in[i]->data) {
            now += bytes_of(g->in[i]);
            gone[s->last[g->in[i]->id]] += bytes_of(g->in[i]);
        }
    FOR_NODES(n, s->m->graph) {
        size_t place = s->place[n->id];
        for (size_t i = 0; i < n->n_out && place; i++)
            if (n->out[i] && s->last[n->out[i]->id]) {
                now += SIDES * bytes_of(n->out[i]);
                gone[s->last[n->out[i]->id]] += SIDES * bytes_of(n->out[i]);
            }
        most = now > most ? now : most;
        now -= place ? gone[place] : 0;
    }
    return most;
}

/* ---- samples ---- */

static bool load(InStep *s, Samples *from, size_t total, bool hold_back) {
    const Graph *g = s->m->graph;
    void **to = NEW_ARRAY(s->arena, void *, g->n_in + 1);
    size_t held = hold_back ? OUTPUT_SAMPLES : 0, left = total - held, taken = 0;
    for (size_t i = 0, free = 0; i < total && taken < s->n_samples; i++) {
        bool is_held = hold_back && output_sample_chosen(i, OUTPUT_SAMPLES, total);
        free += !is_held;
        bool takes =
            !is_held && (!s->c->n_data || output_sample_chosen(free - 1, s->n_samples, left));
        size_t port = 0;
        for (size_t k = 0; k < g->n_in; k++)
            if (!g->in[k]->data)
                to[port++] = s->kept[g->in[k]->id].side[0] + taken * s->kept[g->in[k]->id].each;
        if (!(takes ? samples_next(from, to) : samples_skip(from)))
            return false;
        taken += takes;
    }
    s->n_samples = taken;
    return samples_ok(from);
}

static bool take_samples(InStep *s, size_t most, bool hold_back) {
    size_t total;
    Samples *from = pass_samples(s->m, s->c);
    if (!from)
        return false;
    if (!samples_count(from, &total)) {
        samples_close(from);
        return false;
    }
    size_t room = KEPT_MOST < arena_left(s->arena) / 4 ? KEPT_MOST : arena_left(s->arena) / 4;
    size_t fit = room / most_bytes(s);
    most = most < fit ? most : fit;
    hold_back = hold_back && output_holds_back(total) && s->c->n_data;
    size_t left = hold_back ? total - OUTPUT_SAMPLES : total;
    s->n_samples = left < most ? left : most;
    for (size_t i = 0; i < s->m->graph->n_in; i++)
        if (!s->m->graph->in[i]->data)
            keep(s, s->m->graph->in[i], true);
    bool ok = load(s, from, total, hold_back);
    samples_close(from);
    return ok;
}

InStep *in_step_new(Module *m, PassContext *c, const Node *last, size_t most, bool hold_back) {
    Arena *a = arena_scratch(m->arena);
    InStep *s = NEW(a, InStep);
    *s = (InStep){.m = m, .c = c, .arena = a, .n_values = m->n_values, .at = m->graph->first};
    s->mute = diags_new(a, NULL, false);
    s->kept = NEW_ARRAY(a, Kept, m->n_values);
    s->last = NEW_ARRAY(a, size_t, m->n_values);
    s->place = NEW_ARRAY(a, size_t, m->n_nodes);
    s->first = NEW_ARRAY(a, Value **, m->n_nodes);
    s->n_first = NEW_ARRAY(a, size_t, m->n_nodes);
    s->copy = NEW_ARRAY(a, Value *, m->n_values);
    find_places(s, last);
    if (take_samples(s, most, hold_back))
        return s;
    in_step_free(s);
    return NULL;
}

size_t in_step_samples(const InStep *s) {
    return s->n_samples;
}

void in_step_free(InStep *s) {
    arena_free(s->arena);
}

/* ---- a part ---- */

static void pair(InStep *s, const Value *v, Value *copy) {
    copy->loc = v->loc;
    s->copy[v->id] = copy;
    ARENA_PUSH(s->arena, s->copied, s->n_copied, s->cap_copied, v);
}

/* NULL: it was never kept. */
static Value *operand(InStep *s, Module *m, Value *v) {
    bool is_new = v->id >= s->n_values; /* made meanwhile, for one node */
    if (!is_new && s->copy[v->id])
        return s->copy[v->id];
    if (!v->data && (is_new || !s->kept[v->id].side[0]))
        return NULL;
    Value *copy = v->data ? graph_add_const(m->graph, v->name, v->type, v->data)
                          : graph_add_input(m->graph, v->name, v->type);
    if (!is_new)
        pair(s, v, copy);
    return copy;
}

static bool add_node(InStep *s, Module *m, Node *n, Side side) {
    Node *copy = node_like(m->graph, n);
    copy->name = n->name;
    copy->attrs = n->attrs;
    copy->n_attrs = n->n_attrs;
    copy->def = n->def;
    copy->typed = n->typed;
    for (size_t i = 0; i < n->n_in; i++) {
        Value *v = side == SIDE_NOW ? n->in[i] : i < s->n_first[n->id] ? s->first[n->id][i] : NULL;
        if (v && !(copy->in[i] = operand(s, m, v)))
            return false;
    }
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            pair(s, n->out[i], node_add_output(copy, i, n->out[i]->name, n->out[i]->type));
    graph_append(m->graph, copy);
    return node_infer(copy, s->mute);
}

/* Copies of the nodes up to `end`; what is read behind them are its outputs. */
static bool fill(InStep *s, Module *m, const Node *end, Side side) {
    s->n_copied = 0;
    memset(s->copy, 0, s->n_values * sizeof(Value *));
    for (Node *n = (Node *)s->at; n != end; n = n->next)
        if (!add_node(s, m, n, side))
            return false;
    for (size_t i = 0; i < s->n_copied; i++) {
        const Value *v = s->copied[i];
        if (s->copy[v->id]->kind == VALUE_NODE && s->last[v->id] >= s->place[end->id]) {
            graph_add_output(m->graph, s->copy[v->id]);
            if (!s->kept[v->id].side[0])
                keep(s, v, false);
        }
    }
    return true;
}

static bool run(const InStep *s, Runner *r, Side side) {
    for (size_t i = 0; i < s->n_samples; i++) {
        size_t in = 0, out = 0;
        for (size_t k = 0; k < s->n_copied; k++) {
            const Kept *from = &s->kept[s->copied[k]->id];
            if (s->copy[s->copied[k]->id]->kind == VALUE_INPUT)
                memcpy(runner_input(r, in++), from->side[side] + i * from->each, from->each);
        }
        if (!runner_run(r, s->mute))
            return false;
        for (size_t k = 0; k < s->n_copied; k++) {
            const Kept *to = &s->kept[s->copied[k]->id];
            if (to->side[0] && s->copy[s->copied[k]->id]->kind == VALUE_NODE)
                memcpy(to->side[side] + i * to->each, runner_output(r, out++), to->each);
        }
    }
    return true;
}

static bool run_side(InStep *s, const Node *end, Side side) {
    Module *m = module_like(arena_scratch(s->arena), s->m, s->mute);
    ProgramOptions options = {.ignore_quant = side == SIDE_FLOAT};
    bool ok = fill(s, m, end, side);
    const Program *p = ok && m->graph->n_out ? program_build(m, &options, s->mute) : NULL;
    ok = ok && (!m->graph->n_out || (p && run(s, runner_new(m->arena, p), side)));
    module_free(m);
    return ok;
}

bool in_step_to(InStep *s, const Node *n) {
    if (s->at == n)
        return true;
    bool ok = s->n_samples && run_side(s, n, SIDE_FLOAT) && run_side(s, n, SIDE_NOW);
    s->at = n;
    if (ok)
        drop_read(s, s->place[n->id]);
    return ok;
}

const float *in_step_operand(const InStep *s, const Node *n, Side side, size_t sample) {
    const Kept *k = &s->kept[s->first[n->id][0]->id];
    return (const float *)(const void *)(k->side[side] + sample * k->each);
}
