/* Gather, GatherElements and GatherND: slices and elements at computed places. Gather: 11 allowed
 * negative indices; GatherND: 12 added batch_dims. */
#include "ir/ops/bind.h"

enum { DATA, INDICES, MAX_COPIES = 64 };

/* ---- Gather ---- */

typedef struct GatherAttrs {
    int64_t axis;
} GatherAttrs;

static const AttrSpec gather_attrs[] = {
    A_INT(GatherAttrs, axis, 0),
    A_END,
};

static bool gather_infer(OpCtx *c) {
    const GatherAttrs *a = c->attrs;
    Type x = op_type(c, 0), i = op_type(c, INDICES);
    int axis;
    if (x.rank < 0 || i.rank < 0)
        return true;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    int rank = x.rank - 1 + i.rank;
    if (rank > MAX_RANK)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank + 1);
    for (int k = 0; k < rank; k++)
        dims[k] = k < axis            ? x.dims[k]
                  : k < axis + i.rank ? i.dims[k - axis]
                                      : x.dims[k - i.rank + 1];
    c->out[0] = type_tensor(type_real_elem(x), rank, dims);
    return true;
}

static int gather_move(const OpCtx *c, int axis) {
    const GatherAttrs *a = c->attrs;
    Type x = op_type(c, 0), i = op_type(c, INDICES);
    int64_t at = a->axis < 0 ? a->axis + x.rank : a->axis;
    if (axis == at || i.rank < 0)
        return -1;
    return axis < at ? axis : axis - 1 + i.rank;
}

static int gather_slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const GatherAttrs *a = c->attrs;
    (void)result;
    if (i != INDICES)
        return gather_move(c, axis);
    return axis + (int)(a->axis < 0 ? a->axis + op_type(c, 0).rank : a->axis);
}

/* A copy for each of a few constant indices: what shapes and channel orders need. */
static bool gather_bind(Binder *b, const Node *n, const OpCtx *c) {
    const GatherAttrs *a = c->attrs;
    const Tensor *t = op_const(c, INDICES);
    Type x = n->in[0]->type;
    int axis;
    const Quant *q = op_quant(n->in[0]), *moved = q ? op_moved_quant(c, n->def, q) : NULL;
    if (q ? !moved || !op_quant(n->out[0]) || !quant_equal(moved, op_quant(n->out[0]))
          : op_quant(n->out[0]) != NULL)
        return bind_unsupported(b, n, "operand and result are quantized differently");
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    int32_t length = (int32_t)x.dims[axis].value;
    if (!op_indices_fit(c, INDICES, &length, 1))
        return false;
    if (!t || !t->data || t->count > MAX_COPIES)
        return bind_gather(b, n, axis, true);
    int32_t outer = bind_extent(x, 0, axis), inner = bind_extent(x, axis + 1, x.rank);
    ElemType e = bind_elem(n->in[0]);
    for (size_t k = 0; k < t->count; k++) {
        int64_t at = tensor_int(t, k);
        at += at < 0 ? length : 0;
        qk_copy_nd_params p = {.rank = 2,
                               .dim = {outer, inner},
                               .ss = {length * inner, 1},
                               .ds = {(int32_t)t->count * inner, 1},
                               .src_offset = at * inner,
                               .dst_offset = (int64_t)k * inner};
        if (!bind_first(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p))
            return false;
    }
    return true;
}

const OpDef op_Gather = {
    .domain = "",
    .name = "Gather",
    .attrs_size = sizeof(GatherAttrs),
    .attrs = gather_attrs,
    .infer = gather_infer,
    .slices = gather_slices,
    .quant = {.kind = QUANT_MOVE, .data = 1, .move.axis = gather_move, .move.looks_up = true},
    .bind = gather_bind,
};

/* ---- GatherElements ---- */

typedef struct ElementsAttrs {
    int64_t axis;
} ElementsAttrs;

static const AttrSpec elements_attrs[] = {
    A_INT(ElementsAttrs, axis, 0),
    A_END,
};

static bool elements_verify(const OpCtx *c) {
    return op_elements_fit(c, DATA, INDICES, ((const ElementsAttrs *)c->attrs)->axis);
}

