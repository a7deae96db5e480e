/* DFT and STFT. DFT: 20 made the axis an operand, with another default. */
#include "ir/ops/told.h"

enum { X, LENGTH, AXIS };                        /* of DFT */
enum { STEP = 1, WINDOW = 2, FRAME_LENGTH = 3 }; /* of STFT, behind X */
enum { FACTORS = 32 };                           /* of an int32, with the 0 behind them */

typedef struct DftAttrs {
    int64_t axis, inverse, onesided;
} DftAttrs;

static const AttrSpec attrs[] = {
    A_INT(DftAttrs, axis, -2), /* until 19 its default is 1 */
    A_FLAG(DftAttrs, inverse, 0),
    A_FLAG(DftAttrs, onesided, 0),
    A_END,
};

typedef struct StftAttrs {
    int64_t onesided;
} StftAttrs;

static const AttrSpec stft_attrs[] = {
    A_FLAG(StftAttrs, onesided, 1),
    A_END,
};

/* A length that is constant, -1 where it is not known; `absent` where it is omitted. */
static bool length_of(const OpCtx *c, size_t i, int64_t absent, int64_t *out) {
    const Tensor *t = op_const(c, i);
    *out = op_in(c, i) ? -1 : absent;
    if (!t || !t->data || t->count != 1)
        return true;
    *out = tensor_int(t, 0);
    return (*out >= 1 && *out <= INT32_MAX) ||
           op_error_in(c, i, "must be from 1 to 2147483647, not %lld", (long long)*out);
}

/* Real and imaginary part lie side by side: 1, 2, or -1 where it is not known. */
static bool parts_of(const OpCtx *c, Type x, int64_t *parts) {
    *parts = x.dims[x.rank - 1].value;
    return *parts < 0 || *parts == 1 || *parts == 2 ||
           op_error_in(c, X, "its last dimension is %lld, not 1 (real) or 2 (complex)",
                       (long long)*parts);
}

/* ---- DFT ---- */

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

static int64_t half_of(int64_t n) {
    return n < 0 ? -1 : n / 2 + 1;
}

/* What has to be constant for a table and strides: false after saying that operand `i` is not. */
static bool bind_known(Binder *b, const Node *n, const OpCtx *c, size_t i) {
    const Tensor *t = op_const(c, i);
    return !op_in(c, i) || (t && t->data && t->count == 1) ||
           bind_unsupported(b, n, "its %s is not one constant",
                            onnx_schema_param(node_schema(n), false, (int)i)->name);
}

