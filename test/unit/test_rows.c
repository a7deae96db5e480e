/* Long rows of numbers (support/rows.h) and what is made of them, against the definitions number by
 * number: quant_of_real, quant_index, fminf. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "passes/const_quant.h"
#include "passes/params.h"
#include "passes/quantize/weight_groups.h"

static uint32_t noise(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Ties, both ends, beyond them, and everything between. */
static float number(uint32_t *state, size_t i) {
    static const float odd[] = {NAN,    INFINITY, -INFINITY, 0.0F,   -0.0F,  3e38F,  -3e38F,
                                1e-45F, 0.25F,    0.75F,     -0.25F, 31.75F, -32.25F};
    if (i % 7 == 0)
        return odd[noise(state) % (sizeof odd / sizeof *odd)];
    if (i % 3 == 0) /* a tie for scales that are powers of two */
        return ((float)(noise(state) % 600) - 300 + 0.5F) * 0.5F;
    return ((float)(noise(state) % 100000) - 50000) * 1e-3F;
}

typedef struct Layout {
    ElemType storage;
    int rank;
    int64_t dims[3];
    int n_axes, axis[2];
    int64_t block[2];
    size_t n_zp; /* 0, 1, or 2 for one each */
} Layout;

static Quant *quant_of_layout(Arena *a, const Layout *l, uint32_t *state) {
    Quant *q = quant_per_tensor(a, l->storage, 0.5F, 0);
    size_t n = 1;
    q->n_axes = l->n_axes;
    for (int i = 0; i < l->n_axes; i++) {
        q->axis[i] = l->axis[i];
        q->block[i] = l->block[i];
        n *= (size_t)((l->dims[l->axis[i]] + l->block[i] - 1) / l->block[i]);
    }
    float *scale = NEW_ARRAY(a, float, n);
    int64_t *zp = NEW_ARRAY(a, int64_t, n), lo = elem_min(l->storage), hi = elem_max(l->storage);
    for (size_t i = 0; i < n; i++) {
        scale[i] = i % 3 == 0 ? 0.5F : 0.01F * (float)(1 + noise(state) % 100);
        zp[i] = lo + (int64_t)noise(state) % (hi - lo + 1);
    }
    q->scale = scale;
    q->zp = zp;
    q->n_scale = n;
    q->n_zp = l->n_zp == 2 ? n : l->n_zp;
    if (l->storage != ELEM_UINT1 && n % 2) {
        q->has_range = true; /* zero points may then lie outside, as with -wide-zp */
        q->lo = lo + 1;
    }
    return q;
}

static const Layout layouts[] = {
    {ELEM_INT8, 2, {7, 37}, 0, {0}, {0}, 0},
    {ELEM_UINT8, 2, {7, 37}, 0, {0}, {0}, 1},
    {ELEM_INT8, 2, {7, 37}, 1, {0}, {1}, 2},
    {ELEM_INT8, 2, {7, 37}, 1, {1}, {1}, 1},
    {ELEM_UINT8, 2, {7, 37}, 1, {1}, {1}, 2},
    {ELEM_INT8, 3, {5, 6, 7}, 1, {1}, {1}, 2},
    {ELEM_INT8, 3, {5, 6, 7}, 2, {2, 0}, {1, 2}, 2}, /* the grid's order is not the tensor's */
    {ELEM_INT4, 2, {7, 37}, 2, {0, 1}, {1, 16}, 0},
    {ELEM_UINT4, 2, {70, 3}, 2, {0, 1}, {32, 1}, 2},
    {ELEM_INT4, 3, {3, 5, 7}, 1, {0}, {1}, 2}, /* rows begin within a byte */
    {ELEM_UINT2, 2, {9, 11}, 1, {1}, {4}, 2},
    {ELEM_UINT1, 2, {9, 11}, 1, {0}, {1}, 2},
    {ELEM_INT16, 2, {7, 37}, 1, {1}, {1}, 2},
    {ELEM_INT32, 1, {100}, 1, {0}, {1}, 1},
    {ELEM_INT8, 2, {2, 9001}, 1, {0}, {1}, 2}, /* longer than a run may be */
    {ELEM_UINT8, 2, {2, 9001}, 1, {1}, {1}, 2},
    {ELEM_INT8, 2, {0, 5}, 1, {1}, {1}, 1},
    {ELEM_INT8, 0, {0}, 0, {0}, {0}, 1},
};

