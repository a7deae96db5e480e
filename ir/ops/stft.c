/* STFT: the spectra of frames of a signal. */
#include "ir/ops/spectrum.h"
#include "ir/ops/told.h"

enum { X, STEP, WINDOW, FRAME_LENGTH };

typedef struct StftAttrs {
    int64_t onesided;
} StftAttrs;

static const AttrSpec attrs[] = {
    A_FLAG(StftAttrs, onesided, 1),
    A_END,
};

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
    if (!spectrum_length(c, STEP, -1, &step) ||
        !spectrum_length(c, FRAME_LENGTH, windowed ? window : all, &f->length))
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
    f->bins = a->onesided ? spectrum_half(f->length) : f->length;
    return true;
}

/* onnxruntime takes real signals without their last dimension of 1, too. */
static bool frames(const OpCtx *c, Type x, Frames *f) {
    *f = (Frames){.parts = x.rank == 2 ? 1 : -1};
    if (x.rank >= 0 && x.rank != 2 && x.rank != 3)
        return op_error_in(c, X, "a signal is [batch, length, 1 or 2], of 3 dimensions, not %d",
                           x.rank);
    return (x.rank != 3 || spectrum_parts(c, x, &f->parts)) && frames_of(c, x, f);
}

static bool verify(const OpCtx *c) {
    Frames f;
    return frames(c, op_type(c, X), &f);
}

static bool infer(OpCtx *c) {
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
static int64_t longest(const OpCtx *c) {
    Frames f;
    Type x = op_type(c, X);
    bool known = x.rank >= 2 && frames(c, x, &f) && f.length >= 0 && x.dims[1].value >= f.length;
    return known ? x.dims[1].value - f.length + 1 : -1;
}

static bool bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    Type x = n->in[X]->type;
    Frames f;
    if (!frames(c, x, &f) || !spectrum_one_number(b, n, STEP))
        return false;
    if (f.length < 0)
        return spectrum_known(b, n, c, FRAME_LENGTH);
    qk_stft_dims_params p = {.batch = (int32_t)x.dims[0].value,
                             .all = (int32_t)x.dims[1].value,
                             .n = (int32_t)f.length,
                             .bins = (int32_t)f.bins};
    ElemType e = n->in[STEP]->type.elem;
    int dims = bind_temp(b, ELEM_INT64, 4);
    bool framed = op_in(c, FRAME_LENGTH) != NULL;
    return (!framed || spectrum_one_number(b, n, FRAME_LENGTH)) &&
           bind_call(b, n, bind_kernel(b, "stft_dims", 1, &e), &p, sizeof p, 3,
                     (int[]){bind_value(b, n->in[STEP]),
                             framed ? bind_value(b, n->in[FRAME_LENGTH]) : -1, dims}) &&
           bind_told_length(b, n, dims, length);
}

/* What the step makes of it is for a run to tell, too. */
static int frames_told(Binder *b, const Node *n, const Frames *f) {
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

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[X]->type;
    Frames f;
    int64_t step;
    if (!frames(c, x, &f) || !spectrum_length(c, STEP, -1, &step) ||
        spectrum_too_long(b, n, f.length))
        return false;
    if (f.length < 0)
        return spectrum_known(b, n, c, FRAME_LENGTH);
    int32_t parts = (int32_t)f.parts, bins = (int32_t)f.bins;
    bool in_run = spectrum_is_told(c, STEP);
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
    int told = in_run ? frames_told(b, n, &f) : -1;
    return (!in_run || told >= 0) && spectrum_call(b, n, &p, op_in(c, WINDOW), told, f.length);
}

const OpDef op_STFT = {
    .domain = "",
    .name = "STFT",
    .fixed = 1u << STEP | 1u << FRAME_LENGTH,
    .attrs_size = sizeof(StftAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = op_slices_first,
    .longest = longest,
    .bind_length = bind_length,
    .bind = bind,
};
