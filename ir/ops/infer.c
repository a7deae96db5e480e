/* Type inference: one walk over the graph as stored, subgraphs at their node. Each inferred type is
 * held against the stated one; what nobody stated is filled in. A node that breaks its operator's
 * laws infers nothing, so that inference may rely on them: the verifier, which follows, reports it.
 */
#include "ir/ops/qop.h"

typedef struct Infer {
    Diags *d;
    Diags *mute; /* counts what the verifier will say */
    bool refine; /* make stated types more precise too */
    bool keep;   /* stated types that contradict are set aside, not faults */
    bool ok;
    int guesses; /* that it is inside of */
} Infer;

/* ---- one result ---- */

static Loc value_loc(const Node *n, const Value *v) {
    return v->loc.source ? v->loc : n->loc;
}

/* The elements are what runtimes insist on; of shapes they go by what they compute. */
static bool same_elements(Type x, Type y) {
    return x.kind == y.kind && (x.kind != TYPE_TENSOR || x.elem == y.elem);
}

/* Exporters get value_info wrong, and nothing reads it but people: the type is the inferred one
 * from here on, what the file said is kept for writing it again. */
static bool set_aside(const Infer *s, const Node *n, Value *v, Type inferred) {
    Arena *a = n->graph->module->arena;
    Type stated = v->type;
    if (inferred.kind == TYPE_TENSOR && stated.kind == TYPE_TENSOR) {
        if (inferred.elem == ELEM_UNDEFINED)
            inferred.elem = stated.elem;
        if (inferred.rank < 0)
            inferred.rank = stated.rank, inferred.dims = stated.dims;
    }
    diag_warning(s->d, value_loc(n, v),
                 "the model states '%s' as %s, but %s yields %s: that is taken%s",
                 diag_name(s->d, v->name), type_text(a, stated), diag_name(s->d, n->op),
                 type_text(a, inferred),
                 same_elements(stated, inferred) ? "" : "; onnxruntime refuses such a model");
    v->stated = arena_copy(a, &stated, sizeof stated);
    v->type = inferred;
    return true;
}

static bool disagree(const Infer *s, const Node *n, Value *v, Type inferred) {
    Arena *a = n->graph->module->arena;
    if (s->keep && v->declared && !v->stated)
        return set_aside(s, n, v, inferred);
    return diag_error(s->d, value_loc(n, v), "'%s' is stated as %s, but %s yields %s",
                      diag_name(s->d, v->name), type_text(a, v->type), diag_name(s->d, n->op),
                      type_text(a, inferred));
}

/* The better known of two dimensions that do not contradict; a number beats a symbol. */
static bool join_dim(Dim stated, Dim inferred, Dim *out) {
    *out = stated;
    if (stated.value >= 0 && inferred.value >= 0)
        return stated.value == inferred.value;
    if (inferred.value >= 0 || (stated.value < 0 && !stated.param.s))
        *out = (Dim){inferred.value, inferred.param, stated.denotation};
    return true;
}

static bool dims_same(Dim x, Dim y) {
    return x.value == y.value && str_eq(x.param, y.param);
}

static bool join_shape(const Infer *s, const Node *n, Value *v, Type inferred) {
    Type stated = v->type;
    if (inferred.rank < 0)
        return true;
    if (stated.rank < 0) {
        if (s->refine || !v->declared) {
            v->type.rank = inferred.rank;
            v->type.dims = inferred.dims;
        }
        return true;
    }
    if (stated.rank != inferred.rank)
        return disagree(s, n, v, inferred);
    Dim *dims = NULL; /* copied on the first change: types share their dims */
    for (int i = 0; i < stated.rank; i++) {
        Dim dim;
        if (!join_dim(stated.dims[i], inferred.dims[i], &dim))
            return disagree(s, n, v, inferred);
        if (dims_same(dim, stated.dims[i]) || (v->declared && !s->refine))
            continue;
        if (!dims)
            v->type.dims = dims = arena_copy(n->graph->module->arena, stated.dims,
                                             (size_t)stated.rank * sizeof *dims);
        dims[i] = dim;
    }
    return true;
}

