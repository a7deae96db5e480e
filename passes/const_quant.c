#include "passes/const_quant.h"

#include <math.h>

#include "ir/later.h"
#include "passes/params.h"
#include "support/parallel.h"

enum { BULK_ZP = 1 << 21 }; /* support/rows.h */

/* Whether the elements are integers of a byte or less, and the zero points such that float holds
 * all sums. */
static bool fits_rows(const Quant *q) {
    for (size_t i = 0; i < q->n_zp; i++)
        if (q->zp[i] < -BULK_ZP || q->zp[i] > BULK_ZP)
            return false;
    return quant_is_integers(q) && elem_bits(q->storage) <= 8;
}

static void quantize_row(const Tensor *t, const Quant *q, const QuantRuns *r, uint8_t *out) {
    float floats[QUANT_RUN_MAX];
    uint8_t bytes[QUANT_RUN_MAX];
    RowRange range = {(int32_t)quant_lo(q), (int32_t)quant_hi(q)};
    const RowFloat *x = floats;
    if (t->elem == ELEM_FLOAT)
        x = tensor_floats(t) + r->at;
    else
        for (size_t i = 0; i < r->n; i++)
            floats[i] = (float)tensor_float(t, r->at + i);
    const float *scale = q->scale + r->entry;
    if (!r->each || q->n_scale == 1) {
        row_quantize(x, r->n, quant_scale(q, r->entry), (int32_t)quant_zp(q, r->entry), range,
                     bytes);
    } else if (q->n_zp <= 1) {
        row_quantize_scales(x, r->n, scale, (int32_t)quant_zp(q, 0), range, bytes);
    } else {
        int32_t zp[QUANT_RUN_MAX];
        for (size_t i = 0; i < r->n; i++)
            zp[i] = (int32_t)q->zp[r->entry + i];
        row_quantize_each(x, r->n, scale, zp, range, bytes);
    }
    elem_store_bytes(q->storage, out, r->at, bytes, r->n);
}

static void quantize_elements(const Tensor *t, const Quant *q, const QuantRuns *r, uint8_t *out) {
    for (size_t i = 0; i < r->n; i++) {
        float x = (float)tensor_float(t, r->at + i);
        int64_t v = (int64_t)quant_bits(q, r->each ? r->entry + i : r->entry, x);
        if (quant_is_integers(q) && v < quant_lo(q))
            v = quant_lo(q); /* NaN: a constant stays within its range */
        elem_store_int(q->storage, out, r->at + i, v);
    }
}

typedef struct Quantizing {
    const Tensor *t;
    const Quant *q;
    bool rows;
    uint8_t *out;
} Quantizing;

static void quantize_part(void *ctx, size_t from, size_t to, int worker) {
    const Quantizing *z = ctx;
    (void)worker;
    for (QuantRuns r = quant_runs(z->q, z->t->rank, z->t->dims, from, to); quant_runs_next(&r);)
        (z->rows ? quantize_row : quantize_elements)(z->t, z->q, &r, z->out);
}

static void quantize_all(const Tensor *t, const Quant *q, uint8_t *out) {
    Quantizing z = {.t = t, .q = q, .rows = fits_rows(q), .out = out};
    /* parts of whole bytes, however many elements are in one */
    parallel_for(t->count, PARALLEL_PART, quantize_part, &z);
}

Tensor *const_quantize(Arena *a, const Tensor *t, const Quant *q) {
    uint8_t *out;
    Tensor *y = tensor_begin(a, q->storage, t->rank, t->dims, &out);
    quantize_all(t, q, out);
    return tensor_end(a, y);
}

typedef struct Rounding {
    const Tensor *t;
    const Quant *q;
} Rounding;

static void make_rounded(const Module *m, const void *ctx, uint8_t *out) {
    const Rounding *r = ctx;
    quantize_all(r->t, r->q, out);
    module_release(m, r->t);
    module_release_quant(m, r->q);
}

Tensor *const_quantize_later(Module *m, const Tensor *t, const Quant *q, bool may_wait) {
    Rounding r = {t, q};
    Later how = {make_rounded, arena_copy(m->arena, &r, sizeof r)};
    return later_tensor(m, q->storage, t->rank, t->dims, how, may_wait);
}

Tensor *const_dequantize(Arena *a, const Tensor *t, const Quant *q) {
    uint8_t *bytes;
    Tensor *r = tensor_begin(a, ELEM_FLOAT, t->rank, t->dims, &bytes);
    float *out = (float *)(void *)bytes;
    for (size_t i = 0; i < t->count; i++) {
        size_t e = q->n_scale == 1 ? 0 : quant_index(q, t->rank, t->dims, i);
        out[i] = (float)tensor_steps(t, i, q, e) * quant_scale(q, e);
    }
    return tensor_end(a, r);
}

bool const_is_rounded(const Tensor *t, const Quant *q) {
    bool any = false;
    for (size_t i = 0; i < t->count; i++) {
        size_t e = q->n_scale == 1 ? 0 : quant_index(q, t->rank, t->dims, i);
        float x = (float)tensor_float(t, i);
        if ((float)(quant_of_real(q, e, x) - quant_zp(q, e)) * quant_scale(q, e) != x)
            return false;
        any = any || x != 0;
    }
    return any;
}

Quant *const_sums_quant(Arena *a, const Quant *x, const Quant *w, int rank) {
    Quant *q = quant_product(a, x, w);
    if (q->n_axes)
        q->axis[0] = rank > 0 ? rank - 1 : 0;
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

float exact_factor(float x, float product) {
    float w = product / x, near[] = {w, nextafterf(w, 0), nextafterf(w, INFINITY)};
    for (int i = 0; i < 3; i++)
        if (isnormal(near[i]) && near[i] > 0 && x * near[i] == product)
            return near[i];
    return 0;
}
