/* See exec/evaluate.h. What bodies do is in exec/evaluate_body.c, the programs in exec/segment.c.
 */
#include "exec/evaluator.h"
#include "exec/lengths.h"
#include "exec/specialise.h"

/* ---- which models ---- */

static bool is_known(const Value *v) {
    size_t count;
    return !v || v->data || (v->type.kind == TYPE_TENSOR && type_count(v->type, &count));
}

/* Sequences and strings have no kernels. */
static bool is_numbers(const Value *v) {
    return !v || v->type.kind == TYPE_NONE ||
           (v->type.kind == TYPE_TENSOR && v->type.elem != ELEM_STRING);
}

typedef struct Look {
    bool open, unable;
} Look;

static void look_at(Graph *g, void *ctx) {
    Look *look = ctx;
    FOR_NODES(n, g) {
        look->unable = look->unable || !n->def || !n->def->bind || n->faulty;
        for (size_t i = 0; i < n->n_in; i++) {
            look->open = look->open || !is_known(n->in[i]);
            look->unable = look->unable || !is_numbers(n->in[i]);
        }
        for (size_t i = 0; i < n->n_out; i++) {
            look->open = look->open || !is_known(n->out[i]) || value_is_counted(n->out[i]);
            look->unable = look->unable || !is_numbers(n->out[i]);
        }
    }
}

bool module_is_open(Module *m) {
    Look look = {false, false};
    module_each_graph(m, look_at, &look);
    return look.open && !look.unable;
}

/* ---- values ---- */

/* As in a program: what is read has to be in memory. */
static bool inputs_fit(const Module *m, Diags *d) {
    bool ok = true;
    for (size_t i = 0; i < m->graph->n_in; i++) {
        const Value *v = m->graph->in[i];
        size_t count;
        if (!v->data && (!type_count(v->type, &count) || count > INT32_MAX))
            ok = diag_error(d, v->loc, "value %s has no fixed shape of at most 2^31-1 elements",
                            diag_name(d, v->name));
    }
    return ok;
}

Evaluator *evaluator_new(Module *m, const ProgramOptions *o, Diags *d) {
    if (!module_check_runnable(m, d) || !inputs_fit(m, d))
        return NULL;
    Evaluator *e = NEW(m->arena, Evaluator);
    *e = (Evaluator){.module = m,
                     .uses = uses_new(m),
                     .known = NEW_ARRAY(m->arena, Tensor *, m->n_values),
                     .kept = NEW_ARRAY(m->arena, Segment *, m->n_nodes),
                     .copied = NEW_ARRAY(m->arena, Copied, m->n_values),
                     .inputs = NEW_ARRAY(m->arena, Tensor *, m->graph->n_in),
                     .ports = NEW_ARRAY(m->arena, void *, m->graph->n_in)};
    if (o)
        e->options = *o;
    for (size_t i = 0; i < m->graph->n_in; i++) {
        Value *v = m->graph->in[i];
        int64_t dims[MAX_RANK];
        uint8_t *bytes;
        int rank = type_lengths(v->type, dims);
        if (!v->data)
            e->inputs[e->n_inputs++] = tensor_new(m->arena, v->type.elem, rank, dims, &bytes);
    }
    return e;
}

void evaluator_free(Evaluator *e) {
    for (uint32_t i = 0; i < e->module->n_nodes; i++)
        segment_drop(&e->kept[i]);
    arena_free(e->results);
    e->results = NULL;
}

void *evaluator_input(Evaluator *e, size_t i) {
    return (void *)(uintptr_t)e->inputs[i]->data; /* made above */
}

bool evaluator_load(Evaluator *e, Samples *s) {
    for (size_t i = 0; i < e->n_inputs; i++)
        e->ports[i] = evaluator_input(e, i);
    return samples_next(s, e->ports);
}

const Tensor *evaluator_value(const Evaluator *e, const Value *v) {
    return v->id < e->module->n_values && e->known[v->id] ? e->known[v->id] : v->data;
}

/* ---- observing ---- */

void evaluator_observe(Evaluator *e, EvaluatorObserver *fn, void *ctx) {
    e->observer = fn;
    e->observer_ctx = ctx;
}

Type value_type_now(Arena *a, const Value *v, const Tensor *t) {
    Type now = v->type.kind == TYPE_TENSOR ? v->type : TYPE_UNKNOWN;
    now.kind = TYPE_TENSOR;
    now.elem = t->elem;
    now.rank = t->rank;
    now.dims = tensor_type(a, t).dims;
    return now;
}

const void *evaluator_elements(const Evaluator *e, const Value *v, Type *now) {
    const Tensor *t = evaluator_value(e, v);
    if (!t)
        return NULL;
    *now = value_type_now(e->results, v, t);
    return elem_unpacked(t->elem) == t->elem ? t->data : tensor_unpacked(e->results, t)->data;
}

void evaluator_show(Evaluator *e, const Value *v) {
    Type now;
    if (!e->observer || !e->known[v->id])
        return;
    const void *data = evaluator_elements(e, v, &now);
    e->observer(e->observer_ctx, v, now, data);
}

/* What C would have no room for is no result here either. */
static bool within_bound(const Value *v, const Tensor *t, Diags *d) {
    LengthBound b;
    return length_bound_of(v, &b, d) && (b.most < 0 || length_check(&b, t->dims[b.axis], d));
}

bool evaluator_made(Evaluator *e, const Value *v, Diags *d) {
    const Tensor *t = e->known[v->id];
    if (t && !tensor_fits(t, v->type))
        return diag_error(d, v->loc, "'%s' is stated as %s, but comes out as %s",
                          diag_name(d, v->name), type_text(e->results, v->type),
                          type_text(e->results, value_type_now(e->results, v, t)));
    if (t && !within_bound(v, t, d))
        return false;
    evaluator_show(e, v);
    return true;
}

/* ---- running ---- */

bool evaluate_graph(Evaluator *e, const Graph *g, Diags *d) {
    Segment *s = NULL;
    bool ok = true;
    for (const Node *n = g->first; n && ok; n = n->next) {
        const Node *last = s || has_bodies(n) ? NULL : segment_again(e, n);
        if (last) {
            ok = segment_rerun(e, n, d);
            n = last;
            continue;
        }
        if (has_bodies(n)) {
            ok = segment_run(e, &s, d) && evaluate_bodies(e, n, d);
            continue;
        }
        if (segment_take(e, &s, n, false))
            continue;
        ok = segment_run(e, &s, d);
        if (ok && !segment_take(e, &s, n, false)) {
            segment_drop(&s);
            segment_take(e, &s, n, true);
        }
    }
    return ok ? segment_run(e, &s, d) : (segment_drop(&s), false);
}

bool evaluator_run(Evaluator *e, Diags *d) {
    Module *m = e->module;
    Tensor **known = e->known;
    arena_free(e->results);
    e->results = arena_scratch(m->arena);
    memset(known, 0, m->n_values * sizeof(Tensor *));
    for (size_t i = 0, port = 0; i < m->graph->n_in; i++)
        if (!m->graph->in[i]->data) {
            known[m->graph->in[i]->id] = e->inputs[port++];
            evaluator_show(e, m->graph->in[i]);
        }
    return evaluate_graph(e, m->graph, d);
}