#define EACH_LAYOUT(l)                                                                             \
    for (const Layout *l = layouts; l < layouts + sizeof layouts / sizeof *layouts; l++)

static void test_runs(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    uint32_t seed = 1;
    EACH_LAYOUT(l) {
        Quant *q = quant_of_layout(a, l, &seed);
        size_t count, seen = 0;
        assert_true(tensor_count(l->rank, l->dims, &count));
        for (QuantRuns r = quant_runs(q, l->rank, l->dims, 0, count); quant_runs_next(&r);) {
            assert_int_equal(r.at, seen);
            assert_in_range(r.n, 1, QUANT_RUN_MAX);
            for (size_t i = 0; i < r.n; i++, seen++)
                assert_int_equal(quant_index(q, l->rank, l->dims, seen),
                                 r.entry + (r.each ? i : 0));
        }
        assert_int_equal(seen, count);
    }
    arena_free(a);
}

/* A walk may begin and end anywhere. */
static void test_runs_of_a_part(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    uint32_t seed = 1;
    EACH_LAYOUT(l) {
        Quant *q = quant_of_layout(a, l, &seed);
        size_t count;
        assert_true(tensor_count(l->rank, l->dims, &count));
        for (size_t from = 0, step = 1; from < count; from += step, step += 5) {
            size_t to = from + 3 * step < count ? from + 3 * step : count, seen = from;
            for (QuantRuns r = quant_runs(q, l->rank, l->dims, from, to); quant_runs_next(&r);) {
                assert_int_equal(r.at, seen);
                for (size_t i = 0; i < r.n; i++, seen++)
                    assert_int_equal(quant_index(q, l->rank, l->dims, seen),
                                     r.entry + (r.each ? i : 0));
            }
            assert_int_equal(seen, to);
        }
    }
    arena_free(a);
}

/* A tensor whose floats begin at an odd address, as in a file. */
static Tensor *floats_at_odd_address(Arena *a, const Layout *l, uint32_t *seed) {
    size_t count;
    assert_true(tensor_count(l->rank, l->dims, &count));
    char *bytes = arena_alloc(a, 4 * count + 1);
    bytes++;
    for (size_t i = 0; i < count; i++) {
        float x = number(seed, i);
        memcpy(bytes + 4 * i, &x, 4);
    }
    return tensor_of(a, ELEM_FLOAT, l->rank, l->dims, bytes);
}

static void test_quantize(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    uint32_t seed = 2;
    for (int round = 0; round < 20; round++)
        EACH_LAYOUT(l) {
            Quant *q = quant_of_layout(a, l, &seed);
            Tensor *x = floats_at_odd_address(a, l, &seed), *y = const_quantize(a, x, q);
            for (size_t i = 0; i < x->count; i++) {
                size_t e = quant_index(q, l->rank, l->dims, i);
                int64_t want = quant_of_real(q, e, (float)tensor_float(x, i));
                if (want < quant_lo(q))
                    want = quant_lo(q); /* NaN */
                assert_int_equal(tensor_int(y, i), want);
            }
        }
    arena_free(a);
}

