/* If. Opsets 11 (no shape may differ less), 13, 16, ...: types and wording only. */
#include "ir/ops/bind.h"

typedef struct IfAttrs {
    Graph *then_branch, *else_branch;
} IfAttrs;

static const AttrSpec attrs[] = {
    A_GRAPH_REQUIRED(IfAttrs, then_branch),
    A_GRAPH_REQUIRED(IfAttrs, else_branch),
    A_END,
};

static bool skips(const Node *n, const Graph *body) {
    const IfAttrs *a = n->typed;
    const Tensor *cond = a && n->n_in ? value_data(n->in[0]) : NULL;
    return cond && cond->elem == ELEM_BOOL && cond->count == 1 &&
           body == (tensor_int(cond, 0) ? a->else_branch : a->then_branch);
}

static bool verify_branch(const OpCtx *c, const Graph *g, const char *name) {
    if (g->n_in)
        return op_error_attr(c, name, "%s has inputs; a branch sees the values around it", name);
    if (g->n_out != c->n_out)
        return op_error_attr(c, name, "%s yields %zu values, the node %zu", name, g->n_out,
                             c->n_out);
    for (size_t i = 0; i < g->n_out; i++) {
        const Value *from = g->out[i], *to = c->node->out[i];
        if (!to || skips(c->node, g) || from->type.kind != TYPE_TENSOR ||
            to->type.kind != TYPE_TENSOR || bind_equal_quant(from, to))
            continue;
        return op_error_attr(c, name,
                             "%s yields '%s' as %s, the result is %s: requantize at its end", name,
                             diag_name(c->d, from->name), type_text(c->arena, from->type),
                             type_text(c->arena, to->type));
    }
    return true;
}

static bool verify(const OpCtx *c) {
    const IfAttrs *a = c->attrs;
    Type cond = op_type(c, 0);
    for (int i = 0; i < cond.rank; i++)
        if (cond.dims[i].value >= 0 && cond.dims[i].value != 1)
            return op_error_in(c, 0, "the condition must be one element");
    return verify_branch(c, a->then_branch, "then_branch") &&
           verify_branch(c, a->else_branch, "else_branch");
}

/* What both branches that may run agree on. */
static Type join(OpCtx *c, const IfAttrs *a, size_t result) {
    Type x = a->then_branch->out[result]->type, y = a->else_branch->out[result]->type;
    if (skips(c->node, a->else_branch))
        return x;
    if (skips(c->node, a->then_branch))
        return y;
    if (x.kind != y.kind || x.kind != TYPE_TENSOR)
        return x.kind == y.kind ? x : TYPE_UNKNOWN;
    ElemType e = type_real_elem(x);
    if (x.rank < 0 || x.rank != y.rank)
        return type_tensor(e, -1, NULL);
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++)
        dims[i] = dim_equal(x.dims[i], y.dims[i]) ? x.dims[i] : dim_unknown();
    return type_tensor(e, x.rank, dims);
}

static bool infer(OpCtx *c) {
    const IfAttrs *a = c->attrs;
    for (size_t i = 0; i < c->n_out; i++) {
        Type x = a->then_branch->out[i]->type, y = a->else_branch->out[i]->type;
        if (x.kind == TYPE_TENSOR && y.kind == TYPE_TENSOR && x.elem && y.elem &&
            type_real_elem(x) != type_real_elem(y) && !skips(c->node, a->then_branch) &&
            !skips(c->node, a->else_branch))
            return op_error_out(c, i, "branches yield %s and %s as result %zu",
                                type_text(c->arena, x), type_text(c->arena, y), i);
        c->out[i] = join(c, a, i);
    }
    return true;
}

static bool bind_branch(Binder *b, const Node *n, const Graph *g) {
    bool ok = bind_graph(b, g);
    for (size_t i = 0; ok && i < n->n_out; i++)
        if (n->out[i])
            ok = bind_alias(b, n, n->out[i], g->out[i]); /* a copy, as the result is bound */
    return ok;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const IfAttrs *a = c->attrs;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            bind_value(b, n->out[i]);
    if (skips(n, a->then_branch))
        return bind_branch(b, n, a->else_branch);
    if (skips(n, a->else_branch))
        return bind_branch(b, n, a->then_branch);
    bind_control(b, n, CALL_IF, bind_value(b, n->in[0]));
    bool ok = bind_branch(b, n, a->then_branch);
    bind_control(b, n, CALL_ELSE, -1);
    ok = bind_branch(b, n, a->else_branch) && ok;
    bind_control(b, n, CALL_END, -1);
    return ok;
}

const OpDef op_If = {
    .domain = "",
    .name = "If",
    .attrs_size = sizeof(IfAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .skips = skips,
    .yields_results = true,
    .fixed = 1,
    .bind = bind,
};
