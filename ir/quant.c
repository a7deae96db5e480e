/* Making, comparing and printing quantizations. */
#include "ir/type.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "ir/ir.h"
#include "ir/minifloat.h"

void quant_store(Quant *q, ElemType storage) {
    q->storage = storage;
    q->grid = elem_is_float(storage) ? GRID_FLOATS : GRID_INTEGERS;
    if (q->grid == GRID_FLOATS) {
        float_grid(storage, &q->floats);
        return;
    }
    q->lo = elem_min(storage);
    q->hi = elem_max(storage);
    q->has_range = false;
}

bool elem_has_grid(ElemType e) {
    return elem_is_int(e) ? elem_bits(e) <= 32
                          : elem_is_float(e) && elem_bits(e) == 8 && e != ELEM_FLOAT8E8M0;
}

bool quant_is_integers(const Quant *q) {
    return q->grid == GRID_INTEGERS;
}

static Quant *quant_new(Arena *a, ElemType storage) {
    Quant *q = NEW(a, Quant);
    q->kind = QUANT_PARAMS;
    q->expressed = q->scale_type = ELEM_FLOAT;
    quant_store(q, storage);
    for (int i = 0; i < MAX_RANK; i++)
        q->block[i] = 1;
    return q;
}

Quant *quant_open(Arena *a, ElemType storage) {
    Quant *q = quant_new(a, storage);
    q->kind = QUANT_UNKNOWN;
    return q;
}

Quant *quant_per_tensor(Arena *a, ElemType storage, float scale, int64_t zp) {
    Quant *q = quant_new(a, storage);
    q->n_scale = q->n_zp = 1;
    q->scale = arena_copy(a, &scale, sizeof scale);
    q->zp = arena_copy(a, &zp, sizeof zp);
    return q;
}

Quant *quant_per_axis(Arena *a, ElemType storage, int axis, size_t n, const float *scale,
                      const int64_t *zp) {
    Quant *q = quant_new(a, storage);
    q->n_scale = n;
    q->scale = arena_copy(a, scale, n * sizeof *scale);
    q->n_axes = 1;
    q->axis[0] = axis;
    if (zp) {
        q->n_zp = n;
        q->zp = arena_copy(a, zp, n * sizeof *zp);
    }
    return q;
}

Quant *quant_product(Arena *a, const Quant *x, const Quant *w) {
    float *scale = NEW_ARRAY(a, float, w->n_scale);
    for (size_t i = 0; i < w->n_scale; i++)
        scale[i] = quant_scale(x, 0) * quant_scale(w, i);
    return w->n_axes ? quant_per_axis(a, ELEM_INT32, 0, w->n_scale, scale, NULL)
                     : quant_per_tensor(a, ELEM_INT32, scale[0], 0);
}

Quant *quant_copy(Arena *a, const Quant *q) {
    Quant *copy = arena_copy(a, q, sizeof *q);
    copy->alias = STR_NONE; /* the alias names the original */
    return copy;
}

bool quant_is_per_tensor(const Quant *q) {
    return q->n_axes == 0;
}

bool quant_is_blocked(const Quant *q) {
    return q->n_axes > 1 || (q->n_axes == 1 && q->block[0] > 1);
}

int64_t quant_round(float x, float scale, int64_t zp, int64_t lo, int64_t hi) {
    float steps = rintf(x / scale);
    double v = (double)steps + (double)zp;
    return isnan(steps) || v <= (double)lo ? lo : v >= (double)hi ? hi : (int64_t)v;
}

int64_t quant_of_real(const Quant *q, size_t i, float x) {
    float scale = quant_scale(q, i);
    return isnan(x / scale) ? elem_min(q->storage)
                            : quant_round(x, scale, quant_zp(q, i), quant_lo(q), quant_hi(q));
}

uint64_t quant_bits(const Quant *q, size_t i, float x) {
    if (quant_is_integers(q))
        return (uint64_t)quant_of_real(q, i, x);
    uint64_t bits;
    float v = x / quant_scale(q, i), most = q->floats.most;
    float_encode(q->storage, (double)(v > most ? most : v < -most ? -most : v), &bits);
    return bits;
}

int64_t quant_lo(const Quant *q) {
    assert(quant_is_integers(q));
    return q->has_range ? q->lo : elem_min(q->storage);
}