/* Without a stated type a mover's results have the quantization of its input. */
static Type quantize_moved(const OpCtx *c, const OpDef *op, Type out) {
    if (!op || (op->quant.kind != QUANT_MOVE && op->quant.kind != QUANT_ORDER))
        return out;
    Type x = op_type(c, 0);
    const Quant *q = x.kind == TYPE_TENSOR && x.quant ? op_moved_quant(c, op, x.quant) : NULL;
    if (!q || type_real_elem(x) != out.elem) /* MaxPool's indices, Dropout's mask */
        return out;
    return x.tilde ? type_tilde(out, q) : type_quantized(out, q);
}

/* How a file states a dimension that is not known (float[?-1]) is no property of what is computed.
 */
static Type without_negatives(Arena *a, Type t) {
    Dim *dims = NULL;
    for (int i = 0; t.kind == TYPE_TENSOR && i < t.rank; i++) {
        if (!dim_is_negative(t.dims[i]))
            continue;
        if (!dims)
            t.dims = dims = arena_copy(a, t.dims, (size_t)t.rank * sizeof *dims);
        dims[i].negative = 0;
    }
    return t;
}

static bool join(const Infer *s, const OpCtx *c, const OpDef *op, size_t i) {
    Value *v = c->node->out[i];
    Type inferred = without_negatives(c->arena, c->out[i]);
    if (!v || inferred.kind == TYPE_NONE)
        return true;
    if (v->type.kind == TYPE_NONE) {
        if (inferred.kind != TYPE_TENSOR || inferred.elem != ELEM_UNDEFINED)
            v->type = quantize_moved(c, op, inferred);
        return true;
    }
    if (inferred.kind == TYPE_SPARSE && v->type.kind == TYPE_TENSOR)
        inferred = *inferred.sub; /* runtimes compute with the elements of a sparse constant */
    if (v->type.kind != inferred.kind)
        return disagree(s, c->node, v, inferred);
    if (inferred.kind != TYPE_TENSOR)
        return true;
    if (inferred.elem != ELEM_UNDEFINED && type_real_elem(v->type) != type_real_elem(inferred))
        return disagree(s, c->node, v, inferred);
    return join_shape(s, c->node, v, inferred);
}

/* ---- one node ---- */

/* Whether the node has the operands that its schema asks for and keeps its operator's laws. */
static bool lawful(const Infer *s, const OpDef *op, OpCtx c) {
    c.d = s->mute;
    return !op->verify || (node_count_operands(c.node, s->mute) && op->verify(&c));
}

/* True also where there is nothing to infer, or nothing that could be relied on. */
static bool infer_op(const Infer *s, Node *n, const OpDef *op, OpCtx *c) {
    n->faulty = !lawful(s, op, *c);
    return n->faulty || !op->infer || op->infer(c);
}

static bool infer_qop(const Infer *s, Node *n, OpCtx *c, const OpDef **op) {
    QopView view;
    if (!qop_of(n))
        return true;
    if (!qop_view(n, op, &view, s->d))
        return false;
    *c = qop_ctx(n, &view, s->d);
    if (!n->typed) /* wrong attributes were reported */
        return true;
    if (!infer_op(s, n, *op, c))
        return false;
    if (c->out[0].kind == TYPE_TENSOR)
        c->out[0].elem = qop_result_elem(&view);
    return true;
}

/* The node's own results; those of its subgraphs are there already. An operator on more dimensions
 * than its laws and kernels have room for becomes one that we do not know. */
