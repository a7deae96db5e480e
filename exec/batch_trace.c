/* See exec/batch_trace.h. */
#include "exec/batch_trace.h"
#include "ir/ops/op.h"
#include "ir/ops/qop.h"

/* How a value depends on the samples. */
enum { SAME = 0, LOST = -1 }; /* not at all; not sample by sample. Above 0: the stride */

typedef struct Trace {
    Module *m;
    const Probe *few, *many;
    Diags *quiet;
    int64_t *stride; /* by value id */
    Batch *batch;
    const Node *shares; /* the first whose scale depends on all samples */
} Trace;

/* The axis of a value that grows, NO_AXIS or SEVERAL. */
static int grows(const Trace *t, uint32_t id) {
    return growing_axis(t->few->of[id].type, t->many->of[id].type, t->many->size);
}

/* Elements from a sample to the next along the axis that grows. */
static int64_t step_along(const Trace *t, uint32_t id, int axis) {
    return axis_step(t->many->of[id].type, axis) * t->few->of[id].type.dims[axis].value;
}

/* The axis of a value that holds samples, and how many of its rows each has. */
static int samples_axis(const Trace *t, const Value *v, int64_t stride, int64_t *inner) {
    return axis_of_samples(v->type, t->many->size, stride, inner);
}

/* What a value is whose stride would be this one: its type has to grow just there. */
static int64_t held_to_type(const Trace *t, const Value *v, int64_t stride) {
    int axis = grows(t, v->id);
    int64_t inner;
    if (stride == SAME)
        return axis == NO_AXIS ? SAME : LOST;
    return stride > 0 && axis >= 0 && samples_axis(t, v, stride, &inner) == axis ? stride : LOST;
}

/* ---- constants ---- */

/* A constant is the same for all samples, or has the same numbers for each, or else is lost. */
static void trace_constant(Value *v, void *ctx) {
    Trace *t = ctx;
    if (v->id >= t->few->n || !v->data || v->kind == VALUE_NODE)
        return;
    const Snapshot *few = &t->few->of[v->id], *many = &t->many->of[v->id];
    int axis = grows(t, v->id);
    if (axis == NO_AXIS && (v->kind == VALUE_INPUT || snapshot_same(few, many)))
        t->stride[v->id] = SAME;
    else if (axis >= 0 && snapshot_repeats(few, many, axis, t->many->size))
        t->stride[v->id] = step_along(t, v->id, axis);
    else
        t->stride[v->id] = LOST;
}

/* ---- nodes ---- */

static int64_t lose(Trace *t, const Node *n, BatchKind kind, const char *why) {
    if (!t->batch->node)
        *t->batch = (Batch){.kind = kind, .node = n, .why = why};
    return LOST;
}

/* Where the samples of one result are, as far as it is known. */
typedef struct Where {
    int axis; /* -1: not known */
    int64_t inner;
} Where;

static bool takes_samples(Trace *t, const OpDef *op, const OpCtx *c, size_t i, size_t result,
                          Where *to) {
    const Value *v = c->in[i], *y = c->node->out[result];
    int64_t inner;
    int from = samples_axis(t, v, t->stride[v->id], &inner);
    int axis = from < 0 ? -1 : op_slices(op, c, i, from, result);
    if (axis < 0 || axis >= y->type.rank ||
        (to->axis >= 0 && (axis != to->axis || inner != to->inner)))
        return false;
    *to = (Where){axis, inner};
    return y->type.dims[axis].value == v->type.dims[from].value;
}

/* Constant indices that take of each sample its own rows, where those of all lie in one axis: what
 * exporters make of views of memory (as_strided). */
static bool takes_own_rows(const Trace *t, const OpDef *op, const OpCtx *c, size_t result,
                           Where *to) {
    if (!op->quant.move.looks_up || c->n_in != 2 || !c->in[1])
        return false;
    const Value *v = c->in[0];
    const Snapshot *few = &t->few->of[c->in[1]->id], *many = &t->many->of[c->in[1]->id];
    int64_t rows;
    int from = samples_axis(t, v, t->stride[v->id], &rows), axis = grows(t, c->in[1]->id);
    if (from < 0 || axis < 0 || op_slices(op, c, 0, from, result) >= 0 ||
        !snapshot_counts(few, many, axis, rows))
        return false;
    *to = (Where){op_slices(op, c, 1, axis, result), few->type.dims[axis].value};
    return to->axis >= 0;
}

