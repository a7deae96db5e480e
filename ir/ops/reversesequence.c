/* ReverseSequence: the beginning of each sequence of a batch in reverse order. */
#include "ir/ops/bind.h"

enum { X, LENS };

typedef struct ReverseAttrs {
    int64_t batch_axis, time_axis;
} ReverseAttrs;

static const AttrSpec attrs[] = {
    A_INT(ReverseAttrs, batch_axis, 1),
    A_INT(ReverseAttrs, time_axis, 0),
    A_END,
};

static bool verify(const OpCtx *c) {
    const ReverseAttrs *a = c->attrs;
    Type x = op_type(c, X);
    if (a->batch_axis + a->time_axis != 1 || a->batch_axis * a->time_axis != 0)
        return op_error_attr(c, "time_axis", "one of batch_axis and time_axis is 0, the other 1");
    if (x.rank >= 0 && x.rank < 2)
        return op_error_in(c, X, "rank %d has no sequences", x.rank);
    Type lens = op_type(c, LENS);
    Dim batch = x.rank < 0 ? dim_unknown() : x.dims[a->batch_axis];
    bool fits = lens.rank < 0 || (lens.rank == 1 && (lens.dims[0].value < 0 || batch.value < 0 ||
                                                     lens.dims[0].value == batch.value));
    return fits ||
           op_error_in(c, LENS, "%s is not a length for each sequence", type_text(c->arena, lens));
}

/* Along the time each sequence is turned around by itself. */
static int move_axis(const OpCtx *c, int axis) {
    return axis == ((const ReverseAttrs *)c->attrs)->time_axis ? -1 : axis;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const ReverseAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    ElemType e = bind_elem(n->in[X]);
    int32_t inner = bind_extent(x, 2, x.rank), row = bind_extent(x, 1, x.rank);
    qk_reverse_rows_params p = {.batch = (int32_t)x.dims[a->batch_axis].value,
                                .n = (int32_t)x.dims[a->time_axis].value,
                                .inner = inner,
                                .bs = a->batch_axis ? inner : row,
                                .ns = a->batch_axis ? row : inner};
    if (bind_count(n->in[LENS]) != p.batch)
        return bind_unsupported(b, n, "%d lengths for %d sequences", bind_count(n->in[LENS]),
                                p.batch);
    if (!bind_call(
            b, n, bind_kernel(b, "reverse_rows", 1, &e), &p, sizeof p, 3,
            (int[]){bind_value(b, n->in[X]), bind_value(b, n->in[LENS]), bind_value(b, n->out[0])}))
        return false;
    bind_within(b, n->in[LENS], false, (int32_t[]){p.n + 1}, 1);
    return true;
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const ReverseAttrs *a = c->attrs;
    (void)result;
    return i == X ? move_axis(c, axis) : (int)a->batch_axis;
}

const OpDef op_ReverseSequence = {
    .domain = "",
    .name = "ReverseSequence",
    .attrs_size = sizeof(ReverseAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = op_same_type,
    .slices = slices,
    .quant = {.kind = QUANT_MOVE, .data = 1u << X, .move.axis = move_axis},
    .bind = bind,
};