static void infer_node(Infer *s, Node *n) {
    n->faulty = n->misread;
    n->told = false;
    if (!node_rank_fits(n)) {
        n->def = NULL;
        n->typed = NULL;
    }
    if (n->misread || node_reads_faulty(n)) /* one mistake, one error */
        return;
    const OpDef *op = n->def;
    OpCtx c = op_ctx(n, s->d);
    int before = diags_errors(s->d);
    bool ok = op ? infer_op(s, n, op, &c) : infer_qop(s, n, &c, &op);
    for (size_t i = 0; ok && i < n->n_out; i++)
        ok = join(s, &c, op, i);
    ok = diag_reason(s->d, ok, before, n->loc, node_text(n));
    n->told = !ok;
    n->faulty |= !ok;
    s->ok = s->ok && ok;
}

/* ---- bodies ---- */

static void infer_graph(Infer *s, Graph *g);

static void infer_graphs(Infer *s, const Node *n) {
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++)
            infer_graph(s, n->attrs[i].v.g[k]);
}

/* The types of all values in the bodies of a node, however deep. */
typedef struct Kept {
    Arena *arena;
    Value **values;
    Type *types;
    size_t n, cap, cap_types;
} Kept;

static void keep_types(Kept *k, const Node *n);

static void keep_type(Kept *k, Value *v) {
    size_t n = k->n;
    ARENA_PUSH(k->arena, k->types, n, k->cap_types, v->type);
    ARENA_PUSH(k->arena, k->values, k->n, k->cap, v);
}

static void keep_graph(Kept *k, const Graph *g) {
    for (size_t i = 0; i < g->n_in; i++)
        keep_type(k, g->in[i]);
    FOR_NODES(n, g) {
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i])
                keep_type(k, n->out[i]);
        keep_types(k, n);
    }
}

static void keep_types(Kept *k, const Node *n) {
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t g = 0; g < attr_graphs(&n->attrs[i]); g++)
            keep_graph(k, n->attrs[i].v.g[g]);
}

/* A guess costs inferring a body once more, in each loop around it: 2^MOST_GUESSES times at most.
 */
enum { MOST_GUESSES = 4 };

/* What is carried through a loop has one shape, if it has that of the beginning at the end. */
static bool guess_bodies(Infer *s, const Node *n, OpCtx *c) {
    Kept kept = {.arena = n->graph->module->arena};
    if (!s->refine || s->guesses == MOST_GUESSES)
        return false;
    keep_types(&kept, n);
    if (!n->def->enter(c, true))
        return false;
    Infer guess = {
        .d = s->mute, .mute = s->mute, .refine = true, .ok = true, .guesses = s->guesses + 1};
    infer_graphs(&guess, n);
    if (guess.ok && n->def->keeps(c))
        return true;
    for (size_t i = 0; i < kept.n; i++)
        kept.values[i]->type = kept.types[i];
    return false;
}

static void infer_bodies(Infer *s, Node *n) {
    OpCtx c = op_ctx(n, s->mute);
    bool enters = n->def && n->def->enter && n->typed && lawful(s, n->def, c);
    if (enters && guess_bodies(s, n, &c))
        return;
    if (enters)
        n->def->enter(&c, false);
    infer_graphs(s, n);
}

static void infer_graph(Infer *s, Graph *g) {
    FOR_NODES(n, g) {
        infer_bodies(s, n);
        infer_node(s, n);
    }
}

static Infer begin(Module *m, bool refine, bool keep, Diags *d) {
    Diags *mute = diags_new(m->arena, NULL, false);
    return (Infer){.d = d, .mute = mute, .refine = refine, .keep = keep, .ok = true};
}

bool node_infer(Node *n, Diags *d) {
    Infer s = begin(n->graph->module, false, false, d);
    infer_node(&s, n);
    return s.ok;
}

/* Graphs of functions have no types of their own: they get them where they are inlined. */
bool module_infer(Module *m, Diags *d) {
    Infer s = begin(m, false, false, d);
    infer_graph(&s, m->graph);
    return s.ok;
}

bool module_infer_onnx(Module *m, Diags *d) {
    Infer s = begin(m, false, true, d);
    infer_graph(&s, m->graph);
    return s.ok;
}

bool module_refine(Module *m, Diags *d) {
    Infer s = begin(m, true, false, d);
    infer_graph(&s, m->graph);
    return s.ok;
}