/* The rank of x is known. */
static bool transform(const OpCtx *c, Type x, Transform *f) {
    const DftAttrs *a = c->attrs;
    *f = (Transform){.half = a->onesided && a->inverse, .halves = a->onesided && !a->inverse};
    if (x.rank < 2)
        return op_error_in(c, X, "needs a signal and its parts, 2 dimensions or more, not %d",
                           x.rank);
    if (!parts_of(c, x, &f->parts) || !axis_of(c, x, &f->axis))
        return false;
    int64_t have = f->axis < 0 ? -1 : x.dims[f->axis].value;
    if (!length_of(c, LENGTH, f->half && have > 1 ? 2 * (have - 1) : have, &f->length))
        return false;
    if (!op_in(c, LENGTH) && f->length == 0)
        return op_error_in(c, X, "axis %d has no elements to transform", f->axis);
    if (a->onesided && f->parts == (a->inverse ? 1 : 2))
        return op_error_attr(c, "onesided",
                             a->inverse ? "half a spectrum is complex, the operand is real"
                                        : "the spectrum of a complex signal has no equal halves");
    f->bins = f->halves ? half_of(f->length) : f->length;
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

/* Tables for a length that is known: those that a run would make. */
static void tables(Binder *b, int64_t n, int *turn, int *radix) {
    double *turns = NEW_ARRAY(binder_arena(b), double, 2 * (size_t)n);
    int32_t told[] = {0, (int32_t)n}, factors[FACTORS] = {0};
    size_t count = 0;
    kernel_invoke(kernel_find("qk_dft_turns"), &(qk_dft_turns_params){.most = n},
                  (void *const[]){told, turns, factors});
    while (factors[count])
        count++;
    *turn = bind_const(b, ELEM_DOUBLE, 2 * (size_t)n, turns, "turns of a Fourier transform");
    *radix = bind_const(b, ELEM_INT32, count + 1, factors, "factors of its length");
}

/* Of `most` numbers at most; turns and factors are those of p->n, or what a run makes of `told`. */
static bool call(Binder *b, const Node *n, const qk_dft_params *p, const Value *window, int told,
                 int64_t most) {
    ElemType e = bind_elem(n->in[X]);
    int scratch = bind_scratch(b, ELEM_DOUBLE, 4 * (size_t)most), turn, radix;
    if (told < 0) {
        tables(b, most, &turn, &radix);
    } else {
        qk_dft_turns_params t = {.most = most};
        turn = bind_temp(b, ELEM_DOUBLE, 2 * (size_t)most);
        radix = bind_temp(b, ELEM_INT32, FACTORS);
        if (!bind_call(b, n, "qk_dft_turns", &t, sizeof t, 3, (int[]){told, turn, radix}))
            return false;
    }
    int args[] = {
        bind_value(b, n->in[X]), window ? bind_value(b, window) : -1, told, turn, radix, scratch,
        bind_value(b, n->out[0])};
    return bind_call(b, n, bind_kernel(b, "dft", 1, &e), p, sizeof *p, 7, args);
}

enum { LONGEST = 1 << 24 }; /* its tables take 16 bytes an element, and what it works in 32 */

static bool too_long(Binder *b, const Node *n, int64_t length) {
    return length > LONGEST &&
           !bind_unsupported(b, n, "transforms of %lld elements", (long long)length);
}

static bool is_told(const OpCtx *c, size_t i) {
    return op_in(c, i) && !op_const(c, i);
}

/* One number that a run tells. */
static bool one_number(Binder *b, const Node *n, size_t i) {
    size_t count;
    return (type_count(n->in[i]->type, &count) && count == 1) ||
           bind_unsupported(b, n, "its %s is not one number",
                            onnx_schema_param(node_schema(n), false, (int)i)->name);
}

static bool bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    const DftAttrs *a = c->attrs;
    qk_dft_length_params p = {.most = LONGEST, .half = a->onesided && !a->inverse};
    if (!bind_known(b, n, c, AXIS) || !one_number(b, n, LENGTH))
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
    return !too_long(b, n, most) &&
           bind_call(b, n, bind_kernel(b, "dft_told", 1, &e), &t, sizeof t, 2,
                     (int[]){bind_value(b, n->in[LENGTH]), told}) &&
           call(b, n, &p, NULL, told, most < 1 ? 1 : most);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const DftAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    Transform f;
    if (!bind_known(b, n, c, AXIS) || !transform(c, x, &f) || too_long(b, n, f.length))
        return false;
    int64_t have = x.dims[f.axis].value, most = f.half ? half_of(f.length) : f.length;
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
    return is_told(c, LENGTH) ? bind_in_run(b, n, &f, p) : call(b, n, &p, NULL, -1, f.length);
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

/* ---- STFT ---- */

typedef struct Frames {
    int64_t parts, length, count, bins; /* -1: not known */
} Frames;

static bool frames_of(const OpCtx *c, Type x, Frames *f) {
    const StftAttrs *a = c->attrs;
    Type w = op_type(c, WINDOW);
    int64_t step, all = x.rank < 0 ? -1 : x.dims[1].value;
    bool windowed = op_in(c, WINDOW) != NULL;
    int64_t window = windowed && w.rank == 1 ? w.dims[0].value : -1;
    if (windowed && w.rank >= 0 && w.rank != 1)
        return op_error_in(c, WINDOW, "a window has one dimension, not %d", w.rank);
    if (window == 0)
        return op_error_in(c, WINDOW, "the window has no elements");
    if (!length_of(c, STEP, -1, &step) ||
        !length_of(c, FRAME_LENGTH, windowed ? window : all, &f->length))
        return false;
    if (dim_differ(window, f->length))
        return op_error_in(c, WINDOW, "the window has %lld elements, frames %lld",
                           (long long)window, (long long)f->length);
    f->length = f->length < 0 ? window : f->length;
    if (all >= 0 && f->length > all)
        return op_error_in(c, X, "frames of %lld elements in a signal of %lld",
                           (long long)f->length, (long long)all);
    if (a->onesided && f->parts == 2)
        return op_error_attr(c, "onesided", "the spectrum of a complex signal has no equal halves");
    f->count = all < 0 || f->length < 0 || step < 1 ? -1 : (all - f->length) / step + 1;
    f->bins = a->onesided ? half_of(f->length) : f->length;
    return true;
}

/* onnxruntime takes real signals without their last dimension of 1, too. */
static bool frames(const OpCtx *c, Type x, Frames *f) {
    *f = (Frames){.parts = x.rank == 2 ? 1 : -1};
    if (x.rank >= 0 && x.rank != 2 && x.rank != 3)
        return op_error_in(c, X, "a signal is [batch, length, 1 or 2], of 3 dimensions, not %d",
                           x.rank);
    return (x.rank != 3 || parts_of(c, x, &f->parts)) && frames_of(c, x, f);
}

static bool stft_verify(const OpCtx *c) {
    Frames f;
    return frames(c, op_type(c, X), &f);
}

static bool stft_infer(OpCtx *c) {
    Type x = op_type(c, X);
    Frames f;
    if (x.kind != TYPE_TENSOR)
        return true;
    if (!frames(c, x, &f))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, 4);
    dims[0] = x.rank < 0 ? dim_unknown() : x.dims[0];
    dims[1] = f.count < 0 ? dim_unknown() : dim_of(f.count);
    dims[2] = f.bins < 0 ? dim_unknown() : dim_of(f.bins);
    dims[3] = dim_of(2);
    c->out[0] = type_tensor(type_real_elem(x), 4, dims);
    return true;
}