static void test_ranges(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    uint32_t seed = 3;
    for (int64_t n = 0; n < 200; n++) {
        Layout l = {ELEM_INT8, 1, {n}, 0, {0}, {0}, 0};
        const Tensor *t = floats_at_odd_address(a, &l, &seed);
        float min = 1, max = -1, want_min = 1, want_max = -1;
        bool finite = true;
        for (size_t i = 0; i < t->count; i++) {
            float x = (float)tensor_float(t, i);
            want_min = fminf(want_min, x);
            want_max = fmaxf(want_max, x);
            finite = finite && isfinite(x);
        }
        row_range(tensor_floats(t), t->count, &min, &max);
        assert_true(min == want_min && max == want_max);
        assert_int_equal(row_is_finite(tensor_floats(t), t->count), finite);
        for (size_t i = 0; i < t->count; i++) /* one number decides */
            assert_int_equal(row_is_finite(tensor_floats(t) + i, 1),
                             isfinite((float)tensor_float(t, i)));
    }
    arena_free(a);
}

static void test_bytes(void **state) {
    (void)state;
    static const ElemType all[] = {ELEM_INT8,  ELEM_UINT8, ELEM_INT4,
                                   ELEM_UINT4, ELEM_INT2,  ELEM_UINT1};
    uint32_t seed = 4;
    for (size_t e = 0; e < sizeof all / sizeof *all; e++)
        for (size_t at = 0; at < 4; at++)
            for (size_t n = 0; n < 40; n++) {
                uint8_t in[64], packed[64] = {0}, out[64];
                for (size_t i = 0; i < n; i++)
                    in[i] = (uint8_t)noise(&seed);
                elem_store_bytes(all[e], packed, at, in, n);
                elem_load_bytes(all[e], packed, at, out, n);
                for (size_t i = 0; i < n; i++) {
                    uint8_t one[1] = {0};
                    elem_store_int(all[e], one, 0, in[i]);
                    int64_t want = elem_load_int(all[e], one, 0);
                    assert_int_equal(elem_load_int(all[e], packed, at + i), want);
                    assert_int_equal(out[i], (uint8_t)want);
                }
            }
}

static void test_join(void **state) {
    (void)state;
    uint32_t seed = 6;
    for (int bits = 2; bits <= 8; bits *= 2)
        for (size_t n = 0; n < 70; n++) {
            uint8_t in[70], joined[70];
            for (int shift = 0; shift < 8; shift += bits) {
                uint8_t add = (uint8_t)noise(&seed), before[70];
                for (size_t i = 0; i < n; i++) {
                    in[i] = (uint8_t)noise(&seed);
                    before[i] = shift ? joined[i] : 0;
                }
                row_join(in, n, add, bits, shift, joined);
                for (size_t i = 0; i < n; i++)
                    assert_int_equal(joined[i],
                                     before[i] + (((in[i] + add) % (1 << bits)) << shift));
            }
        }
}

static double error_of(const Tensor *t, const Quant *q, const float *scale, const int64_t *zp,
                       IntRange r, size_t group) {
    double sum = 0;
    for (size_t i = 0; i < t->count; i++)
        if (quant_index(q, t->rank, t->dims, i) == group) {
            float x = (float)tensor_float(t, i);
            int64_t y = quant_round(x, scale[group], zp[group], r.lo, r.hi) - zp[group];
            sum += pow((double)x - (double)y * (double)scale[group], 2);
        }
    return sum;
}

/* Numbers as weights have them, most of them near 0. */
static void fill_bell(const Tensor *t, uint8_t *bytes, unsigned *seed) {
    for (size_t i = 0; i < t->count; i++) {
        double sum = 0;
        for (int n = 0; n < 12; n++)
            sum += (double)(noise(seed) % 1000) / 1000;
        ((float *)(void *)bytes)[i] = (float)(sum - 6);
    }
}

/* None of the ranges that are tried, from all to a fifth, serves better by more than rounding
 * errors, and the best of many more little better in all. */
