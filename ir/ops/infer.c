/* Type inference: one walk over the graph as stored, subgraphs at their node. Each inferred type is
 * held against the stated one; what nobody stated is filled in. A node that breaks its operator's
 * laws infers nothing, so that inference may rely on them: the verifier, which follows, reports it.
 */
#include "ir/ops/infer.h"
#include "ir/ops/qop.h"

/* ---- one node ---- */

/* Whether the node has the operands that its schema asks for and keeps its operator's laws. */
static bool lawful(const Infer *s, const OpDef *op, OpCtx c) {
    c.d = s->mute;
    return !op->verify || (node_count_operands(c.node, s->mute) && op->verify(&c));
}

/* Lists of dimensions are of rank 1. */
static bool shapes_are_lists(const OpDef *op, const OpCtx *c) {
    for (size_t i = 0; op->shapes >> i; i++) {
        int rank = op->shapes >> i & 1 ? op_type(c, i).rank : 1;
        if (op_in(c, i) && rank >= 0 && rank != 1)
            return op_error_in(c, i, "a list of dimensions has rank 1, not %d", rank);
    }
    return true;
}

/* True also where there is nothing to infer, or nothing that could be relied on. */
static bool infer_op(const Infer *s, Node *n, const OpDef *op, OpCtx *c) {
    n->faulty = !lawful(s, op, *c);
    return n->faulty || (shapes_are_lists(op, c) && (!op->infer || op->infer(c)));
}

static bool infer_qop(const Infer *s, Node *n, OpCtx *c, const OpDef **op) {
    QopView view;
    if (!qop_view(n, op, &view, s->d))
        return false;
    *c = qop_ctx(n, &view, s->d);
    c->arena = s->scratch;
    if (!n->typed) /* wrong attributes were reported */
        return true;
    if (!infer_op(s, n, *op, c))
        return false;
    if (c->out[0].kind == TYPE_TENSOR)
        c->out[0].elem = qop_result_elem(&view);
    return true;
}

static void drop_unfit(Node *n) {
    if (node_rank_fits(n))
        return;
    n->def = NULL;
    n->typed = NULL;
}

/* What a file states of results in more dimensions than operators look at may be wrong: they shall
 * not see it. NULL: nothing is hidden. */
static const Type *hide_ranks(const Node *n) {
    Type *stated = NULL;
    for (size_t i = 0; i < n->n_out; i++) {
        Value *v = n->out[i];
        if (!v || v->type.rank <= MAX_RANK)
            continue;
        if (!stated)
            stated = NEW_ARRAY(n->graph->module->arena, Type, n->n_out);
        stated[i] = v->type;
        v->type = TYPE_UNKNOWN;
    }
    return stated;
}

static void unhide(const Node *n, const Type *stated) {
    for (size_t i = 0; stated && i < n->n_out; i++)
        if (stated[i].kind != TYPE_NONE)
            n->out[i]->type = stated[i];
}

static bool infer_results(Infer *s, Node *n) {
    if (n->misread || node_reads_faulty(n)) /* one mistake, one error */
        return true;
    const Type *hidden = s->keep ? hide_ranks(n) : NULL;
    drop_unfit(n);
    const OpDef *op = n->def;
    Type few[OP_FEW];
    OpCtx c = op_ctx_few(n, few, s->d);
    c.arena = s->scratch;
    bool ok = true;
    if (op)
        ok = infer_op(s, n, op, &c);
    else if (qop_of(n))
        ok = infer_qop(s, n, &c, &op);
    else
        infer_taken_apart(s, &c);
    unhide(n, hidden);
    if (ok && op && n->n_out && c.out[0].kind == TYPE_TENSOR && n->def && node_on_integers(n))
        c.out[0].elem = node_integer_elem(n, c.out[0].elem);
    for (size_t i = 0; ok && i < n->n_out; i++)
        ok = infer_join(s, &c, op, i);
    arena_clear(s->scratch);
    return ok;
}

/* The node's own results; those of its subgraphs are there already. An operator on more dimensions
 * than its laws and kernels have room for becomes one that we do not know. */
static void infer_node(Infer *s, Node *n, bool entered) {
    n->faulty = n->misread;
    int before = diags_errors(s->d);
    bool ok = !entered || infer_results(s, n);
    drop_unfit(n);
    n->told = !entered || !(ok || diag_reason(s->d, ok, before, n->loc, node_text(n)));
    n->faulty |= n->told;
    s->ok = s->ok && !n->told;
}

