/* Elementwise kernels, pools, softmax, quantization and copies at their edges: ties, saturation,
 * zero points at both ends of the type, NaN, padding, nothing to do. */
#include "kernel_tools.h"

/* ---- quantization ---- */

static void quantize_rounds_half_to_even(void **state) {
    (void)state;
    const float x[] = {0.5f,   1.5f,       2.5f,  -0.5f,    -1.5f,     126.5f, 127.5f,
                       300.0f, -1e9f,      1e30f, INFINITY, -INFINITY, NAN,    0.49999997f,
                       -0.0f,  8388609.0f, -2.5f, 3e9f,     -3e9f};
    const float one = 1.0f;
    for (size_t t = 0; t < 5; t++) {
        const IntType *ty = &int_types[t];
        int32_t zp = t == 1 ? 7 : -3, y[COUNT(x)];
        if (t == 3)
            zp = 65535;
        qk_quantize_params p = {
            1, 1, COUNT(x), 1, 0, 0, 0, (int32_t)ty->lo, (int32_t)ty->hi, (int32_t)ty->lo};
        char name[32];
        snprintf(name, sizeof name, "qk_quantize_%s", ty->id);
        RUN(name, &p, (void *)x, (void *)&one, &zp, y);
        for (size_t i = 0; i < COUNT(x); i++) {
            int64_t want = isnan(x[i]) ? ty->lo : saturate(rint((double)x[i]) + zp, ty->lo, ty->hi);
            assert_int_equal(get(ty, y, i), want);
        }
    }
}

static void quantize_divides(void **state) {
    (void)state;
    enum { N = 4096 };
    static float x[N];
    static int8_t y[N];
    float scale = 0.0235294122248888f;
    int32_t zp = 5;
    for (int i = 0; i < N; i++)
        x[i] = i % 2 ? ((float)(i % 256 - 128) + 0.5f) * scale : (float)uniform(-4, 4);
    qk_quantize_params p = {1, 1, N, 1, 0, 0, 0, -100, 100, -128};
    RUN("qk_quantize_s8", &p, x, &scale, &zp, y);
    for (int i = 0; i < N; i++)
        assert_int_equal(y[i], saturate((double)rintf(x[i] / scale) + zp, -100, 100));
    float zero = 0, nan_or_inf[] = {0.0f, 1.0f, -1.0f};
    p.inner = 3, p.lo = -128, p.hi = 127;
    RUN("qk_quantize_s8", &p, nan_or_inf, &zero, &zp, y);
    assert_int_equal(y[0], -128);
    assert_int_equal(y[1], 127);
    assert_int_equal(y[2], -128);
}

/* x[2, 5, 3] in blocks of 2 along the middle: scales [2, 3, 3] */
static void blocks_select_their_scale(void **state) {
    (void)state;
    float x[30], scale[18], back[30], fake[30];
    int32_t zp[18];
    uint8_t y[30];
    for (int i = 0; i < 30; i++)
        x[i] = (float)uniform(-2, 2);
    for (int i = 0; i < 18; i++)
        scale[i] = 0.01f * (float)(i + 1), zp[i] = 8 * i;
    qk_quantize_params p = {2, 5, 3, 2, 9, 3, 1, 0, 255, 0};
    qk_dequantize_params d = {2, 5, 3, 2, 9, 3, 1};
    qk_fakequant_f32_params f = {2, 5, 3, 2, 9, 3, 1, 0, 255, 0};
    RUN("qk_quantize_u8", &p, x, scale, zp, y);
    RUN("qk_dequantize_u8", &d, y, scale, zp, back);
    RUN("qk_fakequant_f32", &f, x, scale, zp, fake);
    for (int i = 0; i < 30; i++) {
        int s = i / 15 * 9 + i / 3 % 5 / 2 * 3 + i % 3;
        assert_int_equal(y[i], saturate((double)rintf(x[i] / scale[s]) + zp[s], 0, 255));
        assert_true(back[i] == (float)(y[i] - zp[s]) * scale[s]);
        assert_true(fake[i] == back[i]);
    }
}

