/* Expand: only types changed. */
#include "ir/ops/told.h"

/* One dimension, of which the shape may not be known: what is not 1 stays. */
static bool expanded(Dim x, const int64_t *want, Dim *y) {
    if (want)
        return dim_broadcast(x, dim_of(*want), y);
    *y = x.value > 1 ? x : dim_unknown();
    return true;
}

static bool expand_infer(OpCtx *c) {
    Type x = op_type(c, 0);
    SomeInts shape;
    if (x.kind != TYPE_TENSOR)
        return true;
    if (x.rank < 0 || !op_some_ints(c, 1, &shape)) {
        c->out[0] = type_tensor(type_real_elem(x), -1, NULL);
        return true;
    }
    int rank = x.rank > (int)shape.n ? x.rank : (int)shape.n;
    if (shape.n > MAX_RANK)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank + 1);
    const int64_t one = 1;
    for (int i = 0; i < rank; i++) {
        int xi = i - (rank - x.rank), si = i - (rank - (int)shape.n);
        const int64_t *want = si < 0 ? &one : shape.known[si] ? &shape.v[si] : NULL;
        if (want && *want < 0)
            return op_error_in(c, 1, "dimension %d of the shape is %lld", si, (long long)*want);
        if (!expanded(xi < 0 ? dim_of(1) : x.dims[xi], want, &dims[i]))
            return op_error_in(c, 1, "%s does not broadcast to the shape", type_text(c->arena, x));
    }
    c->out[0] = type_tensor(type_real_elem(x), rank, dims);
    return true;
}

static int expand_move(const OpCtx *c, int axis) {
    Type x = op_type(c, 0);
    Type y = c->out[0].kind == TYPE_TENSOR ? c->out[0] : c->node->out[0]->type;
    if (y.rank < x.rank)
        return -1;
    int to = axis + y.rank - x.rank;
    return dim_equal(x.dims[axis], y.dims[to]) ? to : -1;
}

static bool expands_to(Type x, Type y) {
    for (int i = 0; i < x.rank; i++) {
        int64_t from = x.dims[i].value;
        if (x.rank > y.rank || (from != 1 && from != y.dims[y.rank - x.rank + i].value))
            return false;
    }
    return true;
}

static bool expand_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    Type y = n->out[0]->type;
    if (!op_quant(n->in[0]) != !op_quant(n->out[0]))
        return bind_unsupported(b, n, "operand and result are quantized differently");
    if (!expands_to(n->in[0]->type, y)) /* with a shape that is not constant only the type tells */
        return bind_unsupported(b, n, "its operand does not expand to the type of its result");
    Broadcast s = bind_broadcast(n->in[0]->type, y, y);
    qk_copy_nd_params p = {.rank = s.rank};
    memcpy(p.dim, s.dim, sizeof p.dim);
    memcpy(p.ss, s.as, sizeof p.ss);
    memcpy(p.ds, s.bs, sizeof p.ds);
    ElemType e = bind_elem(n->in[0]);
    return bind_first(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p);
}

static bool expand_bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    return bind_expanded_length(b, n, op_type(c, 0), n->in[1], length);
}

const OpDef op_Expand = {
    .domain = "",
    .name = "Expand",
    .shapes = 1u << 1,
    .fixed = 1u << 1,
    .infer = expand_infer,
    .quant = {.kind = QUANT_MOVE, .data = 1, .move.axis = expand_move},
    .bind_length = expand_bind_length,
    .bind = expand_bind,
};