static void test_fit(void **state) {
    (void)state;
    static const Layout fitted[] = {
        {ELEM_INT4, 2, {70, 19}, 2, {0, 1}, {32, 1}, 1},
        {ELEM_UINT4, 2, {19, 70}, 2, {0, 1}, {1, 32}, 2},
        {ELEM_INT4, 2, {40, 33}, 0, {0}, {0}, 1},
        {ELEM_UINT2, 2, {40, 33}, 1, {1}, {1}, 2},
        {ELEM_INT2, 3, {5, 6, 49}, 1, {1}, {1}, 1},
        {ELEM_UINT1, 2, {33, 40}, 1, {0}, {1}, 2},
    };
    Arena *a = arena_new(0, NULL);
    uint32_t seed = 5;
    for (size_t k = 0; k < sizeof fitted / sizeof *fitted; k++) {
        const Layout *l = &fitted[k];
        Quant *q = quant_of_layout(a, l, &seed);
        uint8_t *bytes;
        Tensor *t = tensor_new(a, ELEM_FLOAT, l->rank, l->dims, &bytes);
        fill_bell(t, bytes, &seed);
        bool sym = elem_is_signed(l->storage);
        IntRange r = params_range(l->storage, sym, false);
        size_t n = groups_count(q, t);
        assert_int_equal(n, q->n_scale);
        float *scale = NEW_ARRAY(a, float, n), *whole = NEW_ARRAY(a, float, n),
              *part = NEW_ARRAY(a, float, n);
        int64_t *zp = NEW_ARRAY(a, int64_t, n), *zero = NEW_ARRAY(a, int64_t, n);
        groups_fit(&(GroupParams){{r, sym, false, 0}, scale, zp}, q, t, a);
        groups_from_ranges(&(GroupParams){{r, sym, false, 0}, whole, zero}, q, t, a);
        double all = 0, least = 0;
        for (size_t g = 0; g < n; g++) {
            double best = error_of(t, q, scale, zp, r, g), tried = best;
            for (int i = 0; i < 128; i++) {
                part[g] = whole[g] * (1 - 0.8F * (float)i / 128);
                double error = error_of(t, q, part, zero, r, g);
                assert_true(i % 8 != 0 || best <= error * 1.00001);
                tried = fmin(tried, error);
            }
            all += best;
            least += tried;
        }
        assert_true(all < least * 1.01);
    }
    arena_free(a);
}

/* sum x d / sum x^2, where d is what the integers stand for. */
static double kept_share(const Tensor *t, const Quant *q, const GroupParams *p) {
    double along = 0, all = 0;
    for (size_t i = 0; i < t->count; i++) {
        size_t g = quant_index(q, t->rank, t->dims, i);
        double x = tensor_float(t, i);
        int64_t y = quant_round((float)x, p->scale[g], p->zp[g], p->aim.range.lo, p->aim.range.hi);
        along += x * (double)(y - p->zp[g]) * (double)p->scale[g];
        all += x * x;
    }
    return along / all;
}

/* Blocks of 32 of a bell times `by`, the first of zeros alone, fitted with `most` + 1 integers. */
static double share_of(int64_t most, double along, double by) {
    static const Layout blocks = {ELEM_UINT4, 2, {64, 96}, 2, {0, 1}, {32, 1}, 2};
    Arena *a = arena_new(0, NULL);
    uint32_t seed = 5;
    Quant *q = quant_of_layout(a, &blocks, &seed);
    uint8_t *bytes;
    Tensor *t = tensor_new(a, ELEM_FLOAT, blocks.rank, blocks.dims, &bytes);
    fill_bell(t, bytes, &seed);
    float *x = (float *)(void *)bytes;
    for (size_t i = 0; i < t->count; i++)
        x[i] = i < 32 * 96 && i % 96 == 0 ? 0 : (float)((double)x[i] * by);
    size_t n = groups_count(q, t);
    GroupParams p = {
        {{0, most}, false, false, along}, NEW_ARRAY(a, float, n), NEW_ARRAY(a, int64_t, n)};
    groups_fit(&p, q, t, a);
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(p.scale[i]) && p.scale[i] >= FLT_MIN);
        assert_true(p.zp[i] >= 0 && p.zp[i] <= most);
    }
    double share = kept_share(t, q, &p);
    arena_free(a);
    return share;
}