/* ---- bodies ---- */

Graph *node_branch(const Node *n) {
    Graph *runs = NULL;
    if (!n->def || !n->def->skips || !n->def->yields_results)
        return NULL;
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++) {
            Graph *body = n->attrs[i].v.g[k];
            if (n->def->skips(n, body))
                continue;
            if (runs)
                return NULL;
            runs = body;
        }
    return runs;
}

static void infer_graph(Infer *s, Graph *g);

static void infer_graphs(Infer *s, const Node *n) {
    Infer quiet = *s;
    bool may_skip = n->def && n->def->skips;
    quiet.d = quiet.mute;
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++) {
            Graph *body = n->attrs[i].v.g[k];
            if (!may_skip || !n->def->skips(n, body))
                infer_graph(may_skip && s->early ? &quiet : s, body);
        }
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
static bool guess_body(Infer *s, const Node *n, OpCtx *c, const Graph *body, const Type *given) {
    Kept kept = {.arena = n->graph->module->arena};
    if (!s->refine || s->guesses == MOST_GUESSES)
        return false;
    keep_types(&kept, n);
    for (size_t i = 0; i < body->n_in; i++)
        infer_guess(kept.arena, body->in[i], given[i]);
    Infer guess = {.d = s->mute,
                   .mute = s->mute,
                   .refine = true,
                   .ok = true,
                   .guesses = s->guesses + 1,
                   .scratch = s->scratch};
    infer_graphs(&guess, n);
    if (guess.ok && n->def->keeps(c))
        return true;
    for (size_t i = 0; i < kept.n; i++)
        kept.values[i]->type = kept.types[i];
    return false;
}

/* False where its inputs contradict what the node hands in. */
static bool infer_bodies(Infer *s, Node *n) {
    const Graph *body = NULL;
    bool ok = true;
    OpCtx c;
    if (n->def && n->def->enter && n->typed) {
        c = op_ctx(n, s->mute);
        body = lawful(s, n->def, c) ? n->def->enter(&c) : NULL;
    }
    if (body) {
        Type *given = NEW_ARRAY(c.arena, Type, body->n_in);
        n->def->given(&c, given);
        if (guess_body(s, n, &c, body, given))
            return true;
        for (size_t i = 0; i < body->n_in; i++)
            ok = infer_give(s, n, body->in[i], given[i]) && ok;
    }
    infer_graphs(s, n);
    return ok;
}

static void infer_graph(Infer *s, Graph *g) {
    FOR_NODES(n, g)
    infer_node(s, n, infer_bodies(s, n));
}

static Infer begin(Module *m, bool refine, bool keep, Diags *d) {
    Diags *mute = diags_new(m->arena, NULL, false);
    return (Infer){.d = d,
                   .mute = mute,
                   .refine = refine,
                   .keep = keep,
                   .ok = true,
                   .scratch = arena_scratch(m->arena)};
}

static bool end(Infer *s) {
    arena_free(s->scratch);
    return s->ok;
}

bool node_infer(Node *n, Diags *d) {
    Infer s = begin(n->graph->module, false, false, d);
    infer_node(&s, n, true);
    return end(&s);
}

/* Graphs of functions have no types of their own: they get them where they are inlined. */
bool module_infer(Module *m, Diags *d) {
    Infer s = begin(m, false, false, d);
    infer_graph(&s, m->graph);
    return end(&s);
}

/* What a function states is never inferred: it is held against what its nodes take. */
static void look_at_function(Graph *g, void *ctx) {
    const Infer *s = ctx;
    FOR_NODES(n, g)
    if (node_in_function(n) && !node_types_fit(n, s->mute))
        infer_doubt(s, n);
}

bool module_infer_onnx(Module *m, Diags *d) {
    Infer s = begin(m, false, true, d);
    infer_graph(&s, m->graph);
    if (m->n_functions)
        module_each_graph(m, look_at_function, &s);
    return end(&s);
}

static bool refine(Module *m, bool early, Diags *d) {
    Infer s = begin(m, true, false, d);
    s.early = early;
    infer_graph(&s, m->graph);
    return end(&s);
}

bool module_refine(Module *m, Diags *d) {
    return refine(m, false, d);
}

bool module_refine_early(Module *m, Diags *d) {
    return refine(m, true, d);
}