static void fakequant_of_any_width(void **state) {
    (void)state;
    const float x[] = {NAN, 0.5f, 1.5f, -2.5f, 3e9f, -3e9f, 100000000.0f, INFINITY, -126.5f};
    const float one = 1.0f;
    for (int t = 0; t < 5; t++) {
        const IntType *ty = &int_types[t];
        int32_t zp = t == 4 ? 0 : (int32_t)ty->hi - 1;
        float y[COUNT(x)];
        qk_fakequant_f32_params p = {
            1, 1, COUNT(x), 1, 0, 0, 0, (int32_t)ty->lo, (int32_t)ty->hi, (int32_t)ty->lo};
        RUN("qk_fakequant_f32", &p, (void *)x, (void *)&one, &zp, y);
        for (size_t i = 0; i < COUNT(x); i++) {
            int64_t q = isnan(x[i]) ? ty->lo : saturate(rint((double)x[i]) + zp, ty->lo, ty->hi);
            assert_true(y[i] == (float)(q - zp));
        }
    }
}

static void dequantize_rounds_int32_first(void **state) {
    (void)state;
    int32_t x[] = {16777217, INT32_MAX, INT32_MIN}, zp = 0;
    float scale = 3.0f, y[3];
    qk_dequantize_params d = {1, 1, 3, 1, 0, 0, 0};
    RUN("qk_dequantize_s32", &d, x, &scale, &zp, y);
    for (int i = 0; i < 3; i++)
        assert_true(y[i] == (float)x[i] * 3.0f);
}

/* ---- sums, products, change of scale ---- */

/* `got` is `exact` rounded, unless that is nearer than 2^-20 to a tie: then a neighbour. */
static void check_rounded(int64_t got, long double exact, int64_t zp, const IntType *t) {
    long double lo = rintl(exact - 0x1p-20L) + (long double)zp,
                hi = rintl(exact + 0x1p-20L) + (long double)zp;
    int64_t least = saturate((double)lo, t->lo, t->hi), most = saturate((double)hi, t->lo, t->hi);
    if (got < least || got > most)
        fail_msg("%s: %lld for %.9Lf, zero point %lld", t->id, (long long)got, exact,
                 (long long)zp);
}

static void add_rounds_once(void **state) {
    (void)state;
    enum { N = 500 };
    for (int i = 0; i < 800; i++) {
        const IntType *t = &int_types[i % 4];
        void *a = random_ints(t, N), *b = random_ints(t, N), *y = calloc(N, 4);
        bool dyadic = i % 5 == 0; /* many ties, exact */
        float sy = dyadic ? 1.0f : (float)exp(uniform(-6, 2));
        float sa = dyadic ? 0.25f : (float)exp(uniform(-6, 2)),
              sb = dyadic ? -0.5f : (float)exp(uniform(-6, 2));
        qk_add_q_params p = {.rank = 2, .dim = {5, 100}, .as = {100, 1}, .bs = {0, 1}};
        p.az = (int32_t)random_zp(t), p.bz = (int32_t)random_zp(t), p.yz = (int32_t)random_zp(t);
        p.lo = (int32_t)t->lo, p.hi = (int32_t)t->hi;
        requant_add(sa, sb, sy, 8 * t->bytes, &p.ma, &p.mb, &p.shift);
        char name[32];
        snprintf(name, sizeof name, "qk_add_q_%s", t->id);
        RUN(name, &p, a, b, y);
        for (size_t j = 0; j < N; j++) {
            long double va = (long double)(get(t, a, j) - p.az),
                        vb = (long double)(get(t, b, j % 100) - p.bz);
            long double exact = (va * (long double)sa + vb * (long double)sb) / (long double)sy;
            if (dyadic)
                assert_int_equal(get(t, y, j), saturate((double)(rintl(exact) + (long double)p.yz),
                                                        t->lo, t->hi));
            else
                check_rounded(get(t, y, j), exact, p.yz, t);
        }
        free(a), free(b), free(y);
    }
}

/* As QLinearMul does it: products of 8 bits take the zero point before they are rounded. */
static int64_t ort_product(int64_t product, float m, int64_t zp, const IntType *t) {
    if (t->bytes == 2)
        return ort_requant(product, m, zp, t);
    float scaled = (float)product * m, sum = scaled + (float)zp;
    return saturate((double)rintf(sum), t->lo, t->hi);
}

