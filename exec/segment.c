/* Nodes of a model that run as one program, with all shapes known: a module of their own that has
 * copies of them. What quantizes with parameters of its own (uint8q<dynamic>) is in each program
 * that reads its result: they are known only there. See exec/evaluator.h. */
#include "exec/evaluator.h"
#include "exec/lengths.h"

/* A value of the model, and what it is in a segment. */
typedef struct Pair {
    const Value *of;
    Value *copy;
} Pair;

struct Segment {
    Module *module;
    size_t number; /* of its copies in the Evaluator */
    Pair *pairs;   /* all that is in it; once it was built, what a run reads and yields */
    size_t n_pairs, cap_pairs;
    const Node *first, *last; /* of the model */
    Runner *runner;           /* once it was built */
};

static Segment *segment_new(Evaluator *e) {
    const Module *from = e->module;
    Arena *a = arena_scratch(from->arena);
    Segment *s = NEW(a, Segment);
    Module *m = module_like(a, from, from->diags);
    *s = (Segment){.module = m, .number = ++e->n_segments};
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

static void pair(Evaluator *e, Segment *s, const Value *of, Value *copy) {
    copy->loc = of->loc;
    e->copied[of->id] = (Copied){s->number, copy};
    ARENA_PUSH(s->module->arena, s->pairs, s->n_pairs, s->cap_pairs, ((Pair){of, copy}));
}

/* NULL: not in it. Of the segment that is made now, before it is run. */
static Value *copy_of(const Evaluator *e, const Segment *s, const Value *v) {
    const Copied *c = &e->copied[v->id];
    return c->segment == s->number ? c->copy : NULL;
}

/* ---- nodes ---- */

static Node *copy_node(Segment *s, const Node *n) {
    Node *copy = node_like(s->module->graph, n);
    copy->name = n->name;
    copy->attrs = n->attrs;
    copy->n_attrs = n->n_attrs;
    copy->def = n->def;
    copy->typed = n->typed;
    return copy;
}

static bool is_dynamic(const Value *v) {
    const Quant *q = op_quant(v);
    return q && q->kind == QUANT_DYNAMIC && v->kind == VALUE_NODE;
}

static bool give_operands(Evaluator *e, Segment *s, const Node *n, Node *copy, bool as_constants);

/* A copy that nobody behind this program asks for. */
static Value *make_again(Evaluator *e, Segment *s, const Value *v) {
    Node *copy = copy_node(s, v->def);
    if (!give_operands(e, s, v->def, copy, false))
        return NULL;
    Value *again = node_add_output(copy, (size_t)v->index, v->name, v->type);
    again->loc = v->loc;
    e->copied[v->id] = (Copied){s->number, again};
    graph_append(s->module->graph, copy);
    node_infer(copy, s->module->mute);
    return again;
}

static Value *add_known(Evaluator *e, Segment *s, Value *v, bool constant) {
    Module *m = s->module;
    Tensor *now = e->known[v->id], *t = now ? now : v->data;
    if (!t)
        return NULL;
    if (is_dynamic(v))
        return make_again(e, s, v);
    Type type = plain_type(m->arena, value_type_now(m->arena, v, t));
    Value *copy;
    if (!now)
        copy = graph_add_const(m->graph, v->name, type, t);
    else if (constant) /* what was computed is gone sooner than the program */
        copy = graph_add_const(m->graph, v->name, type, tensor_copy(m->arena, t));
    else
        copy = graph_add_input(m->graph, v->name, type);
    pair(e, s, v, copy);
    return copy;
}

static bool is_static(const Value *v) {
    size_t count;
    return !v || (v->type.kind == TYPE_TENSOR && type_count(v->type, &count));
}

static bool give_operands(Evaluator *e, Segment *s, const Node *n, Node *copy, bool as_constants) {
    for (size_t i = 0; i < n->n_in; i++) {
        Value *v = n->in[i];
        if (!v)
            continue;
        bool fixed = i < 32 && n->def && n->def->fixed >> i & 1;
        Value *there = copy_of(e, s, v);
        if (there && fixed && there->kind != VALUE_CONST)
            return false;
        copy->in[i] = there ? there : add_known(e, s, v, fixed || as_constants);
        if (!copy->in[i] || value_is_counted(copy->in[i]) || !is_static(copy->in[i]))
            return false;
    }
    return true;
}

/* How many elements there are is for the run to say, whatever the model states. So they are rounded
 * behind it (round_now). */
static Type result_type(Arena *a, const Node *n, Type t) {
    if (n->def && n->def->counts && t.kind == TYPE_TENSOR) {
        t.rank = -1;
        t.dims = NULL;
        t.quant = t.tilde ? NULL : t.quant;
        t.tilde = false;
    }
    return plain_type(a, t);
}

static void make_results(Evaluator *e, Segment *s, const Node *n, Node *copy) {
    Arena *a = s->module->arena;
    for (size_t i = 0; i < n->n_out; i++) {
        const Value *v = n->out[i];
        if (v)
            pair(e, s, v, node_add_output(copy, i, v->name, result_type(a, n, v->type)));
    }
}

/* They are the last that it has. */
static void forget_results(Evaluator *e, Segment *s, const Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            e->copied[n->out[i]->id] = (Copied){0};
            s->n_pairs--;
        }
}

static bool results_known(const Node *copy) {
    bool counts = copy->def && copy->def->counts, ok = true;
    for (size_t i = 0; i < copy->n_out; i++)
        ok = ok && (counts || is_static(copy->out[i]));
    return ok;
}