static bool elements_infer(OpCtx *c) {
    Type x = op_type(c, DATA), i = op_type(c, INDICES);
    if (x.kind == TYPE_TENSOR && i.kind == TYPE_TENSOR)
        c->out[0] = type_tensor(type_real_elem(x), i.rank, i.dims);
    return true;
}

/* The indices may reach over a part of the other axes only. */
static int elements_move(const OpCtx *c, int axis) {
    const ElementsAttrs *a = c->attrs;
    Type x = op_type(c, DATA), i = op_type(c, INDICES);
    int64_t at = a->axis < 0 ? a->axis + x.rank : a->axis;
    return axis != at && axis < i.rank && dim_equal(x.dims[axis], i.dims[axis]) ? axis : -1;
}

/* Rows of indices take from their own rows. */
static int elements_slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)i;
    (void)result;
    return axis < op_type(c, DATA).rank ? elements_move(c, axis) : -1;
}

static bool elements_bind(Binder *b, const Node *n, const OpCtx *c) {
    const ElementsAttrs *a = c->attrs;
    Type x = n->in[DATA]->type, i = n->in[INDICES]->type;
    int axis;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    qk_gather_elements_params p = {.rank = x.rank,
                                   .length = (int32_t)x.dims[axis].value,
                                   .step = bind_extent(x, axis + 1, x.rank)};
    if (p.length == 0 && bind_count(n->out[0]) > 0)
        return bind_unsupported(b, n, "the axis is empty");
    if (!op_indices_fit(c, INDICES, &p.length, 1))
        return false;
    for (int k = 0; k < x.rank; k++) {
        p.dim[k] = (int32_t)i.dims[k].value;
        p.xs[k] = k == axis ? 0 : bind_extent(x, k + 1, x.rank);
    }
    return bind_indexed(b, n, "gather_elements", &p, sizeof p, true, &p.length, 1);
}

const OpDef op_GatherElements = {
    .domain = "",
    .name = "GatherElements",
    .attrs_size = sizeof(ElementsAttrs),
    .attrs = elements_attrs,
    .verify = elements_verify,
    .infer = elements_infer,
    .slices = elements_slices,
    .quant = {.kind = QUANT_MOVE, .data = 1u << DATA, .move.axis = elements_move},
    .bind = elements_bind,
};

/* ---- GatherND ---- */

typedef struct NdAttrs {
    int64_t batch_dims;
} NdAttrs;

static const AttrSpec nd_attrs[] = {
    A_INT(NdAttrs, batch_dims, 0),
    A_END,
};

/* Numbers that make an index, -1 where that is not known. */
static int64_t tuple(Type i) {
    return i.rank > 0 ? i.dims[i.rank - 1].value : -1;
}

static bool nd_verify(const OpCtx *c) {
    const NdAttrs *a = c->attrs;
    Type x = op_type(c, DATA), i = op_type(c, INDICES);
    if (x.rank < 0 || i.rank < 0)
        return true;
    if (i.rank == 0)
        return op_error_in(c, INDICES, "the indices are a scalar");
    if (a->batch_dims < 0 || a->batch_dims >= i.rank || a->batch_dims > x.rank)
        return op_error_attr(c, "batch_dims", "batch_dims is %lld", (long long)a->batch_dims);
    if (tuple(i) > x.rank - a->batch_dims || tuple(i) == 0)
        return op_error_in(c, INDICES, "an index has %lld numbers, the data %lld dimensions",
                           (long long)tuple(i), (long long)(x.rank - a->batch_dims));
    for (int k = 0; k < a->batch_dims; k++)
        if (dim_differ(x.dims[k].value, i.dims[k].value))
            return op_error_in(c, INDICES, "batch dimension %d is %lld, that of the data %lld", k,
                               (long long)i.dims[k].value, (long long)x.dims[k].value);
    return true;
}

static bool nd_infer(OpCtx *c) {
    const NdAttrs *a = c->attrs;
    Type x = op_type(c, DATA), i = op_type(c, INDICES);
    if (x.kind != TYPE_TENSOR)
        return true;
    if (x.rank < 0 || tuple(i) < 0) {
        c->out[0] = type_tensor(type_real_elem(x), -1, NULL);
        return true;
    }
    int from = (int)(a->batch_dims + tuple(i)), rank = i.rank - 1 + x.rank - from;
    if (rank > MAX_RANK)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank + 1);
    for (int k = 0; k < rank; k++)
        dims[k] = k < i.rank - 1 ? i.dims[k] : x.dims[from + k - (i.rank - 1)];
    c->out[0] = type_tensor(type_real_elem(x), rank, dims);
    return true;
}

