/* DFT: 20 made the axis an operand, with another default. */
#include "ir/ops/spectrum.h"
#include "ir/ops/told.h"

enum { X, LENGTH, AXIS };

typedef struct DftAttrs {
    int64_t axis, inverse, onesided;
} DftAttrs;

static const AttrSpec attrs[] = {
    A_INT(DftAttrs, axis, -2), /* until 19 its default is 1 */
    A_FLAG(DftAttrs, inverse, 0),
    A_FLAG(DftAttrs, onesided, 0),
    A_END,
};

typedef struct Transform {
    int axis;       /* -1: not known */
    int64_t length; /* -1: not known */
    int64_t parts, bins, y_parts;
    bool half;   /* of the spectrum that is transformed back half is given */
    bool halves; /* of the spectrum half is wanted */
} Transform;

static bool axis_of(const OpCtx *c, Type x, int *axis) {
    const DftAttrs *a = c->attrs;
    const Tensor *t = op_const(c, AXIS);
    *axis = -1;
    if (op_in(c, AXIS) && (!t || !t->data || t->count != 1))
        return true;
    if (!op_axis(c, t ? tensor_int(t, 0) : a->axis, x.rank, axis))
        return false;
    return *axis < x.rank - 1 ||
           op_error_param(c, "axis", AXIS, "axis %d holds real and imaginary parts", *axis);
}

/* The rank of x is known. */
static bool transform(const OpCtx *c, Type x, Transform *f) {
    const DftAttrs *a = c->attrs;
    *f = (Transform){.half = a->onesided && a->inverse, .halves = a->onesided && !a->inverse};
    if (x.rank < 2)
        return op_error_in(c, X, "needs a signal and its parts, 2 dimensions or more, not %d",
                           x.rank);
    if (!spectrum_parts(c, x, &f->parts) || !axis_of(c, x, &f->axis))
        return false;
    int64_t have = f->axis < 0 ? -1 : x.dims[f->axis].value;
    if (!spectrum_length(c, LENGTH, f->half && have > 1 ? 2 * (have - 1) : have, &f->length))
        return false;
    if (!op_in(c, LENGTH) && f->length == 0)
        return op_error_in(c, X, "axis %d has no elements to transform", f->axis);
    if (a->onesided && f->parts == (a->inverse ? 1 : 2))
        return op_error_attr(c, "onesided",
                             a->inverse ? "half a spectrum is complex, the operand is real"
                                        : "the spectrum of a complex signal has no equal halves");
    f->bins = f->halves ? spectrum_half(f->length) : f->length;
    f->y_parts = f->half ? 1 : 2;
    return true;
}

static bool verify(const OpCtx *c) {
    Transform f;
    Type x = op_type(c, X);
    return x.rank < 0 || transform(c, x, &f);
}

static bool infer(OpCtx *c) {
    Type x = op_type(c, X);
    Transform f;
    if (x.rank < 0)
        return op_same_type(c);
    if (!transform(c, x, &f))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank);
    for (int i = 0; i < x.rank; i++)
        dims[i] = f.axis < 0 ? dim_unknown() : x.dims[i];
    if (f.axis >= 0)
        dims[f.axis] = f.bins < 0 ? dim_unknown() : dim_of(f.bins);
    dims[x.rank - 1] = dim_of(f.y_parts);
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

/* ---- binding ---- */

static bool bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    const DftAttrs *a = c->attrs;
    qk_dft_length_params p = {.most = SPECTRUM_LONGEST, .half = a->onesided && !a->inverse};
    if (!spectrum_known(b, n, c, AXIS) || !spectrum_one_number(b, n, LENGTH))
        return false;
    ElemType e = n->in[LENGTH]->type.elem;
    return bind_call(b, n, bind_kernel(b, "dft_length", 1, &e), &p, sizeof p, 2,
                     (int[]){bind_value(b, n->in[LENGTH]), length});
}

/* The length is for a run to tell; there is room for one that yields all that the result may have.
 */
static bool bind_in_run(Binder *b, const Node *n, const Transform *f, qk_dft_params p) {
    Type x = n->in[X]->type;
    int64_t bins = n->out[0]->type.dims[f->axis].value, most = f->halves ? 2 * bins - 1 : bins;
    int told = bind_temp(b, ELEM_INT32, 6);
    ElemType e = n->in[LENGTH]->type.elem;
    qk_dft_told_params t = {.all = (int32_t)x.dims[f->axis].value,
                            .inner = p.inner,
                            .parts = p.parts,
                            .y_parts = p.y_parts,
                            .half = f->half,
                            .bins_half = f->halves};
    p.n = p.have = p.bins = p.y_outer = 0;
    return !spectrum_too_long(b, n, most) &&
           bind_call(b, n, bind_kernel(b, "dft_told", 1, &e), &t, sizeof t, 2,
                     (int[]){bind_value(b, n->in[LENGTH]), told}) &&
           spectrum_call(b, n, &p, NULL, told, most < 1 ? 1 : most);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const DftAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    Transform f;
    if (!spectrum_known(b, n, c, AXIS) || !transform(c, x, &f) || spectrum_too_long(b, n, f.length))
        return false;
    int64_t have = x.dims[f.axis].value, most = f.half ? spectrum_half(f.length) : f.length;
    int32_t inner = bind_extent(x, f.axis + 1, x.rank - 1), parts = (int32_t)f.parts;
    int32_t y_parts = (int32_t)f.y_parts;
    qk_dft_params p = {.outer = bind_extent(x, 0, f.axis),
                       .inner = inner,
                       .n = (int32_t)f.length,
                       .have = (int32_t)(have < most ? have : most),
                       .parts = parts,
                       .half = f.half,
                       .bins = (int32_t)f.bins,
                       .y_parts = y_parts,
                       .inverse = a->inverse != 0,
                       .x_outer = (int32_t)have * inner * parts,
                       .x_inner = parts,
                       .x_step = inner * parts,
                       .y_outer = (int32_t)f.bins * inner * y_parts,
                       .y_inner = y_parts,
                       .y_step = inner * y_parts};
    return spectrum_is_told(c, LENGTH) ? bind_in_run(b, n, &f, p)
                                       : spectrum_call(b, n, &p, NULL, -1, f.length);
}

static bool upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)d;
    if (from >= 20 || to < 20)
        return true;
    if (!node_attr(n, "axis"))
        node_set_int(n, "axis", 1); /* the default that was */
    upgrade_int_attr(n, "axis", AXIS, names);
    return true;
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    Type x = op_type(c, X);
    int along;
    (void)result;
    return i == X && axis_of(c, x, &along) && along >= 0 && axis != along && axis < x.rank - 1
               ? axis
               : -1;
}

const OpDef op_DFT = {
    .domain = "",
    .name = "DFT",
    .fixed = 1u << LENGTH | 1u << AXIS,
    .attrs_size = sizeof(DftAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .upgrade = upgrade,
    .bind_length = bind_length,
    .bind = bind,
};