static void mul_and_requantize(void **state) {
    (void)state;
    enum { N = 300 };
    for (int i = 0; i < 640; i++) {
        const IntType *t = &int_types[i % 4], *to = &int_types[i / 4 % 4];
        void *a = random_ints(t, N), *b = random_ints(t, N), *y = calloc(N, 4);
        float m = i % 5 == 0   ? 0x1p-8f
                  : i % 5 == 1 ? 0x1.cfe4cap-7f + 0x1p-30f * (float)(i % 9) /* near ties */
                               : (float)exp(uniform(-20, 0)),
              sx = (float)exp(uniform(-4, 2));
        qk_mul_q_params p = {.rank = 1, .dim = {N}, .as = {1}, .bs = {1}};
        p.az = (int32_t)random_zp(t), p.bz = (int32_t)random_zp(t), p.yz = (int32_t)random_zp(t);
        p.lo = (int32_t)t->lo, p.hi = (int32_t)t->hi;
        p.inside = p.yz;
        requant_from_float(m, &p.c, &p.k);
        char name[32];
        snprintf(name, sizeof name, "qk_mul_q_%s", t->id);
        RUN(name, &p, a, b, y);
        for (size_t j = 0; j < N; j++)
            assert_int_equal(
                get(t, y, j),
                ort_product((get(t, a, j) - p.az) * (get(t, b, j) - p.bz), m, p.yz, t));
        qk_requantize_params q = {.n = N, .xz = p.az, .yz = (int32_t)random_zp(to)};
        q.lo = (int32_t)to->lo, q.hi = (int32_t)to->hi;
        requant_ratio(sx, 0.7f, 8 * t->bytes, &q.m, &q.shift);
        snprintf(name, sizeof name, "qk_requantize_%s_%s", t->id, to->id);
        RUN(name, &q, a, y);
        for (size_t j = 0; j < N; j++)
            check_rounded(get(to, y, j),
                          (long double)(get(t, a, j) - q.xz) * (long double)sx / 0.7f, q.yz, to);
        free(a), free(b), free(y);
    }
}

static void float_broadcasting(void **state) {
    (void)state;
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {10, 20}; /* [2, 3] and [2, 1] */
    float y[6];
    qk_binary_params p = {2, {2, 3}, {3, 1}, {1, 0}};
    RUN("qk_binary_sub_f32", &p, (void *)a, (void *)b, y);
    for (int i = 0; i < 6; i++)
        assert_true(y[i] == a[i] - b[i / 3]);
    qk_binary_params d = {.rank = 0};
    RUN("qk_binary_div_f32", &d, (void *)a, (void *)b, y); /* scalars */
    assert_true(y[0] == 0.1f);
    qk_binary_params m = {3, {2, 1, 3}, {0, 0, 1}, {1, 0, 0}};
    RUN("qk_binary_mul_f32", &m, (void *)a, (void *)b, y);
    assert_true(y[0] == 10 && y[2] == 30 && y[3] == 20 && y[5] == 60);
    qk_binary_params none = {2, {0, 3}, {3, 1}, {3, 1}};
    y[0] = 99;
    RUN("qk_binary_add_f32", &none, (void *)a, (void *)b, y);
    assert_true(y[0] == 99);
}

/* ---- pools ---- */

