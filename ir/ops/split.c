/* Split: parts of a tensor along an axis. From 13 the lengths are an operand, 18 added num_outputs
 * (which an equal split then has to state). */
#include "ir/ops/told.h"

typedef struct SplitAttrs {
    int64_t axis, num_outputs;
    Ints split; /* before 13 */
} SplitAttrs;

static const AttrSpec split_attrs[] = {
    A_INT(SplitAttrs, axis, 0),
    A_INT(SplitAttrs, num_outputs, 0),
    A_INTS(SplitAttrs, split),
    A_END,
};

/* The length of each part; without stated ones equal, the last smaller. */
static bool split_lengths(const OpCtx *c, Dim dim, int64_t *lengths, bool *known) {
    const SplitAttrs *a = c->attrs;
    Ints stated = a->split;
    int64_t n = (int64_t)c->n_out, part = dim.value < 0 ? -1 : dim_parts(dim.value, n), sum = 0;
    bool equal = !stated.v && !op_in(c, 1) && !a->num_outputs;
    if (equal && dim.value >= 0 && dim.value % n)
        return op_error_in(c, 0, "the axis has %lld, which %zu equal results do not share",
                           (long long)dim.value, c->n_out);
    *known = stated.v || !op_in(c, 1) || op_ints(c, 1, &stated);
    if (stated.v && stated.n != c->n_out)
        return op_error_param(c, "split", 1, "%zu lengths for %zu results", stated.n, c->n_out);
    for (int64_t i = 0; *known && i < n; i++) {
        int64_t rest = dim.value - i * part;
        lengths[i] = stated.v ? stated.v[i] : part < 0 ? -1 : part < rest ? part : rest;
        if (stated.v && lengths[i] < 0)
            return op_error_param(c, "split", 1, "a length is %lld", (long long)lengths[i]);
        lengths[i] = lengths[i] < 0 && part >= 0 ? 0 : lengths[i];
        sum = dim_add(sum, lengths[i]);
    }
    if (*known && stated.v && dim.value >= 0 && sum != dim.value)
        return op_error_param(c, "split", 1, "the lengths add up to %lld, the axis has %lld",
                              (long long)sum, (long long)dim.value);
    return true;
}

static bool split_infer(OpCtx *c) {
    const SplitAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    int axis;
    bool known;
    if (x.rank < 0 || c->n_out == 0)
        return true;
    if (a->num_outputs && a->num_outputs != (int64_t)c->n_out)
        return op_error_attr(c, "num_outputs", "num_outputs is %lld, there are %zu results",
                             (long long)a->num_outputs, c->n_out);
    int64_t *lengths = NEW_ARRAY(c->arena, int64_t, c->n_out);
    if (!op_axis(c, a->axis, x.rank, &axis) || !split_lengths(c, x.dims[axis], lengths, &known))
        return false;
    for (size_t i = 0; i < c->n_out; i++) {
        Dim *dims = arena_copy(c->arena, x.dims, (size_t)x.rank * sizeof *dims);
        dims[axis] = known && lengths[i] >= 0 ? dim_of(lengths[i]) : dim_unknown();
        c->out[i] = type_tensor(type_real_elem(x), x.rank, dims);
    }
    return true;
}

static int split_move(const OpCtx *c, int axis) {
    const SplitAttrs *a = c->attrs;
    int rank = op_type(c, 0).rank;
    return (a->axis < 0 ? a->axis + rank : a->axis) == axis ? -1 : axis;
}

static bool split_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)d;
    if (from < 13 && to >= 13)
        upgrade_ints_attr(n, "split", 1, names);
    if (from < 18 && to >= 18 && (n->n_in < 2 || !n->in[1]))
        node_set_int(n, "num_outputs", (int64_t)n->n_out);
    return true;
}

static bool split_bind(Binder *b, const Node *n, const OpCtx *c) {
    const SplitAttrs *a = c->attrs;
    Type x = n->in[0]->type;
    int axis;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    int32_t outer = bind_extent(x, 0, axis), whole = bind_extent(x, axis, x.rank);
    int64_t offset = 0;
    ElemType e = bind_elem(n->in[0]);
    if (node_shape_operand(n) && !bind_check_parts(b, n, 1, axis))
        return false;
    for (size_t i = 0; i < n->n_out; i++) {
        if (!n->out[i]) /* its length is what the others leave over, and they are fixed */
            return bind_unsupported(b, n, "one of its results has no name");
        if (!bind_equal_quant(n->in[0], n->out[i]))
            return bind_unsupported(b, n, "operand and result are quantized differently");
        int32_t part = bind_extent(n->out[i]->type, axis, x.rank);
        if (part > whole - offset) /* with lengths that are not constant only the types tell */
            return bind_unsupported(b, n, "its results are larger than its operand");
        qk_copy_nd_params p = {.rank = 2,
                               .dim = {outer, part},
                               .ss = {whole, 1},
                               .ds = {part, 1},
                               .src_offset = offset};
        if (!bind_call(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p, 2,
                       (int[]){bind_value(b, n->in[0]), bind_value(b, n->out[i])}))
            return false;
        offset += part;
    }
    return true;
}

const OpDef op_Split = {
    .domain = "",
    .name = "Split",
    .fixed = 1u << 1,
    .attrs_size = sizeof(SplitAttrs),
    .attrs = split_attrs,
    .infer = split_infer,
    .quant = {.kind = QUANT_MOVE, .data = 1, .move.axis = split_move},
    .upgrade = split_upgrade,
    .bind = split_bind,
};
