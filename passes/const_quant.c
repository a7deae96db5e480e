#include "passes/const_quant.h"
#include "passes/params.h"

/* Which scale belongs to element i: cheap where there is one scale or one axis. */
static size_t entry(const Quant *q, const Tensor *t, size_t inner, size_t i) {
    if (q->n_scale == 1)
        return 0;
    if (q->n_axes == 1 && q->block[0] <= 1)
        return i / inner % q->n_scale;
    return quant_index(q, t->rank, t->dims, i);
}

Tensor *const_quantize(Arena *a, const Tensor *t, const Quant *q) {
    uint8_t *out;
    Tensor *r = tensor_new(a, q->storage, t->rank, t->dims, &out);
    size_t inner = 1;
    if (q->n_axes == 1)
        for (int i = q->axis[0] + 1; i < t->rank; i++)
            inner *= (size_t)t->dims[i];
    for (size_t i = 0; i < t->count; i++) {
        size_t e = entry(q, t, inner, i);
        float x = (float)tensor_float(t, i);
        int64_t v = quant_of_real(q, e, x); /* NaN: a constant stays within its range */
        elem_store_int(q->storage, out, i, v < quant_lo(q) ? quant_lo(q) : v);
    }
    return r;
}

Tensor *const_dequantize(Arena *a, const Tensor *t, const Quant *q) {
    uint8_t *bytes;
    Tensor *r = tensor_new(a, ELEM_FLOAT, t->rank, t->dims, &bytes);
    float *out = (float *)(void *)bytes;
    for (size_t i = 0; i < t->count; i++) {
        size_t e = q->n_scale == 1 ? 0 : quant_index(q, t->rank, t->dims, i);
        out[i] = (float)(tensor_int(t, i) - quant_zp(q, e)) * quant_scale(q, e);
    }
    return r;
}

Quant *const_bias_quant(Arena *a, const Quant *x, const Quant *w) {
    float *scale = NEW_ARRAY(a, float, w->n_scale);
    for (size_t i = 0; i < w->n_scale; i++)
        scale[i] = quant_scale(x, 0) * quant_scale(w, i);
    Quant *q = w->n_axes ? quant_per_axis(a, ELEM_INT32, 0, w->n_scale, scale, NULL)
                         : quant_per_tensor(a, ELEM_INT32, scale[0], 0);
    return q;
}

Tensor *const_bias(Arena *a, const Tensor *t, const Quant *q, size_t channels) {
    uint8_t *bytes;
    int64_t dims[] = {(int64_t)channels};
    Tensor *r = tensor_new(a, ELEM_INT32, 1, dims, &bytes);
    for (size_t c = 0; c < channels; c++) {
        double b = tensor_float(t, t->count == 1 ? 0 : c);
        elem_store_int(ELEM_INT32, bytes, c, params_bias(b, quant_scale(q, c)));
    }
    return r;
}
