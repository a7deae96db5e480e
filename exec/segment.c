/* Nodes of a model that run as one program, with all shapes known: a module of their own that has
 * copies of them. See exec/evaluator.h. */
#include "exec/evaluator.h"

struct Segment {
    Module *module;
    Value **copies;       /* by id of the model's values; NULL: not in it */
    const Value **inputs; /* of the model, by place among the graph's inputs */
    size_t cap_inputs;
    const Value **made; /* of the model: what its nodes compute */
    size_t n_made, cap_made;
    const Value **taken; /* of the model: what was computed and is a constant here */
    size_t n_taken, cap_taken;
    const Node *first, *last; /* of the model */
    Runner *runner;           /* once it was built */
};

static Segment *segment_new(const Evaluator *e) {
    const Module *from = e->module;
    Arena *a = arena_scratch(from->arena);
    Segment *s = NEW(a, Segment);
    Module *m = module_new(a, from->diags);
    m->path = from->path;
    m->ir_version = from->ir_version;
    m->has_ir_version = from->has_ir_version;
    m->imports = from->imports;
    m->n_imports = from->n_imports;
    m->wide_zp = from->wide_zp;
    m->graph = graph_new(m, from->graph->name);
    *s = (Segment){.module = m, .copies = NEW_ARRAY(a, Value *, from->n_values)};
    return s;
}

void segment_drop(Segment **s) {
    if (*s)
        arena_free((*s)->module->arena);
    *s = NULL;
}

/* ---- values ---- */

/* A scale that is stated as a product of others is a number like any. */
static Type plain_type(Arena *a, Type t) {
    if (!t.quant || t.quant->kind != QUANT_ACC)
        return t;
    Quant *q = quant_copy(a, t.quant);
    q->kind = QUANT_PARAMS;
    q->acc_value[0] = q->acc_value[1] = NULL;
    q->acc_quant[0] = q->acc_quant[1] = NULL;
    t.quant = q;
    return t;
}

static void copy_facts(Segment *s, const Value *from, Value *to) {
    to->loc = from->loc;
    s->copies[from->id] = to;
}

/* The type of the model's value, in the shape that it has now. */
static Type type_now(Arena *a, const Value *v, const Tensor *t) {
    Type now = plain_type(a, v->type), shape = tensor_type(a, t);
    if (now.kind != TYPE_TENSOR)
        return shape;
    now.rank = shape.rank;
    now.dims = shape.dims;
    return now;
}

static Value *add_known(Evaluator *e, Segment *s, Value *v, bool constant) {
    Module *m = s->module;
    Tensor *now = e->known[v->id], *t = now ? now : v->data;
    if (!t)
        return NULL;
    Type type = type_now(m->arena, v, t);
    Value *copy;
    if (!now) {
        copy = graph_add_const(m->graph, v->name, type, t);
    } else if (constant) { /* what was computed is gone sooner than the program */
        copy = graph_add_const(m->graph, v->name, type, tensor_copy(m->arena, t));
        ARENA_PUSH(m->arena, s->taken, s->n_taken, s->cap_taken, v);
    } else {
        size_t n = m->graph->n_in;
        copy = graph_add_input(m->graph, v->name, type);
        ARENA_PUSH(m->arena, s->inputs, n, s->cap_inputs, v);
    }
    copy_facts(s, v, copy);
    return copy;
}

/* ---- nodes ---- */

static bool is_static(const Value *v) {
    size_t count;
    return !v || (v->type.kind == TYPE_TENSOR && type_count(v->type, &count));
}

/* Whether operand `i` has to be a constant, and is there as something that is computed. */
static bool wants_constant(const Segment *s, const Node *n, size_t i) {
    return i < 32 && n->def && n->def->fixed >> i & 1 && s->copies[n->in[i]->id] &&
           s->copies[n->in[i]->id]->kind != VALUE_CONST;
}

static bool give_operands(Evaluator *e, Segment *s, const Node *n, Node *copy, bool as_constants) {
    for (size_t i = 0; i < n->n_in; i++) {
        Value *v = n->in[i];
        if (!v)
            continue;
        if (wants_constant(s, n, i))
            return false;
        bool fixed = i < 32 && n->def && n->def->fixed >> i & 1;
        copy->in[i] =
            s->copies[v->id] ? s->copies[v->id] : add_known(e, s, v, fixed || as_constants);
        if (!copy->in[i] || value_is_counted(copy->in[i]) || !is_static(copy->in[i]))
            return false;
    }
    return true;
}

/* How many elements there are is for the run to say, whatever the model states. */
static Type result_type(Arena *a, const Node *n, Type t) {
    if (n->def && n->def->counts && t.kind == TYPE_TENSOR) {
        t.rank = -1;
        t.dims = NULL;
    }
    return plain_type(a, t);
}

static void make_results(Segment *s, const Node *n, Node *copy) {
    Arena *a = s->module->arena;
    for (size_t i = 0; i < n->n_out; i++) {
        const Value *v = n->out[i];
        if (!v)
            continue;
        copy_facts(s, v, node_add_output(copy, i, v->name, result_type(a, n, v->type)));
        ARENA_PUSH(a, s->made, s->n_made, s->cap_made, v);
    }
}

static void forget_results(Segment *s, const Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            s->copies[n->out[i]->id] = NULL;
            s->n_made--;
        }
}

