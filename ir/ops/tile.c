/* Tile: the operand repeated along its axes. Only types changed since opset 6. */
#include "ir/ops/bind.h"

enum { DATA, REPEATS };

static bool repeats(const OpCtx *c, Ints *r, bool *known) {
    Type x = op_type(c, DATA);
    *known = x.rank >= 0 && op_ints(c, REPEATS, r);
    if (!*known)
        return true;
    if (r->n != (size_t)x.rank)
        return op_error_in(c, REPEATS, "%zu repeats for rank %d", r->n, x.rank);
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i] < 0)
            return op_error_in(c, REPEATS, "repeat %lld is negative", (long long)r->v[i]);
    return true;
}

static bool infer(OpCtx *c) {
    Type x = op_type(c, DATA);
    Ints r;
    bool known;
    if (!repeats(c, &r, &known))
        return false;
    if (x.rank < 0)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++)
        dims[i] = !known                               ? dim_unknown()
                  : r.v[i] == 1 || x.dims[i].value < 0 ? (r.v[i] == 1 ? x.dims[i] : dim_unknown())
                                                       : dim_of(dim_mul(x.dims[i].value, r.v[i]));
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static int move_axis(const OpCtx *c, int axis) {
    Ints r;
    bool known;
    return repeats(c, &r, &known) && known && r.v[axis] == 1 ? axis : -1;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[DATA]->type, y = n->out[0]->type;
    int64_t *from[MAX_RANK];
    Ints r;
    if (!op_ints(c, REPEATS, &r))
        return bind_unsupported(b, n, "its repeats are not constant");
    if (!bind_equal_quant(n->in[DATA], n->out[0]))
        return bind_unsupported(b, n, "operand and result are quantized differently");
    for (int i = 0; i < x.rank; i++) {
        from[i] = NEW_ARRAY(binder_arena(b), int64_t, (size_t)y.dims[i].value + 1);
        for (int64_t k = 0; k < y.dims[i].value; k++)
            from[i][k] = k % x.dims[i].value;
    }
    return bind_take(b, n, n->in[DATA], n->out[0], from);
}

const OpDef op_Tile = {
    .domain = "",
    .name = "Tile",
    .shapes = 1u << REPEATS,
    .fixed = 1u << REPEATS,
    .infer = infer,
    .quant = {.kind = QUANT_MOVE, .data = 1u << DATA, .move.axis = move_axis},
    .bind = bind,
};
