/* com.microsoft's operators on integers with channels last, which onnxruntime's optimizer leaves in
 * the models that it saves, become those of ONNX between two Transposes:
 *
 *   QLinearConv, QLinearAveragePool, QLinearGlobalAveragePool <channels_last=1>, NhwcMaxPool
 *
 * Transposes that undo each other go, so that of a chain of these operators, which stood between
 * two Transposes itself, none is left. Weights have ONNX's order in either form. */
#include "ir/ops/qop.h"
#include "passes/raise/raise.h"

typedef struct Turn {
    const char *op, *domain, *to;
} Turn;

static const Turn turns[] = {
    {"QLinearConv", "", "QLinearConv"},
    {"QLinearAveragePool", "com.microsoft", "QLinearAveragePool"},
    {"QLinearGlobalAveragePool", "com.microsoft", "QLinearGlobalAveragePool"},
    {"NhwcMaxPool", "", "MaxPool"},
};

static const Turn *turn_of(const Node *n) {
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
        if (node_is_in(n, "com.microsoft", turns[i].op) &&
            (!*turns[i].domain || node_int(n, "channels_last", 0)))
            return &turns[i];
    return NULL;
}

bool is_channels_last(const Node *n) {
    return turn_of(n) != NULL;
}

/* Channels are where ONNX has them, and the operator is ONNX's but for its name. */
static bool stands_first(const Node *n, const Turn *t) {
    return str_is(n->op, t->to) && !node_int(n, "channels_last", 0);
}

/* As many dimensions as the data have; -1 where nothing tells. */
static int rank_of(const Node *n) {
    const Attr *kernel = node_attr(n, "kernel_shape");
    if (n->in[0]->type.kind == TYPE_TENSOR && n->in[0]->type.rank >= 0)
        return n->in[0]->type.rank;
    return kernel && kernel->kind == ATTR_INTS ? (int)kernel->n + 2 : -1;
}

/* Where axis i of the result comes from: channels to the front, or behind all others. */
static int64_t source(int i, int rank, bool front) {
    if (i == 0)
        return 0;
    return front ? (i == 1 ? rank - 1 : i - 1) : (i == rank - 1 ? 1 : i + 1);
}

static bool turns_channels(const Node *n, bool front) {
    const Attr *perm = n && node_is(n, "Transpose") ? node_attr(n, "perm") : NULL;
    bool fits = perm && perm->kind == ATTR_INTS && perm->n >= 3;
    for (size_t i = 0; fits && i < perm->n; i++)
        fits = perm->v.i[i] == source((int)i, (int)perm->n, front);
    return fits;
}

static Type turned_type(Arena *a, Type t, bool front) {
    if (t.kind != TYPE_TENSOR || t.rank < 3)
        return t;
    Dim *dims = NEW_ARRAY(a, Dim, (size_t)t.rank);
    for (int i = 0; i < t.rank; i++)
        dims[i] = t.dims[source(i, t.rank, front)];
    return type_tensor(t.elem, t.rank, dims);
}

static Node *transpose(Raise *r, const Node *like, Value *x, int rank, bool front) {
    int64_t perm[MAX_RANK];
    Node *n = build_node(&r->b, like, "Transpose", STR_NONE, OPERANDS(x));
    for (int i = 0; i < rank; i++)
        perm[i] = source(i, rank, front);
    node_set_ints(n, "perm", perm, (size_t)rank);
    return n;
}

static void turn(Raise *r, Node *n, const Turn *t, int rank) {
    Value *x = n->in[0], *y = n->out[0];
    Node *before = transpose(r, n, x, rank, true), *behind = transpose(r, n, y, rank, false);
    n->in[0] = node_add_output(before, 0, derived_name(&r->b, x->name, "_first"),
                               turned_type(r->b.a, x->type, true));
    n->domain = str_from(t->domain);
    n->op = str_from(t->to);
    node_drop_attr(n, "channels_last");
    node_follow(n, 0, behind, derived_name(&r->b, y->name, "_first"),
                turned_type(r->b.a, y->type, true));
    node_insert_before(n, before);
    Node *made[] = {before, n, behind};
    for (size_t i = 0; i < 3; i++) {
        op_resolve(made[i], r->b.d);
        node_infer(made[i], r->b.d);
    }
}

static void turn_graph(Graph *g, void *ctx) {
    Raise *r = ctx;
    for (Node *n = g->first, *next; n; n = next) {
        bool plain = n->n_in && n->in[0] && !n->in[0]->type.quant && n->n_out == 1 && n->out[0] &&
                     !n->out[0]->type.quant;
        const Turn *t = plain ? turn_of(n) : NULL;
        int rank = t ? rank_of(n) : -1;
        next = n->next;
        if (t && stands_first(n, t)) {
            n->domain = STR_NONE;
            node_drop_attr(n, "channels_last");
            op_resolve(n, r->b.d);
        } else if (rank >= 3 && rank <= MAX_RANK) {
            turn(r, n, t, rank);
        } else if (n->n_out && n->out[0] && n->out[0]->type.kind != TYPE_TENSOR) {
            node_infer(n, r->b.d); /* behind one that is understood now */
        }
    }
}

/* ---- Transposes that undo each other ---- */

static void join(Graph *g, void *ctx) {
    Raise *r = ctx;
    FOR_NODES(n, g)
    for (int front = 0; front < 2; front++) {
        const Node *before = turns_channels(n, front) && n->in[0] ? n->in[0]->def : NULL;
        if (!turns_channels(before, !front) || uses_is_output(r->uses, n->out[0]))
            continue;
        raise_replace(r, n->out[0], before->in[0]);
        node_remove(n);
        break;
    }
}

static void drop_unread(Graph *g, void *ctx) {
    const Raise *r = ctx;
    const Use *use;
    FOR_NODES(n, g)
    if ((turns_channels(n, true) || turns_channels(n, false)) &&
        uses_of(r->uses, n->out[0], &use) == 0)
        node_remove(n);
}

static void look(Graph *g, void *ctx) {
    bool *any = ctx;
    FOR_NODES(n, g)
    *any |= is_channels_last(n);
}

void raise_channels_last(Raise *r) {
    bool any = false;
    raise_each_graph(r->m, look, &any);
    if (!any)
        return;
    raise_each_graph(r->m, turn_graph, r);
    r->uses = uses_new(r->m);
    raise_each_graph(r->m, join, r);
    r->uses = uses_new(r->m);
    raise_each_graph(r->m, drop_unread, r);
}