static void average_pool(void **state) {
    (void)state;
    for (int i = 0; i < 600; i++) {
        const IntType *t = &int_types[i % 4];
        qk_avgpool2d_q_params p = {
            .n = 2, .c = 2, .ih = (int)between(1, 6), .iw = (int)between(1, 6)};
        p.kh = (int)between(1, 3), p.kw = (int)between(1, 3), p.dh = (int)between(1, 2), p.dw = 1;
        p.sh = (int)between(1, 2), p.sw = (int)between(1, 2), p.count_include_pad = i / 4 % 2;
        p.pt = (int)between(0, 1), p.pl = (int)between(0, 1), p.pb = (int)between(0, 1),
        p.pr = p.pl;
        int th = p.ih + p.pt + p.pb - (p.kh - 1) * p.dh - 1, tw = p.iw + p.pl + p.pr - p.kw;
        p.oh = th < 0 ? 0 : th / p.sh + 1, p.ow = tw < 0 ? 0 : tw / p.sw + 1;
        p.xz = (int32_t)random_zp(t), p.yz = (int32_t)random_zp(t);
        p.lo = (int32_t)t->lo, p.hi = (int32_t)t->hi;
        float sx = i % 3 ? (float)uniform(0.01, 0.05) : 0.5f, sy = i % 3 ? 0.03f : 1.0f;
        requant_pool(sx, sy, 8 * t->bytes, p.kh * p.kw, &p.m, &p.shift);
        size_t nx = (size_t)(4 * p.ih * p.iw), ny = (size_t)(4 * p.oh * p.ow);
        void *x = random_ints(t, nx), *y = calloc(ny + 1, 4);
        float *xf = calloc(nx, 4), *yf = calloc(ny + 1, 4);
        for (size_t j = 0; j < nx; j++)
            xf[j] = (float)(get(t, x, j) - p.xz);
        char name[32];
        snprintf(name, sizeof name, "qk_avgpool2d_q_%s", t->id);
        RUN(name, &p, x, y);
        qk_avgpool2d_f32_params f = {2,
                                     2,
                                     p.ih,
                                     p.iw,
                                     p.oh,
                                     p.ow,
                                     p.kh,
                                     p.kw,
                                     p.sh,
                                     p.sw,
                                     p.dh,
                                     p.dw,
                                     p.pt,
                                     p.pl,
                                     p.pb,
                                     p.pr,
                                     p.count_include_pad};
        RUN("qk_avgpool2d_f32", &f, xf, yf);
        for (size_t j = 0; j < ny; j++) {
            int ox = (int)j % p.ow, oy = (int)j / p.ow % p.oh, plane = (int)j / p.ow / p.oh,
                count = 0;
            int64_t sum = 0;
            for (int k = 0; k < p.kh * p.kw; k++) {
                int iy = oy * p.sh - p.pt + k / p.kw * p.dh, ix = ox * p.sw - p.pl + k % p.kw;
                bool real = iy >= 0 && iy < p.ih && ix >= 0 && ix < p.iw;
                if (real)
                    sum += get(t, x, (size_t)((plane * p.ih + iy) * p.iw + ix)) - p.xz;
                count += real || (p.count_include_pad && iy < p.ih + p.pb && ix < p.iw + p.pr);
            }
            assert_true(yf[j] == (count ? (float)sum / (float)count : 0));
            long double exact =
                count ? (long double)sum * (long double)sx / ((long double)sy * count) : 0;
            if (i % 3)
                check_rounded(get(t, y, j), exact, p.yz, t);
            else /* sx / sy = 0.5: ties */
                assert_int_equal(get(t, y, j), saturate((double)(rintl(exact) + (long double)p.yz),
                                                        t->lo, t->hi));
        }
        free(x), free(y), free(xf), free(yf);
    }
}

static void global_average_pool(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        const IntType *t = &int_types[i % 4];
        qk_globalavgpool_q_params p = {
            .outer = 5, .inner = 49, .lo = (int32_t)t->lo, .hi = (int32_t)t->hi};
        p.xz = (int32_t)random_zp(t), p.yz = (int32_t)random_zp(t);
        float m = (float)uniform(0.01, 0.03);
        requant_from_float(m, &p.c, &p.k);
        void *x = random_ints(t, 5 * 49), *y = calloc(5, 4);
        char name[32];
        snprintf(name, sizeof name, "qk_globalavgpool_q_%s", t->id);
        RUN(name, &p, x, y);
        for (size_t o = 0; o < 5; o++) {
            int64_t sum = 0;
            for (size_t j = 0; j < 49; j++)
                sum += get(t, x, o * 49 + j) - p.xz;
            assert_int_equal(get(t, y, o), ort_requant(sum, m, p.yz, t));
        }
        free(x), free(y);
    }
}

