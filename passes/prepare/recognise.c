/* Chains of operators that do what one operator does, as exporters spell it for want of an opset,
 * become that operator: one table on integers, where five nodes would be rounded one by one. What
 * is recognised is said by the functions of the library that are marked so (passes/match.h). One
 * walk from the ends of the graph, the largest chain first.
 *
 * Where the opset lacks the operator it is com.microsoft's of the same name, or stands all the same
 * (OpDef.composite) until spell-onnx spells it out again. */
#include "passes/candidates.h"
#include "passes/edit.h"
#include "passes/inline.h"
#include "passes/match.h"

typedef struct Recognise {
    Module *m;
    PassContext *c;
    const char *by;
    CandidateTable *candidates;
    Uses *uses;
    int64_t opset;
    bool *gone; /* by Node.id: within a match */
    uint32_t n_gone;
    bool any, microsoft, calls; /* what the module has now: recognised operators */
    Match match;
} Recognise;

/* ---- the operator in place of the chain ---- */

/* What says more than the operator's default. */
static void state_attr(Node *n, const Attr *a) {
    Attr room;
    const Attr *has = attr_effective(n, a->name, &room);
    if (!has || !attr_same(has, a, -1))
        node_set_attr(n, a);
}

static void state_attrs(Node *n, const Match *m) {
    for (size_t i = 0; i < m->f->n_defaults; i++)
        if (!function_uses(m->f, m->f->defaults[i].name))
            state_attr(n, &m->f->defaults[i]);
    for (size_t i = 0; i < m->n_attrs; i++)
        state_attr(n, &m->attrs[i]);
}

/* As the opset has it; else com.microsoft's of the name, where it knows all attributes; else to be
 * spelled out again. False where the operator cannot stand here. */
static bool settle_domain(const Recognise *r, Node *n) {
    const OpDef *own = op_find(n->domain, n->op);
    const OpDef *theirs = op_find(STR("com.microsoft"), n->op);
    if (!domain_is_onnx(n->domain) || onnx_schema_find(n->domain, n->op, (int)r->opset))
        return true;
    bool knows = theirs;
    for (size_t i = 0; theirs && i < n->n_attrs; i++)
        knows = knows && op_attr(theirs, n->attrs[i].name);
    if (knows)
        n->domain = STR("com.microsoft");
    return knows || (own && (own->composite || own->since_in_onnx));
}

static bool same_shape(Type x, Type y) {
    if (x.kind != y.kind || x.rank != y.rank)
        return false;
    for (int i = 0; i < x.rank; i++)
        if (!dim_equal(x.dims[i], y.dims[i]) && (x.dims[i].value >= 0 || y.dims[i].value >= 0))
            return false;
    return true;
}

/* What a normalization multiplies and adds has the shape of what is normalized, from an axis on. */
static bool is_of_rows(const Node *n, size_t i) {
    const Value *v = node_input(n, i);
    int64_t axis = node_int(n, "axis", -1);
    int rank = value_rank(n->in[0]), inner = (int)(axis < 0 ? -axis : rank - axis);
    if (!v)
        return true;
    bool same = rank >= inner && value_rank(v) == inner;
    for (int k = 0; same && k < inner; k++)
        same = dim_equal(v->type.dims[k], n->in[0]->type.dims[rank - inner + k]);
    return same;
}

/* The operator as it would stand there: its result is the value's, in type and shape. */
static bool is_lawful(const Recognise *r, Node *n, const Value *result) {
    if (!op_resolve(n, r->m->mute))
        return false;
    if (!n->def)
        return library_find(r->c->library, n->domain, n->op);
    OpCtx c = op_ctx(n, NULL);
    bool ok = node_count_operands(n, r->m->mute) && (!n->def->verify || n->def->verify(&c)) &&
              n->def->infer(&c) && same_shape(c.out[0], result->type);
    for (size_t i = 1; ok && i < n->n_in && i < 32; i++)
        ok = !(n->def->quant.scaled.proportional >> i & 1) || is_of_rows(n, i);
    return ok;
}

static Node *operator_of(Recognise *r, const Match *m, const Node *last) {
    const Function *f = m->f;
    size_t n_in = f->body->n_in;
    while (n_in && !m->in[n_in - 1])
        n_in--;
    Node *n =
        node_new(last->graph, domain_is_onnx(f->domain) ? STR_NONE : f->domain, f->name, n_in, 1);
    for (size_t i = 0; i < n_in; i++)
        n->in[i] = m->in[i];
    n->name = last->name;
    n->loc = last->loc;
    n->out[0] = last->out[0]; /* to name it in a message; last has it still */
    state_attrs(n, m);
    return settle_domain(r, n) && is_lawful(r, n, last->out[0]) ? n : NULL;
}

