/* See exec/random.h. */
#include "exec/random.h"
#include "ir/minifloat.h"

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state) {
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

static double random_float(uint64_t *state, const Value *v) {
    const Stat *stat = v->stat;
    const Quant *q = v->type.quant;
    double lo = 0, hi = 0;
    if (stat && stat->n == 1 && stat->min && stat->max) {
        lo = (double)*stat->min;
        hi = (double)*stat->max;
    } else if (q && q->n_scale == 1 && elem_bits(q->storage) <= 16) {
        lo = (double)(elem_min(q->storage) - quant_zp(q, 0)) * (double)quant_scale(q, 0);
        hi = (double)(elem_max(q->storage) - quant_zp(q, 0)) * (double)quant_scale(q, 0);
    }
    if (lo < hi)
        return lo + (hi - lo) * uniform(state);
    double sum = -6; /* close to normal, the same on every machine */
    for (int i = 0; i < 12; i++)
        sum += uniform(state);
    return sum;
}

/* 8 and 16 bits: the whole range. Wider integers are lengths and indices: 0 or 1. */
static int64_t random_int(uint64_t *state, const Value *v) {
    ElemType e = v->type.elem;
    const Quant *q = v->type.quant;
    if (e == ELEM_BOOL || elem_bits(e) > 16)
        return (int64_t)(next_random(state) >> 63);
    int64_t lo = q ? quant_lo(q) : elem_min(e);
    int64_t hi = q ? quant_hi(q) : elem_max(e);
    return lo + (int64_t)(next_random(state) % (uint64_t)(hi - lo + 1));
}

void random_elements(uint64_t *state, const Value *v, void *dst, size_t count) {
    for (size_t k = 0; k < count; k++) {
        float f = 0;
        double x = elem_is_float(v->type.elem) ? random_float(state, v) : 0;
        if (v->type.elem == ELEM_FLOAT) {
            f = (float)x;
            memcpy((uint8_t *)dst + 4 * k, &f, 4);
        } else if (v->type.elem == ELEM_DOUBLE) {
            memcpy((uint8_t *)dst + 8 * k, &x, 8);
        } else if (elem_bits(v->type.elem) == 16 && elem_is_float(v->type.elem)) {
            uint64_t bits;
            float_encode(v->type.elem, x, &bits);
            memcpy((uint8_t *)dst + 2 * k, &bits, 2);
        } else if (!elem_is_float(v->type.elem)) {
            elem_store_int(v->type.elem, dst, k, random_int(state, v));
        }
    }
}