/* Two bits make numbers an eighth smaller by least squares, and hardly smaller where that counts
 * more; beyond the range in which float holds squares the largest number decides. */
static void test_fit_along(void **state) {
    (void)state;
    static const double sizes[] = {1, 1e-15, 1e15};
    double plain = share_of(3, 0, 1);
    assert_true(plain > 0.85 && plain < 0.9);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double along = share_of(3, 4, sizes[i]);
        assert_true(along > 0.93 && along < 1);
    }
    assert_true(share_of(7, 4, 1) > share_of(7, 0, 1));
    assert_true(share_of(3, 4, 1e20) > 0.85 && share_of(3, 4, 1e20) < 1.01);
    assert_true(share_of(3, 4, 1e-30) > 0.85 && share_of(3, 4, 1e-30) < 1.01);
}

/* What a number's integer stands for: the definition, one number at a time. */
static float stands_for(float x, float scale, int64_t zp, int64_t lo, int64_t hi) {
    return (float)(quant_round(x, scale, zp, lo, hi) - zp) * scale;
}

static void same_float(float got, float want) {
    assert_memory_equal(&got, &want, sizeof want); /* -0 is not 0 */
}

static void test_round(void **state) {
    (void)state;
    enum { N = 3 * 32 + 5 };
    static const struct {
        float scale;
        int64_t zp, lo, hi;
    } q[] = {{0.5F, 0, -128, 127},    {0.5F, 255, 0, 255},        {0.03F, 3, 0, 15},
             {0.5F, -8, -8, 7},       {0.01F, 65535, 0, 65535},   {1e-38F, 0, -128, 127},
             {3e38F, 0, -128, 127},   {0.125F, 7, -32768, 32767}, {0.1F, 300, 0, 255},
             {0.25F, 0, -4194304, 1}, {0.25F, 0, -1, 4194304}};
    uint32_t seed = 3;
    for (size_t k = 0; k < sizeof q / sizeof *q; k++)
        for (size_t n = 0; n <= N; n += k % 2 ? 1 : 13) {
            float x[N + 1], each[N + 1], scale[N + 1], plain[N + 1];
            for (size_t i = 0; i <= n; i++) {
                plain[i] = x[i] = each[i] = number(&seed, i);
                scale[i] = i % 2 ? q[k].scale : 0.75F;
            }
            float lo = (float)(q[k].lo - q[k].zp), hi = (float)(q[k].hi - q[k].zp);
            row_round(x, n, q[k].scale, lo, hi);
            row_round_scales(each, n, scale, lo, hi);
            for (size_t i = 0; i < n; i++) {
                same_float(x[i], stands_for(plain[i], q[k].scale, q[k].zp, q[k].lo, q[k].hi));
                same_float(each[i], stands_for(plain[i], scale[i], q[k].zp, q[k].lo, q[k].hi));
            }
            same_float(x[n], plain[n]);
            same_float(each[n], plain[n]);
        }
}

/* Of small integers, so that no order of additions changes a sum. */
static void test_sums(void **state) {
    (void)state;
    enum { N = 2 * 32 + 7 };
    uint32_t seed = 5;
    for (size_t n = 0; n <= N; n++) {
        double x[N + 1], y[N + 1], sum[N + 1], scaled[N + 1], dot = 0;
        float f[N + 1];
        for (size_t i = 0; i <= n; i++) {
            x[i] = (double)(noise(&seed) % 2000) - 1000;
            y[i] = (double)(noise(&seed) % 2000) - 1000;
            f[i] = (float)x[i];
            sum[i] = scaled[i] = y[i];
            dot += i < n ? x[i] * y[i] : 0;
        }
        row_add(f, n, sum);
        row_add_scaled(x, n, -3, scaled);
        for (size_t i = 0; i <= n; i++) {
            assert_true(sum[i] == y[i] + (i < n ? x[i] : 0));
            assert_true(scaled[i] == y[i] - (i < n ? 3 * x[i] : 0));
        }
        assert_true(row_dot(x, y, n) == dot);
    }
}