static bool results_known(const Node *copy) {
    bool counts = copy->def && copy->def->counts, ok = true;
    for (size_t i = 0; i < copy->n_out; i++)
        ok = ok && (counts || is_static(copy->out[i]));
    return ok;
}

static Node *copy_node(Segment *s, const Node *n) {
    Node *copy = node_new(s->module->graph, n->domain, n->op, n->n_in, n->n_out);
    copy->overload = n->overload;
    copy->name = n->name;
    copy->attrs = n->attrs;
    copy->n_attrs = n->n_attrs;
    copy->loc = n->loc;
    copy->def = n->def;
    copy->typed = n->typed;
    return copy;
}

bool segment_take(Evaluator *e, Segment **at, const Node *n, bool as_constants) {
    Segment *s = *at = *at ? *at : segment_new(e);
    Module *m = s->module;
    Node *copy = copy_node(s, n);
    if (!give_operands(e, s, n, copy, as_constants) && !as_constants)
        return false;
    make_results(s, n, copy);
    graph_append(m->graph, copy);
    node_infer(copy, m->mute);
    if (!as_constants && !copy->faulty && !results_known(copy)) {
        node_remove(copy);
        forget_results(s, n);
        return false;
    }
    s->first = s->first ? s->first : n;
    s->last = n;
    return true;
}

/* ---- running ---- */

static bool in_segment(const Segment *s, const Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            return s->copies[n->out[i]->id] && s->copies[n->out[i]->id]->kind == VALUE_NODE;
    return false;
}

/* Whether somebody else wants the value. */
static bool is_read(const Evaluator *e, const Segment *s, const Value *v) {
    const Use *use;
    size_t n = uses_of(e->uses, v, &use);
    for (size_t i = 0; i < n; i++)
        if (!use[i].node || !in_segment(s, use[i].node))
            return true;
    return e->options.keep_all || e->observer;
}

/* A program stays within the module, and its constants too. */
static Program *build(Evaluator *e, const Segment *s, Diags *d) {
    ProgramOptions o = e->options;
    o.keep_all = o.observed = o.partial = false;
    o.arena = NULL;
    for (size_t i = 0; i < s->n_made; i++)
        if (is_read(e, s, s->made[i]))
            graph_add_output(s->module->graph, s->copies[s->made[i]->id]);
    return program_build(s->module, &o, d);
}

static void take_output(Evaluator *e, const Runner *r, size_t i, const Value *from, Value *copy) {
    int64_t dims[MAX_RANK];
    int rank = runner_shape(r, copy, dims);
    size_t count;
    tensor_count(rank, dims, &count);
    size_t bytes = elem_bytes(copy->type.elem, count);
    const void *data = arena_copy(e->results, runner_output(r, i), bytes ? bytes : 1);
    e->known[from->id] = tensor_of(e->results, copy->type.elem, rank, dims, data);
}

static bool run(Evaluator *e, Segment *s, Diags *d) {
    const Graph *g = s->module->graph;
    Runner *r = s->runner;
    for (size_t i = 0; i < g->n_in; i++) {
        const Tensor *t = e->known[s->inputs[i]->id];
        if (t->bytes)
            memcpy(runner_input(r, i), t->data, t->bytes);
    }
    if (!runner_run(r, d))
        return false;
    for (size_t i = 0, port = 0; i < s->n_made; i++)
        if (is_read(e, s, s->made[i])) {
            take_output(e, r, port++, s->made[i], s->copies[s->made[i]->id]);
            evaluator_show(e, s->made[i]);
        }
    return true;
}

bool segment_run(Evaluator *e, Segment **at, Diags *d) {
    Segment *s = *at;
    *at = NULL;
    if (!s || !s->first) {
        segment_drop(&s);
        return true;
    }
    const Program *p = build(e, s, d);
    if (!p) {
        segment_drop(&s);
        return false;
    }
    s->runner = runner_new(s->module->arena, p);
    segment_drop(&e->kept[s->first->id]);
    e->kept[s->first->id] = s;
    return run(e, s, d);
}

/* ---- once more ---- */

static bool same_shape_now(const Evaluator *e, const Segment *s, const Value *v) {
    const Tensor *t = e->known[v->id];
    Type type = s->copies[v->id]->type;
    bool same = t && t->rank == type.rank;
    for (int i = 0; same && i < type.rank; i++)
        same = t->dims[i] == type.dims[i].value;
    return same;
}

static bool fits_again(const Evaluator *e, const Segment *s) {
    for (size_t i = 0; i < s->module->graph->n_in; i++)
        if (!same_shape_now(e, s, s->inputs[i]))
            return false;
    for (size_t i = 0; i < s->n_taken; i++) {
        const Tensor *t = e->known[s->taken[i]->id], *had = s->copies[s->taken[i]->id]->data;
        if (!same_shape_now(e, s, s->taken[i]) ||
            (t->bytes && memcmp(t->data, had->data, t->bytes) != 0))
            return false;
    }
    return true;
}

const Node *segment_again(Evaluator *e, const Node *n) {
    const Segment *s = e->kept[n->id];
    return s && fits_again(e, s) ? s->last : NULL;
}

bool segment_rerun(Evaluator *e, const Node *n, Diags *d) {
    return run(e, e->kept[n->id], d);
}