/* A constant that numbers the samples, where the operator takes with each number its own sample. */
static bool takes_numbers(const Trace *t, const OpDef *op, const OpCtx *c, size_t i,
                          size_t result) {
    const Snapshot *few = &t->few->of[c->in[i]->id], *many = &t->many->of[c->in[i]->id];
    int axis = grows(t, c->in[i]->id);
    return axis >= 0 && op_slices(op, c, i, axis, result) == SLICES_OWN &&
           snapshot_repeats(few, many, axis, 1);
}

static bool says_shape(const OpDef *op, size_t i) {
    return i < 32 && (op->shapes >> i & 1);
}

/* What is put there anew for each sample: the operand is the same for all, the shape is not. */
static int64_t spread(Trace *t, const OpDef *op, const Node *n, const Value *y) {
    int axis = grows(t, y->id);
    if (op->quant.move.interpolates || axis < 0)
        return lose(t, n, BATCH_MIXED, "makes something of the number of samples");
    return step_along(t, y->id, axis);
}

static bool is_apart(const OpDef *op, const OpCtx *c, size_t i, size_t result) {
    return op->slices && op->slices(c, i, 0, result) == SLICES_APART;
}

static int64_t trace_result(Trace *t, const OpDef *op, const OpCtx *c, size_t result) {
    const Node *n = c->node;
    Where to = {.axis = -1};
    bool any = false, shaped = false, dynamic = false, own = false;
    for (size_t i = 0; i < c->n_in; i++) {
        if (!c->in[i] || t->stride[c->in[i]->id] <= 0 || is_apart(op, c, i, result) ||
            says_shape(op, i))
            continue;
        any = true;
        dynamic |= c->in[i]->type.quant && c->in[i]->type.quant->kind == QUANT_DYNAMIC;
        if (op->flat && i == 0)
            continue;
        own |= i == 0 && takes_own_rows(t, op, c, result, &to);
        if (!own && !takes_samples(t, op, c, i, result, &to))
            return lose(t, n, BATCH_MIXED, "mixes what stands along it");
    }
    for (size_t i = 0; i < c->n_in; i++) {
        if (!c->in[i] || t->stride[c->in[i]->id] != LOST || is_apart(op, c, i, result))
            continue;
        shaped |= says_shape(op, i);
        if (!says_shape(op, i) && !own && !takes_numbers(t, op, c, i, result))
            return lose(t, n, BATCH_MIXED, "makes something of the number of samples");
    }
    if (dynamic && !t->shares)
        t->shares = n;
    if (any && op->flat)
        return t->stride[c->in[0]->id];
    if (any)
        return axis_step(n->out[result]->type, to.axis) * to.inner;
    return shaped ? spread(t, op, n, n->out[result]) : SAME;
}

/* All operands are those of the float operator, or the same for all samples. */
static bool covers(const Trace *t, const OpCtx *c) {
    for (size_t i = 0; i < c->node->n_in; i++) {
        const Value *v = c->node->in[i];
        bool seen = !v || t->stride[v->id] == SAME;
        for (size_t k = 0; k < c->n_in && !seen; k++)
            seen = c->in[k] == v;
        if (!seen)
            return false;
    }
    return true;
}

static bool knows_slices(const OpDef *op) {
    return op && (op->slices || op->flat || op->shapes || op->infer == op_broadcast ||
                  op->quant.move.axis);
}

static void set_results(Trace *t, const Node *n, int64_t stride) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            t->stride[n->out[i]->id] = stride == SAME ? held_to_type(t, n->out[i], SAME) : stride;
}

static bool reads_same(const Trace *t, const Node *n) {
    bool same = true;
    for (size_t i = 0; i < n->n_in; i++)
        same = same && (!n->in[i] || t->stride[n->in[i]->id] == SAME);
    return same;
}