static void max_pool_ignores_padding(void **state) {
    (void)state;
    const int8_t x[] = {-128, -5, -7, -9};
    int8_t y[9];
    qk_maxpool2d_params p = {1, 1, 2, 2, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1};
    RUN("qk_maxpool2d_s8", &p, (void *)x, y);
    const int8_t want[] = {-128, -5, -5, -7, -5, -5, -7, -7, -9};
    assert_memory_equal(y, want, sizeof want);
    const float f[] = {-1.5f, -INFINITY, -3, -4};
    float z[9];
    RUN("qk_maxpool2d_f32", &p, (void *)f, z);
    assert_true(z[0] == -1.5f && z[2] == -INFINITY && z[8] == -4);
}

/* ---- softmax ---- */

static void softmax_of_integers(void **state) {
    (void)state;
    enum { OUTER = 3, N = 10, INNER = 2 };
    static uint32_t table[512];
    for (int i = 0; i < 800; i++) {
        const IntType *x = &int_types[i % 4], *y = &int_types[i / 4 % 4];
        float sx = (float)exp(uniform(-9, 0)) * (x->bytes == 1 ? 1.0f : 0.01f);
        float sy = 1.0f / (float)(i % 3 ? y->hi - y->lo + 1 : 300);
        qk_softmax_q_params p = {.outer = OUTER, .n = N, .inner = INNER, .yz = (int32_t)y->lo};
        p.lo = (int32_t)y->lo, p.hi = (int32_t)y->hi;
        softmax_table(sx, 8 * x->bytes, table);
        softmax_inverse(sy, N, &p.inv, &p.shift);
        void *in = random_ints(x, OUTER * N * INNER), *out = calloc(OUTER * N * INNER, 4);
        char name[32];
        snprintf(name, sizeof name, "qk_softmax_q_%s_%s", x->id, y->id);
        RUN(name, &p, in, table, out);
        for (size_t j = 0; j < OUTER * N * INNER; j++) {
            double sum = 0, v = (double)get(x, in, j);
            size_t base = j / (N * INNER) * (N * INNER) + j % INNER;
            for (size_t k = 0; k < N; k++)
                sum += exp(((double)get(x, in, base + k * INNER) - v) * (double)sx);
            double exact = 1 / sum / (double)sy;
            int64_t least = saturate(rint(exact - 0.01) + (double)y->lo, y->lo, y->hi);
            int64_t most = saturate(rint(exact + 0.01) + (double)y->lo, y->lo, y->hi);
            assert_in_range(get(y, out, j) + 40000, least + 40000, most + 40000);
        }
        free(in), free(out);
    }
}

static void softmax_f32_does_not_overflow(void **state) {
    (void)state;
    float x[] = {1000, 1000, -1000, 0}, y[4];
    qk_softmax_f32_params p = {1, 4, 1};
    RUN("qk_softmax_f32", &p, x, y);
    assert_true(y[0] == 0.5f && y[1] == 0.5f && y[2] == 0 && y[3] == 0);
}

/* ---- moving data, tables, bounds ---- */

static void copies(void **state) {
    (void)state;
    const uint16_t x[] = {0, 1, 2, 3, 4, 5};
    uint16_t y[6] = {9, 9, 9, 9, 9, 9};
    qk_copy_nd_params transpose = {2, {3, 2}, {1, 3}, {2, 1}, 0, 0};
    RUN("qk_copy_nd_x16", &transpose, (void *)x, y);
    assert_memory_equal(y, ((uint16_t[]){0, 3, 1, 4, 2, 5}), sizeof y);
    uint32_t cube[24], turned[24];
    for (uint32_t i = 0; i < 24; i++)
        cube[i] = i;
    qk_copy_nd_params turn = {3, {4, 3, 2}, {1, 4, 12}, {6, 2, 1}, 0, 0}; /* [2, 3, 4] backwards */
    RUN("qk_copy_nd_x32", &turn, cube, turned);
    for (uint32_t i = 0; i < 24; i++)
        assert_int_equal(turned[i], i / 6 + i / 2 % 3 * 4 + i % 2 * 12);
    qk_copy_nd_params reverse = {1, {3}, {-2}, {1}, 5, 1};
    RUN("qk_copy_nd_x16", &reverse, (void *)x, y);
    assert_memory_equal(y, ((uint16_t[]){0, 5, 3, 1, 2, 5}), sizeof y);
    qk_copy_nd_params scalar = {.rank = 0, .src_offset = 4};
    RUN("qk_copy_nd_x16", &scalar, (void *)x, y);
    assert_int_equal(y[0], 4);
    qk_copy_nd_params none = {3, {2, 0, 3}, {1, 1, 1}, {1, 1, 1}, 0, 0};
    RUN("qk_copy_nd_x16", &none, (void *)x, y);
    assert_int_equal(y[0], 4);
    qk_fill_params fill = {3, -2};
    RUN("qk_fill_x16", &fill, y);
    assert_true(y[2] == 65534 && y[3] == 1);
}

