/* Tile: the operand repeated along its axes. Only types changed since opset 6. */
#include "ir/ops/told.h"

enum { DATA, REPEATS };

/* False after an error; `known` is false where not even their number is. */
static bool repeats(const OpCtx *c, SomeInts *r, bool *known) {
    Type x = op_type(c, DATA);
    *known = x.rank >= 0 && op_some_ints(c, REPEATS, r);
    if (!*known)
        return true;
    if (r->n != (size_t)x.rank)
        return op_error_in(c, REPEATS, "%zu repeats for rank %d", r->n, x.rank);
    for (size_t i = 0; i < r->n; i++)
        if (r->known[i] && r->v[i] < 0)
            return op_error_in(c, REPEATS, "repeat %lld is negative", (long long)r->v[i]);
    return true;
}

static Dim repeated(Dim x, bool known, int64_t times) {
    if (known && times == 1)
        return x;
    return known && x.value >= 0 ? dim_of(dim_mul(x.value, times)) : dim_unknown();
}

static bool infer(OpCtx *c) {
    Type x = op_type(c, DATA);
    SomeInts r;
    bool known;
    if (!repeats(c, &r, &known))
        return false;
    if (x.rank < 0)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++)
        dims[i] = known ? repeated(x.dims[i], r.known[i], r.v[i]) : dim_unknown();
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static int move_axis(const OpCtx *c, int axis) {
    SomeInts r;
    bool known;
    return repeats(c, &r, &known) && known && r.known[axis] && r.v[axis] == 1 ? axis : -1;
}

/* Where the operand's length is for a run to tell, so is where elements come from. */
static bool bind_in_run(Binder *b, const Node *n) {
    Type x = n->in[DATA]->type;
    int64_t box[3 * MAX_RANK] = {0};
    int at = bind_const(b, ELEM_INT64, 3 * (size_t)x.rank, box, "no pads");
    return bind_take_in_run(b, n, STR("wrap"), at);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[DATA]->type, y = n->out[0]->type;
    int64_t *from[MAX_RANK];
    (void)c;
    if (!bind_equal_quant(n->in[DATA], n->out[0]))
        return bind_unsupported(b, n, "operand and result are quantized differently");
    if (bind_any_length(b) || node_shape_operand(n))
        return bind_in_run(b, n);
    for (int i = 0; i < x.rank; i++) {
        from[i] = NEW_ARRAY(binder_arena(b), int64_t, (size_t)y.dims[i].value + 1);
        for (int64_t k = 0; k < y.dims[i].value; k++)
            from[i][k] = k % x.dims[i].value;
    }
    return bind_take(b, n, n->in[DATA], n->out[0], from);
}

static bool bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    Type x = op_type(c, DATA);
    qk_tile_dims_params p = {.rank = x.rank};
    bind_dims(x, p.from);
    int dims = bind_temp(b, ELEM_INT64, (size_t)x.rank);
    return bind_told_list(b, n, REPEATS, (size_t)x.rank) &&
           bind_call(b, n, "qk_tile_dims", &p, sizeof p, 2,
                     (int[]){bind_value(b, n->in[REPEATS]), dims}) &&
           bind_told_length(b, n, dims, length);
}

const OpDef op_Tile = {
    .domain = "",
    .name = "Tile",
    .shapes = 1u << REPEATS,
    .fixed = 1u << REPEATS,
    .infer = infer,
    .quant = {.kind = QUANT_MOVE, .data = 1u << DATA, .move.axis = move_axis},
    .bind_length = bind_length,
    .bind = bind,
};