bool segment_take(Evaluator *e, Segment **at, const Node *n, bool as_constants) {
    Segment *s = *at = *at ? *at : segment_new(e);
    Module *m = s->module;
    Node *copy = copy_node(s, n);
    if (!give_operands(e, s, n, copy, as_constants) && !as_constants)
        return false;
    make_results(e, s, n, copy);
    graph_append(m->graph, copy);
    node_infer(copy, m->mute);
    if (!as_constants && !copy->faulty && !results_known(copy)) {
        node_remove(copy);
        forget_results(e, s, n);
        return false;
    }
    s->first = s->first ? s->first : n;
    s->last = n;
    return true;
}

/* ---- running ---- */

/* Whether it runs here and nowhere else. */
static bool in_segment(const Evaluator *e, const Segment *s, const Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            const Value *copy = copy_of(e, s, n->out[i]);
            return copy && copy->kind == VALUE_NODE && !is_dynamic(n->out[i]);
        }
    return false;
}

/* Whether how long it is has to be looked at (evaluator_made). */
static bool is_bounded(const Evaluator *e, const Value *v) {
    LengthBound b;
    return !length_bound_of(v, &b, e->module->mute) || b.most >= 0;
}

/* Whether somebody else wants the value. */
static bool is_read(const Evaluator *e, const Segment *s, const Value *v) {
    const Use *use;
    size_t n = uses_of(e->uses, v, &use);
    for (size_t i = 0; i < n; i++)
        if (!use[i].node || !in_segment(e, s, use[i].node))
            return true;
    return e->options.keep_all || e->observer || is_bounded(e, v);
}

/* What a run looks at: what comes in, what was computed and is a constant here, what goes out. */
static bool matters(const Evaluator *e, const Segment *s, Pair p) {
    if (p.copy->kind == VALUE_CONST)
        return p.copy->data != p.of->data;
    return p.copy->kind == VALUE_INPUT || is_read(e, s, p.of);
}

/* A program stays within the module, and its constants too. */
static Program *build(Evaluator *e, Segment *s, Diags *d) {
    ProgramOptions o = e->options;
    size_t kept = 0;
    o.keep_all = o.observed = o.partial = false;
    o.any_length = true;
    o.arena = NULL;
    for (size_t i = 0; i < s->n_pairs; i++) {
        Pair p = s->pairs[i];
        if (!matters(e, s, p))
            continue;
        s->pairs[kept++] = p;
        if (p.copy->kind == VALUE_NODE)
            graph_add_output(s->module->graph, p.copy);
    }
    s->n_pairs = kept;
    return program_build(s->module, &o, d);
}

/* A value of type `float ~ q` as what comes into a program is rounded, with the shape that it has.
 */
static bool round_now(Evaluator *e, const Value *v, Diags *d) {
    Tensor *t = e->known[v->id];
    Arena *a = arena_scratch(e->module->arena);
    Module *m = module_like(a, e->module, d);
    Value *x = graph_add_input(m->graph, v->name, value_type_now(a, v, t));
    graph_add_output(m->graph, x);
    ProgramOptions o = {.ignore_quant = e->options.ignore_quant};
    const Program *p = program_build(m, &o, d);
    Runner *r = p ? runner_new(a, p) : NULL;
    if (r && t->bytes)
        memcpy(runner_input(r, 0), t->data, t->bytes);
    bool ok = r && runner_run(r, d);
    if (ok && t->bytes)
        memcpy((void *)(uintptr_t)t->data, runner_output(r, 0), t->bytes);
    arena_free(a);
    return ok;
}

static bool take_output(Evaluator *e, const Runner *r, size_t port, Pair p, Diags *d) {
    int64_t dims[MAX_RANK];
    int rank = runner_shape(r, p.copy, dims);
    ElemType elem = p.copy->type.elem;
    size_t count;
    tensor_count(rank, dims, &count);
    size_t bytes = elem_bytes(elem, count);
    const void *data = arena_copy(e->results, runner_output(r, port), bytes ? bytes : 1);
    e->known[p.of->id] = tensor_of(e->results, elem, rank, dims, data);
    if (p.of->type.tilde && !p.copy->type.tilde && !round_now(e, p.of, d))
        return false;
    return evaluator_made(e, p.of, d);
}

static bool run(Evaluator *e, const Segment *s, Diags *d) {
    Runner *r = s->runner;
    for (size_t i = 0, port = 0; i < s->n_pairs; i++)
        if (s->pairs[i].copy->kind == VALUE_INPUT) {
            const Tensor *t = e->known[s->pairs[i].of->id];
            void *to = runner_input(r, port++);
            if (t->bytes)
                memcpy(to, t->data, t->bytes);
        }
    bool ok = runner_run(r, d);
    for (size_t i = 0, port = 0; ok && i < s->n_pairs; i++)
        if (s->pairs[i].copy->kind == VALUE_NODE)
            ok = take_output(e, r, port++, s->pairs[i], d);
    return ok;
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

/* As it was when the program was built: in shape, and where it is a constant in each byte. */
static bool is_as_it_was(const Evaluator *e, Pair p) {
    const Tensor *t = e->known[p.of->id];
    return t && tensor_fits(t, p.copy->type) &&
           (p.copy->kind != VALUE_CONST || !t->bytes ||
            memcmp(t->data, p.copy->data->data, t->bytes) == 0);
}

static bool fits_again(const Evaluator *e, const Segment *s) {
    for (size_t i = 0; i < s->n_pairs; i++)
        if (s->pairs[i].copy->kind != VALUE_NODE && !is_as_it_was(e, s->pairs[i]))
            return false;
    return true;
}

const Node *segment_again(Evaluator *e, const Node *n) {
    const Segment *s = e->kept[n->id];
    return s && fits_again(e, s) ? s->last : NULL;
}

bool segment_rerun(Evaluator *e, const Node *n, Diags *d) {
    return run(e, e->kept[n->id], d);
}