static void tables_and_bounds(void **state) {
    (void)state;
    int8_t x[] = {-128, 0, 127};
    uint16_t table[256], y[3];
    for (int i = 0; i < 256; i++)
        table[i] = (uint16_t)(1000 + i);
    qk_lut8_params p = {3};
    RUN("qk_lut8_s8_u16", &p, x, table, y);
    assert_true(y[0] == 1000 && y[1] == 1128 && y[2] == 1255);
    qk_clamp_params c = {3, -5, 100};
    RUN("qk_clamp_s8", &c, x, x);
    assert_true(x[0] == -5 && x[1] == 0 && x[2] == 100);
    float f[] = {NAN, -1, 7};
    qk_clamp_f32_params cf = {3, 0, 6};
    RUN("qk_clamp_f32", &cf, f, f);
    assert_true(isnan(f[0]) && f[1] == 0 && f[2] == 6);
}

static void normalizations(void **state) {
    (void)state;
    float x[] = {1, 2, 3, 4}, y[4], scale[] = {2, 1}, bias[] = {0, 1}, mean[] = {1, 0},
          var[] = {3, 0}, factor[2];
    qk_batchnorm_factor_f32_params f = {2, 1.0f};
    RUN("qk_batchnorm_factor_f32", &f, scale, var, factor);
    assert_true(factor[0] == 1 && factor[1] == 1);
    qk_batchnorm_f32_params b = {1, 2, 2, 0, 0, 0};
    RUN("qk_batchnorm_f32", &b, x, factor, bias, mean, y);
    assert_true(y[0] == 0 && y[1] == 1 && y[2] == 4 && y[3] == 5);
    b = (qk_batchnorm_f32_params){2, 2, 1, 1, 1, 3}; /* channels last, and clamped */
    RUN("qk_batchnorm_f32", &b, x, factor, bias, mean, y);
    assert_true(y[0] == 1 && y[1] == 3 && y[2] == 2 && y[3] == 3);
    qk_lrn_f32_params l = {1, 4, 1, 2, 2.0f, 1.0f, 1.0f}; /* even size: one channel more behind */
    RUN("qk_lrn_f32", &l, x, y);
    for (int c = 0; c < 4; c++) {
        float sum = x[c] * x[c] + (c < 3 ? x[c + 1] * x[c + 1] : 0);
        assert_true(fabsf(y[c] - x[c] / (1 + sum)) < 1e-6f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantize_rounds_half_to_even),
        cmocka_unit_test(quantize_divides),
        cmocka_unit_test(blocks_select_their_scale),
        cmocka_unit_test(fakequant_of_any_width),
        cmocka_unit_test(dequantize_rounds_int32_first),
        cmocka_unit_test(add_rounds_once),
        cmocka_unit_test(mul_and_requantize),
        cmocka_unit_test(float_broadcasting),
        cmocka_unit_test(average_pool),
        cmocka_unit_test(global_average_pool),
        cmocka_unit_test(max_pool_ignores_padding),
        cmocka_unit_test(softmax_of_integers),
        cmocka_unit_test(softmax_f32_does_not_overflow),
        cmocka_unit_test(copies),
        cmocka_unit_test(tables_and_bounds),
        cmocka_unit_test(normalizations),
    };
    int failed = 0;
    for (vectors = KERNEL_ANY; vectors <= kernel_vectors(); vectors++)
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