/* Batches stay in place, and what an index does not number follows the indices. */
static int nd_move(const OpCtx *c, int axis) {
    const NdAttrs *a = c->attrs;
    Type x = op_type(c, DATA), i = op_type(c, INDICES);
    int64_t from = a->batch_dims + tuple(i);
    if (x.rank < 0 || tuple(i) < 0 || axis >= x.rank)
        return -1;
    if (axis < a->batch_dims)
        return dim_equal(x.dims[axis], i.dims[axis]) ? axis : -1;
    return axis < from ? -1 : (int)(axis - from) + i.rank - 1;
}

/* Whether number `k` of each tuple is its place along `axis` of the constant indices, on which no
 * other number depends. */
static bool nd_takes_own(const Tensor *t, Type i, int axis, int k) {
    int64_t n = i.dims[axis].value, wide = tuple(i), step = 1;
    for (int d = axis + 1; d < i.rank; d++)
        step *= i.dims[d].value;
    for (size_t e = 0; e < t->count; e++) {
        int64_t place = (int64_t)e / step % n, first = tensor_int(t, e - (size_t)(place * step));
        bool own = (int64_t)e % wide == k;
        if (tensor_int(t, e) != (own ? place : first) || (own && first != 0))
            return false;
    }
    return true;
}

/* The axis of the indices along which they take their own number of axis `at` of the data, -1 where
 * there is none. */
static int nd_own(const OpCtx *c, int at) {
    const NdAttrs *a = c->attrs;
    const Tensor *t = op_const(c, INDICES);
    Type x = op_type(c, DATA), i = op_type(c, INDICES);
    int64_t k = at - a->batch_dims;
    for (int axis = 0; t && t->count && k >= 0 && k < tuple(i) && axis < i.rank - 1; axis++)
        if (dim_equal(x.dims[at], i.dims[axis]) && nd_takes_own(t, i, axis, (int)k))
            return axis;
    return -1;
}

static bool nd_is_own(const OpCtx *c, int axis) {
    const NdAttrs *a = c->attrs;
    for (int k = 0; k < tuple(op_type(c, INDICES)); k++)
        if (nd_own(c, (int)a->batch_dims + k) == axis)
            return true;
    return false;
}

static int nd_slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const NdAttrs *a = c->attrs;
    (void)result;
    if (i == DATA)
        return nd_move(c, axis) < 0 ? nd_own(c, axis) : nd_move(c, axis);
    if (nd_is_own(c, axis))
        return SLICES_OWN;
    return axis < op_type(c, INDICES).rank - 1 &&
                   (axis >= a->batch_dims || nd_move(c, axis) == axis)
               ? axis
               : -1;
}

static bool nd_bind(Binder *b, const Node *n, const OpCtx *c) {
    const NdAttrs *a = c->attrs;
    Type x = n->in[DATA]->type, i = n->in[INDICES]->type;
    int batch = (int)a->batch_dims;
    qk_gather_nd_params p = {.batch = bind_extent(x, 0, batch),
                             .n = bind_extent(i, batch, i.rank - 1),
                             .k = (int32_t)tuple(i),
                             .inner = bind_extent(x, batch + (int)tuple(i), x.rank)};
    for (int k = 0; k < p.k; k++)
        p.dim[k] = (int32_t)x.dims[batch + k].value;
    if (!op_indices_fit(c, INDICES, p.dim, (size_t)p.k))
        return false;
    if (bind_count(n->in[DATA]) == 0 && bind_count(n->out[0]) > 0)
        return bind_unsupported(b, n, "there are no data");
    return bind_indexed(b, n, "gather_nd", &p, sizeof p, true, p.dim, p.k);
}

const OpDef op_GatherND = {
    .domain = "",
    .name = "GatherND",
    .attrs_size = sizeof(NdAttrs),
    .attrs = nd_attrs,
    .verify = nd_verify,
    .infer = nd_infer,
    .slices = nd_slices,
    .quant = {.kind = QUANT_MOVE, .data = 1u << DATA, .move.axis = nd_move},
    .bind = nd_bind,
};