static void put(Recognise *r, const Match *m, Node *n, Node *last) {
    for (size_t i = m->n_nodes; i-- > 1;)
        node_from(n, m->nodes[i], r->by);
    node_from(n, last, r->by);
    node_take_result(n, 0, last->out[0]);
    node_insert_before(last, n);
    for (size_t i = 0; i < m->n_nodes; i++)
        r->gone[m->nodes[i]->id] = true;
    r->any = true;
    r->microsoft |= str_is(n->domain, "com.microsoft");
    r->calls |= !n->def;
}

/* ---- the walk ---- */

static const char *full_name(const Recognise *r, const Function *f) {
    return arena_strf(r->m->arena, STR_FMT "%s" STR_FMT, STR_ARG(f->name),
                      f->overload.n ? "::" : "", STR_ARG(f->overload))
        .s;
}

static bool is_asked_about(const Recognise *r, const Function *f) {
    return r->c->explain_match && str_is(f->name, r->c->explain_match);
}

static void tell(Recognise *r, const Node *last, const char *nearest) {
    const Match *m = &r->match;
    if (!nearest || m->reached < 2)
        return;
    diag(r->c->d, DIAG_REMARK, m->stopped->loc, "%s nearly is %s: %zu nodes fit, not %s: %s",
         node_text(last), nearest, m->reached, node_text(m->stopped), m->why);
}

/* Functions count dimensions by dividing, and of nothing there is nothing to gain. */
static bool is_empty(const Value *v) {
    size_t count;
    return type_count(v->type, &count) && count == 0;
}

static void look_at(Recognise *r, Node *n) {
    const Candidates *of = candidates_of(r->candidates, n);
    const char *nearest = NULL;
    if (!of || n->n_out != 1 || !n->out[0] || is_empty(n->out[0]) || r->gone[n->id])
        return;
    LastNode last = candidates_node(r->candidates, n);
    r->match.reached = 0;
    for (size_t i = 0; i < of->n; i++) {
        const Function *f = of->items[i].f;
        size_t before = r->match.reached;
        bool asked = is_asked_about(r, f);
        if (!asked && !candidate_may_end(r->candidates, &of->items[i], &last))
            continue;
        if (!r->uses)
            r->uses = uses_new(r->m);
        if (match_function(r->c->library, r->uses, f, n->out[0], asked, &r->match)) {
            Node *made = operator_of(r, &r->match, n);
            if (made && asked)
                diag(r->c->d, DIAG_REMARK, n->loc, "%s is %s", node_text(n), full_name(r, f));
            if (made) {
                put(r, &r->match, made, n);
                return;
            }
            if (asked && !nearest)
                diag(r->c->d, DIAG_REMARK, n->loc,
                     "%s is %s but for types: the operator would have another result, or "
                     "operands that it does not take",
                     node_text(n), full_name(r, f));
        }
        if (r->match.reached > before)
            nearest = full_name(r, f);
    }
    tell(r, n, nearest);
}

static void walk(Graph *g, void *ctx) {
    Recognise *r = ctx;
    if (g->function)
        return;
    for (Node *n = g->last, *before; n; n = before) {
        before = n->prev;
        if (n->id < r->n_gone)
            look_at(r, n);
    }
    FOR_NODES(n, g)
    if (n->id < r->n_gone && r->gone[n->id])
        node_remove(n);
}

/* A function that is no operator is replaced by its own body at once. */
static bool can_stand(const void *ctx, Str domain, Str op) {
    (void)ctx;
    return op_find(domain, op);
}

static const Function *callee(void *ctx, const Node *n, const CallPath *path) {
    const Recognise *r = ctx;
    Chooser c = {r->c->library, r->opset, can_stand, NULL};
    return op_find(n->domain, n->op) ? NULL : library_choose(&c, n, path);
}

static bool recognise(Module *m, PassContext *c, const char *by, Str only) {
    if (!c->library)
        return true;
    Recognise r = {.m = m, .c = c, .by = by};
    r.candidates = candidates_new(m->scratch, c->library, only);
    r.opset = module_opset(m, STR(""));
    r.n_gone = m->n_nodes;
    r.gone = NEW_ARRAY(m->scratch, bool, m->n_nodes + 1);
    module_each_graph(m, walk, &r);
    if (!r.any)
        return true;
    if (r.microsoft)
        module_import_microsoft(m);
    Inlining what = {by, callee, NULL, &r, r.opset, false};
    if (r.calls && !inline_calls(m, c, &what))
        return false;
    edit_sweep(m);
    return true;
}

bool pass_recognise(Module *m, PassContext *c) {
    return recognise(m, c, "recognise", STR_NONE);
}

bool pass_fuse_gelu(Module *m, PassContext *c) {
    return recognise(m, c, "fuse-gelu", STR("Gelu"));
}