int64_t quant_hi(const Quant *q) {
    assert(quant_is_integers(q));
    return q->has_range ? q->hi : elem_max(q->storage);
}

float quant_scale(const Quant *q, size_t i) {
    return q->scale[q->n_scale == 1 ? 0 : i];
}

int64_t quant_zp(const Quant *q, size_t i) {
    return q->n_zp == 0 ? 0 : q->zp[q->n_zp == 1 ? 0 : i];
}

bool quant_zp_all_zero(const Quant *q) {
    for (size_t i = 0; i < q->n_zp; i++)
        if (q->zp[i])
            return false;
    return true;
}

bool quant_is_symmetric(const Quant *q) {
    int64_t middle = (int64_t)rint((double)(quant_lo(q) + quant_hi(q)) / 2);
    size_t n = q->n_zp ? q->n_zp : 1;
    for (size_t i = 0; i < n; i++)
        if (quant_zp(q, i) != middle)
            return false;
    return true;
}

static bool same_params(const Quant *x, const Quant *y) {
    if (x->n_scale != y->n_scale || x->n_axes != y->n_axes)
        return false;
    for (int i = 0; i < x->n_axes; i++)
        if (x->axis[i] != y->axis[i] || x->block[i] != y->block[i])
            return false;
    /* Bitwise, so that NaN equals itself and -0 differs from 0. */
    if (x->n_scale && memcmp(x->scale, y->scale, x->n_scale * sizeof *x->scale) != 0)
        return false;
    size_t n = x->n_zp > y->n_zp ? x->n_zp : y->n_zp;
    for (size_t i = 0; i < n; i++)
        if (quant_zp(x, i) != quant_zp(y, i))
            return false;
    return true;
}

static bool same_acc_operand(const Quant *x, const Quant *y, int i) {
    if (x->acc_value[i] != y->acc_value[i])
        return false;
    const Quant *p = x->acc_quant[i], *q = y->acc_quant[i];
    return p == q || (p && q && quant_equal(p, q));
}

bool quant_equal(const Quant *x, const Quant *y) {
    if (x == y)
        return true;
    if (!x || !y || x->kind != y->kind || x->storage != y->storage ||
        x->expressed != y->expressed || x->scale_type != y->scale_type)
        return false;
    if (quant_is_integers(x) && (quant_lo(x) != quant_lo(y) || quant_hi(x) != quant_hi(y)))
        return false;
    switch (x->kind) {
    case QUANT_PARAMS: return same_params(x, y);
    case QUANT_ACC: return same_acc_operand(x, y, 0) && same_acc_operand(x, y, 1);
    case QUANT_UNKNOWN:
    case QUANT_DYNAMIC: return true;
    }
    return false;
}

bool quant_is_known(const Quant *q) {
    return q->kind == QUANT_PARAMS || q->kind == QUANT_ACC;
}

bool quant_is_wide(const Quant *q) {
    for (size_t i = 0; i < q->n_zp && quant_is_integers(q); i++)
        if (q->zp[i] < quant_lo(q) || q->zp[i] > quant_hi(q))
            return true;
    return false;
}

/* The exponent of a scale that is a normal power of two. */
static bool pow2_exponent(float scale, int *exponent) {
    if (!(scale >= FLT_MIN && scale <= FLT_MAX))
        return false;
    int e;
    if (frexpf(scale, &e) != 0.5f)
        return false;
    *exponent = e - 1;
    return true;
}

bool quant_is_pow2(const Quant *q) {
    int e;
    for (size_t i = 0; i < q->n_scale; i++)
        if (!pow2_exponent(q->scale[i], &e))
            return false;
    return q->n_scale > 0;
}

const char *quant_schema(const Quant *q) {
    static const char *const names[2][2] = {
        {"Asymmetric", "AsymmetricWithPower2Scale"},
        {"Symmetric", "SymmetricWithPower2Scale"},
    };
    return names[quant_zp_all_zero(q)][quant_is_pow2(q)];
}

size_t quant_index(const Quant *q, int rank, const int64_t *dims, size_t index) {
    size_t coord[MAX_RANK] = {
        0}; /* what is quantized along an axis has no more, see verify_quant.c */
    for (int i = rank - 1; q->n_axes && i >= 0; i--) {
        coord[i] = index % (size_t)dims[i];
        index /= (size_t)dims[i];
    }
    size_t at = 0;
    for (int i = 0; i < q->n_axes; i++) {
        size_t block = (size_t)q->block[i];
        at = at * (((size_t)dims[q->axis[i]] + block - 1) / block) + coord[q->axis[i]] / block;
    }
    return at;
}