/* Frames that begin at each element are most of all. */
static int64_t stft_longest(const OpCtx *c) {
    Frames f;
    Type x = op_type(c, X);
    bool known = x.rank >= 2 && frames(c, x, &f) && f.length >= 0 && x.dims[1].value >= f.length;
    return known ? x.dims[1].value - f.length + 1 : -1;
}

static bool stft_bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    Type x = n->in[X]->type;
    Frames f;
    if (!frames(c, x, &f) || !one_number(b, n, STEP))
        return false;
    if (f.length < 0)
        return bind_known(b, n, c, FRAME_LENGTH);
    qk_stft_dims_params p = {.batch = (int32_t)x.dims[0].value,
                             .all = (int32_t)x.dims[1].value,
                             .n = (int32_t)f.length,
                             .bins = (int32_t)f.bins};
    ElemType e = n->in[STEP]->type.elem;
    int dims = bind_temp(b, ELEM_INT64, 4);
    bool framed = op_in(c, FRAME_LENGTH) != NULL;
    return (!framed || one_number(b, n, FRAME_LENGTH)) &&
           bind_call(b, n, bind_kernel(b, "stft_dims", 1, &e), &p, sizeof p, 3,
                     (int[]){bind_value(b, n->in[STEP]),
                             framed ? bind_value(b, n->in[FRAME_LENGTH]) : -1, dims}) &&
           bind_told_length(b, n, dims, length);
}

/* What the step makes of it is for a run to tell, too. */
static int stft_told(Binder *b, const Node *n, const Frames *f) {
    qk_stft_told_params p = {.all = (int32_t)n->in[X]->type.dims[1].value,
                             .n = (int32_t)f->length,
                             .parts = (int32_t)f->parts,
                             .bins = (int32_t)f->bins};
    ElemType e = n->in[STEP]->type.elem;
    int told = bind_temp(b, ELEM_INT32, 6);
    bool ok = bind_call(b, n, bind_kernel(b, "stft_told", 1, &e), &p, sizeof p, 2,
                        (int[]){bind_value(b, n->in[STEP]), told});
    return ok ? told : -1;
}

static bool stft_bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[X]->type;
    Frames f;
    int64_t step;
    if (!frames(c, x, &f) || !length_of(c, STEP, -1, &step) || too_long(b, n, f.length))
        return false;
    if (f.length < 0)
        return bind_known(b, n, c, FRAME_LENGTH);
    int32_t parts = (int32_t)f.parts, bins = (int32_t)f.bins;
    bool in_run = is_told(c, STEP);
    qk_dft_params p = {.outer = (int32_t)x.dims[0].value,
                       .inner = in_run ? 0 : (int32_t)f.count,
                       .n = (int32_t)f.length,
                       .have = (int32_t)f.length,
                       .parts = parts,
                       .bins = bins,
                       .y_parts = 2,
                       .x_outer = (int32_t)x.dims[1].value * parts,
                       .x_inner = f.count > 1 ? (int32_t)step * parts : 0,
                       .x_step = parts,
                       .y_outer = in_run ? 0 : (int32_t)f.count * bins * 2,
                       .y_inner = bins * 2,
                       .y_step = 2};
    int told = in_run ? stft_told(b, n, &f) : -1;
    return (!in_run || told >= 0) && call(b, n, &p, op_in(c, WINDOW), told, f.length);
}

const OpDef op_STFT = {
    .domain = "",
    .name = "STFT",
    .fixed = 1u << STEP | 1u << FRAME_LENGTH,
    .attrs_size = sizeof(StftAttrs),
    .attrs = stft_attrs,
    .verify = stft_verify,
    .infer = stft_infer,
    .slices = op_slices_first,
    .longest = stft_longest,
    .bind_length = stft_bind_length,
    .bind = stft_bind,
};