static void trace_plain(Trace *t, const Node *n) {
    const OpDef *op = n->def;
    QopView view;
    if (reads_same(t, n)) {
        set_results(t, n, SAME);
        return;
    }
    bool known = op || qop_view(n, &op, &view, t->quiet);
    OpCtx c = {0};
    if (known && knows_slices(op))
        c = n->def ? op_ctx(n, t->quiet) : qop_ctx(n, &view, t->quiet);
    if (!c.node || !covers(t, &c)) {
        lose(t, n, BATCH_UNKNOWN, "is one of which it is not known what it does along it");
        set_results(t, n, LOST);
        return;
    }
    for (size_t i = 0; i < n->n_out; i++) {
        if (!n->out[i])
            continue;
        int64_t stride = trace_result(t, op, &c, i);
        t->stride[n->out[i]->id] = held_to_type(t, n->out[i], stride);
        if (t->stride[n->out[i]->id] == LOST)
            lose(t, n, BATCH_MIXED, "does not keep it as it is");
    }
}

/* ---- bodies ---- */

static bool trace_graph(Trace *t, const Graph *g);

static bool body_reads_same(const Trace *t, const Graph *g) {
    bool same = true;
    FOR_NODES(n, g) {
        same = same && reads_same(t, n);
        for (size_t i = 0; i < n->n_attrs; i++)
            for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++)
                same = same && body_reads_same(t, n->attrs[i].v.g[k]);
    }
    for (size_t i = 0; i < g->n_out; i++)
        same = same && t->stride[g->out[i]->id] == SAME;
    return same;
}

static void join_branch(Trace *t, const Node *n, const Value *result, int64_t stride, bool first) {
    int64_t *to = &t->stride[result->id];
    *to =
        first || *to == stride ? stride : lose(t, n, BATCH_MIXED, "has branches that differ in it");
}

/* The branch of an If that runs, or both: they have to agree. */
static void trace_branches(Trace *t, const Node *n) {
    bool first = true;
    if (!reads_same(t, n)) {
        lose(t, n, BATCH_MIXED, "decides for all samples at once");
        set_results(t, n, LOST);
        return;
    }
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++) {
            const Graph *g = n->attrs[i].v.g[k];
            if (n->def->skips && n->def->skips(n, g))
                continue;
            trace_graph(t, g);
            for (size_t r = 0; r < n->n_out && r < g->n_out; r++)
                if (n->out[r])
                    join_branch(t, n, n->out[r], t->stride[g->out[r]->id], first);
            first = false;
        }
}

static void trace_bodies(Trace *t, const Node *n) {
    bool same = reads_same(t, n);
    if (n->def && n->def->yields_results) {
        trace_branches(t, n);
        return;
    }
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++)
            same = same && body_reads_same(t, n->attrs[i].v.g[k]);
    if (!same)
        lose(t, n, BATCH_UNKNOWN, "is a loop, of which it is not known what it does along it");
    set_results(t, n, same ? SAME : LOST);
}

static bool trace_graph(Trace *t, const Graph *g) {
    bool apart = true;
    FOR_NODES(n, g) {
        if (has_bodies(n))
            trace_bodies(t, n);
        else
            trace_plain(t, n);
    }
    for (size_t i = 0; i < g->n_out; i++)
        apart = apart && t->stride[g->out[i]->id] != LOST;
    return apart;
}

/* ---- the module ---- */

static void trace_inputs(Trace *t) {
    const Graph *g = t->m->graph;
    for (size_t i = 0; i < g->n_in; i++) {
        const Value *v = g->in[i];
        int axis = grows(t, v->id);
        t->stride[v->id] = axis == SEVERAL   ? LOST
                           : axis == NO_AXIS ? SAME
                                             : step_along(t, v->id, axis);
    }
}

static void trace_module(Trace *t) {
    uint32_t n = t->m->n_values;
    module_each_value(t->m, trace_constant, t);
    trace_inputs(t);
    if (trace_graph(t, t->m->graph)) {
        *t->batch = (Batch){.kind = t->shares ? BATCH_SCALE : BATCH_APART,
                            .node = t->shares,
                            .why = t->shares ? "has one scale for all of it" : NULL,
                            .n_values = n,
                            .stride = t->stride};
        t->batch->axis = NEW_ARRAY(t->m->arena, int, n);
        for (uint32_t i = 0; i < n; i++)
            if (t->stride[i] > 0)
                t->batch->axis[i] = grows(t, i);
    } else if (!t->batch->node)
        *t->batch =
            (Batch){.kind = BATCH_MIXED, .why = "an output depends on the number of samples"};
}

void batch_trace(Module *m, const Probe *few, const Probe *many, Diags *quiet, Batch *b) {
    Trace t = {m, few, many, quiet, NEW_ARRAY(m->arena, int64_t, m->n_values), b, NULL};
    trace_module(&t);
}