/* ---- printing ---- */

void quant_print_scale(Buf *b, float scale) {
    int e;
    if (pow2_exponent(scale, &e))
        buf_fmt(b, "2^%d", e);
    else
        buf_f32(b, scale);
}

static void ints_print(Buf *b, size_t n, const int64_t *v) {
    buf_byte(b, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_text(b, ", ");
        buf_i64(b, v[i]);
    }
    buf_byte(b, ']');
}

static void axes_print(Buf *b, const Quant *q) {
    int64_t axes[MAX_RANK];
    bool blocked = false;
    for (int i = 0; i < q->n_axes; i++) {
        axes[i] = q->axis[i];
        blocked |= q->block[i] != 1;
    }
    if (q->n_axes == 1) {
        buf_fmt(b, ", axis=%d", q->axis[0]);
        if (blocked) {
            buf_text(b, ", block=");
            buf_i64(b, q->block[0]);
        }
        return;
    }
    buf_text(b, ", axis=");
    ints_print(b, (size_t)q->n_axes, axes);
    if (blocked) {
        buf_text(b, ", block=");
        ints_print(b, (size_t)q->n_axes, q->block);
    }
}

static void scales_print(Buf *b, const Quant *q) {
    /* Per tensor a plain number; else a list, so that an axis of length one keeps its meaning. */
    if (q->n_axes)
        buf_byte(b, '[');
    for (size_t i = 0; i < q->n_scale; i++) {
        if (i)
            buf_text(b, ", ");
        quant_print_scale(b, q->scale[i]);
    }
    if (q->n_axes)
        buf_byte(b, ']');
}

static void params_print(Buf *b, const Quant *q, size_t most) {
    if (q->n_scale > most)
        buf_fmt(b, "data(%zu)", q->n_scale);
    else
        scales_print(b, q);
    if (q->n_zp) {
        buf_text(b, ", ");
        if (q->n_zp > most)
            buf_fmt(b, "data(%zu)", q->n_zp);
        else if (q->n_zp == 1)
            buf_i64(b, q->zp[0]);
        else
            ints_print(b, q->n_zp, q->zp);
    }
    if (q->n_axes)
        axes_print(b, q);
}

/* Behind it the scale that an edit of its line may take away. */
static void acc_sum_print(Buf *b, const Quant *q) {
    buf_fmt(b, ", \"crc32:%08x\", ", q->sum);
    buf_f32(b, quant_scale(q->acc_quant[0], 0));
}

static void acc_print(Buf *b, const Quant *q) {
    buf_text(b, "acc<");
    for (int i = 0; i < 2; i++) {
        if (i)
            buf_text(b, ", ");
        if (q->acc_value[i])
            name_print(b, '%', q->acc_value[i]->name);
        else if (q->acc_quant[i])
            name_print(b, '!', q->acc_quant[i]->alias);
        else
            buf_byte(b, '?');
    }
    if (q->has_sum)
        acc_sum_print(b, q);
    buf_byte(b, '>');
}

void quant_print(Buf *b, const Quant *q) {
    quant_print_lists(b, q, SIZE_MAX);
}

void quant_print_lists(Buf *b, const Quant *q, size_t most) {
    if (q->kind == QUANT_ACC) {
        acc_print(b, q);
        return;
    }
    if (q->storage == ELEM_UNDEFINED) {
        buf_byte(b, '?');
        return;
    }
    buf_text(b, elem_name(q->storage));
    buf_text(b, "q<");
    switch (q->kind) {
    case QUANT_UNKNOWN: buf_byte(b, '?'); break;
    case QUANT_DYNAMIC: buf_text(b, "dynamic"); break;
    default: params_print(b, q, most); break;
    }
    if (quant_is_integers(q) && q->has_range) {
        buf_text(b, ", range=");
        buf_i64(b, q->lo);
        buf_byte(b, ':');
        buf_i64(b, q->hi);
    }
    if (q->expressed != ELEM_FLOAT)
        buf_fmt(b, ", expr=%s", elem_name(q->expressed));
    if (q->scale_type != ELEM_FLOAT)
        buf_fmt(b, ", scale_type=%s", elem_name(q->scale_type));
    buf_byte(b, '>');
}