static void test_is_positive(void **state) {
    (void)state;
    static const float good[] = {FLT_MIN, 1, 0.03F, FLT_MAX},
                       bad[] = {0,        -0.0F,    FLT_MIN / 2, 1e-45F, -FLT_MIN, -1,
                                -FLT_MAX, INFINITY, -INFINITY,   NAN,    -NAN};
    enum { N = 70 };
    for (size_t n = 0; n <= N; n++) {
        float x[N];
        for (size_t i = 0; i < n; i++)
            x[i] = good[i % 4];
        assert_true(row_is_positive(x, n));
        for (size_t k = 0; n && k < sizeof bad / sizeof *bad; k++) { /* one number decides */
            float kept = x[k * 7 % n];
            x[k * 7 % n] = bad[k];
            assert_false(row_is_positive(x, n));
            x[k * 7 % n] = kept;
        }
    }
}

/* What params_from_ranges is to give, for one range. */
static void define_params(float min, float max, IntRange r, bool sym, bool pow2, float *scale,
                          int64_t *zp) {
    double lo = fmin((double)min, 0), hi = fmax((double)max, 0);
    if (sym)
        hi = fmax(-lo, hi), lo = -hi;
    double s = (hi - lo) / (double)(r.hi - r.lo);
    *scale = 1;
    *zp = 0;
    if (!(s >= (double)FLT_MIN))
        return;
    s = pow2 ? exp2(ceil(log2(s))) : s;
    *scale = (float)s;
    double z = rint(sym ? (double)(r.lo + r.hi) / 2 : (double)r.lo - lo / s);
    *zp = (int64_t)fmin(fmax(z, (double)r.lo), (double)r.hi);
}

static void test_params(void **state) {
    (void)state;
    static const IntRange ranges[] = {
        {-128, 127}, {0, 255}, {-7, 7},         {-8, 7},
        {0, 15},     {0, 1},   {-32768, 32767}, {INT32_MIN, INT32_MAX}};
    static const float ends[] = {0,      -0.0F, 1,      127.5F, 0.1F,  3e-38F,
                                 1e-45F, 1e38F, 1e-30F, -1,     -0.3F, 0.5F};
    enum { MOST = 150 };
    uint32_t seed = 6;
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++)
        for (size_t n = 1; n <= MOST; n += n < 4 ? 1 : 29)
            for (int how = 0; how < 4; how++) {
                float min[MOST], max[MOST], scale[MOST];
                int64_t zp[MOST];
                for (size_t i = 0; i < n; i++) {
                    min[i] = -ends[noise(&seed) % (sizeof ends / sizeof *ends)];
                    max[i] = ends[noise(&seed) % (sizeof ends / sizeof *ends)];
                }
                params_from_ranges(min, max, n, ranges[k], how & 1, how & 2, scale, zp);
                for (size_t i = 0; i < n; i++) {
                    float want;
                    int64_t want_zp;
                    define_params(min[i], max[i], ranges[k], how & 1, how & 2, &want, &want_zp);
                    same_float(scale[i], want);
                    assert_int_equal(zp[i], want_zp);
                }
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),        cmocka_unit_test(test_runs_of_a_part),
        cmocka_unit_test(test_quantize),    cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_bytes),       cmocka_unit_test(test_join),
        cmocka_unit_test(test_fit),         cmocka_unit_test(test_fit_along),
        cmocka_unit_test(test_round),       cmocka_unit_test(test_sums),
        cmocka_unit_test(test_is_positive), cmocka_unit_test(test_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
