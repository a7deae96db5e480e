/* Products and requantization at their edges against straightforward references. Agreement with
 * onnxruntime is tested elsewhere. */
#include "program/program.h"
#include "kernel_tools.h"

#include "kernels/round/cut32.qk" /* a chunk without types is plain C */
#include "kernels/recurrent/recur_curve.qk"
#include "kernels/round/requant.qk"
#include "kernels/round/requant_double.qk"
#include "kernels/round/requant_shift.qk"
#include "kernels/round/requant_single.qk"
#include "kernels/round/requant_sum.qk"

/* ---- the table ---- */

/* Boards without FPU: a kernel between integers has no floating point inside. */
static void check_integer_only(const KernelDef *k) {
    for (size_t f = 0; f < k->n_fields; f++)
        if (k->fields[f].kind == KF_F32)
            return;
    for (size_t a = 0; a < k->n_args; a++)
        if (!strcmp(k->args[a].ctype, "float") || !strcmp(k->args[a].ctype, "double"))
            return;
    assert_false(k->needs_math || k->is_float);
}

static void uses(const char *name, bool is_float, bool math, bool string) {
    const KernelDef *k = kernel_find(name);
    assert_non_null(k);
    if (k->is_float != is_float || k->needs_math != math || k->needs_string != string)
        fail_msg("%s: float %d, math %d, string %d", name, k->is_float, k->needs_math,
                 k->needs_string);
}

static void kernels_tell_what_they_use(void **state) {
    (void)state;
    uses("qk_leakyrelu_f32", true, false, false);
    uses("qk_softmax_f32", true, false, true);
    uses("qk_softmax_f64", true, true, false);
    uses("qk_unary_abs_s8", false, false, false);
    uses("qk_add_q_s8", false, false, true); /* its micro-kernels copy ends of rows */
    uses("qk_lut8_s8_s8", false, false, false);
    uses("qk_lut8_s8_f32", true, false, false);
    uses("qk_gather_x8_s64", false, false, true);
}

static void table_is_complete(void **state) {
    (void)state;
    assert_true(kernel_count() > 200);
    for (size_t i = 0; i < kernel_count(); i++) {
        const KernelDef *k = kernel_at(i);
        assert_ptr_equal(kernel_find(k->name), k);
        assert_true(k->n_fields > 0 && k->n_args > 0 && k->n_args <= CALL_MAX_ARGS);
        assert_non_null(strstr(k->source, k->name));
        assert_non_null(strstr(k->params_source, k->params_type));
        assert_null(strchr(k->source, '$'));
        check_integer_only(k);
        assert_null(strstr(k->source, "//!"));
        for (size_t f = 0; f < k->n_fields; f++)
            assert_true(k->fields[f].offset < k->params_size && k->fields[f].count <= 8);
        for (size_t u = 0; k->uses[u]; u++)
            assert_true(k->uses[u]->name[0] && k->uses[u]->source[0]);
    }
    assert_null(kernel_find("qk_conv2d_q_f32_s8_s8"));
}

/* ---- functions of gates ---- */

static void check_curve(int64_t x) {
    double tanh_error = qk_recur_tanh(x) - 0x1p30 * tanh(ldexp((double)x, -24));
    double sigmoid_error = qk_recur_curve(0, x) - 0x1p30 / (1 + exp(-ldexp((double)x, -24)));
    if (fabs(tanh_error) > 0x1p9 || fabs(sigmoid_error) > 0x1p8)
        fail_msg("of %lld: tanh is %g, sigmoid %g away", (long long)x, tanh_error, sigmoid_error);
    assert_int_equal(qk_recur_tanh(-x), -qk_recur_tanh(x));
}

/* Within 2^-21 and 2^-22, and odd; between, beside and beyond the entries of the table. */
static void curves_are_near(void **state) {
    (void)state;
    for (int64_t x = 0; x < 9 << 24; x += 997)
        check_curve(x);
    for (int64_t i = 0; i <= 129; i++)
        for (int64_t beside = -1; beside <= 1; beside++) {
            check_curve(i * 1048576 + beside);
            check_curve(i * 1048576 + 524288 + beside);
        }
    check_curve(INT32_MAX);
    check_curve(INT64_MIN / 2);
}

/* ---- requantization ---- */

static void check_requant(int64_t acc, float m) {
    int32_t c, k;
    requant_from_float(m, &c, &k);
    float want = rintf((float)acc * m);
    if (fabsf(want) >= 16777216.0f)
        return;
    int32_t got = qk_requant(acc, c, k);
    if (got != (int32_t)want)
        fail_msg("requant(%lld, %a) = %d, not %d", (long long)acc, (double)m, got, (int)want);
    if (acc == (int32_t)acc && qk_requant_sum((int32_t)acc, c, k) != got)
        fail_msg("the sum %lld, %a: %d, not %d", (long long)acc, (double)m,
                 qk_requant_sum((int32_t)acc, c, k), got);
}

static void requant_equals_float(void **state) {
    (void)state;
    const float special[] = {0.0f,    1.0f,   -1.0f,    0.5f,          0.25f, 1.5f,
                             255.0f,  1e-38f, 1e-45f,   0.1f,          1e-9f, 16777215.0f,
                             1 / 3.f, 4.f,    0x1p-24f, 0x1.fffffep-2f};
    const int64_t sums[] = {
        0,        1,        2,        3,         5,         16777215,  16777216,      16777217,
        16777219, 33554434, 33554435, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN + 1, INT64_MIN};
    for (size_t i = 0; i < COUNT(special); i++)
        for (size_t j = 0; j < COUNT(sums); j++) {
            check_requant(sums[j], special[i]);
            check_requant(-(sums[j] + (sums[j] == INT64_MIN)), special[i]);
        }
    for (int i = 0; i < 400; i++) {
        float m = (float)exp(uniform(log(1e-9), log(4.0))) * (i % 7 ? 1.0f : -1.0f);
        int64_t most = (int64_t)fmin(70000 / fabs((double)m), i % 2 ? 9e15 : 2147483647.0);
        for (int j = 0; j < 2000; j++) {
            check_requant(between(-most, most), m);
            check_requant(between(-(1 << 24) - 2, (1 << 24) + 2), m);
        }
        for (int q = -300; q < 300; q++) /* at and next to ties */
            for (int d = -1; d <= 1; d++)
                check_requant(llrint((q + 0.5) / (double)m) + d, m);
    }
    int32_t c, k;
    requant_from_float(NAN, &c, &k);
    assert_int_equal(c, 0);
    requant_from_float(INFINITY, &c, &k);
    assert_true(qk_requant(1, c, k) > 1 << 24 && qk_requant(-1, c, k) < -(1 << 24));
    assert_int_equal(qk_requant(0, c, k), 0);
}

/* The fixed-point forms as their sources define them, in 128 bits. */
static __int128 floor_shift(__int128 v, int n) {
    return v >= 0 ? v >> n : -((-v + ((__int128)1 << n) - 1) >> n);
}

static int64_t single_rounding(int64_t acc, int32_t c, int32_t k) {
    return (int64_t)floor_shift((__int128)acc * c + ((__int128)1 << (-k - 1)), -k);
}

static int64_t double_rounding(int64_t acc, int32_t c, int32_t k) {
    int e = k + 31;
    __int128 a = (__int128)acc * ((__int128)1 << (e > 0 ? e : 0));
    a = a > INT32_MAX ? INT32_MAX : a < INT32_MIN ? INT32_MIN : a;
    __int128 v = a * c, high = (v + (v >= 0 ? 1 << 30 : 1 - (1 << 30))) / ((__int128)1 << 31);
    if (e >= 0)
        return (int64_t)high;
    int32_t x = (int32_t)high, mask = (int32_t)((1u << -e) - 1), rest = x & mask;
    return (x >> -e) + (rest > (mask >> 1) + (x < 0));
}

static int64_t shift_rounding(int64_t acc, int32_t k) {
    __int128 v = (__int128)acc * ((__int128)1 << (k > 0 ? k : 0));
    return (int64_t)(k < 0 ? floor_shift(v + ((__int128)1 << (-k - 1)), -k) : v);
}

static int32_t cut30(int64_t v) {
    return (int32_t)(v > 1 << 30 ? 1 << 30 : v < -(1 << 30) ? -(1 << 30) : v);
}

static void check_fixed(int64_t acc, double m) {
    int32_t c, k;
    requant_fixed(m, &c, &k);
    assert_true(c == 0 || (llabs(c) >= 1 << 30 && k >= -62 && k <= -1));
    if (qk_requant_single(acc, c, k) != cut30(single_rounding(acc, c, k)) ||
        qk_requant_double(acc, c, k) != cut30(double_rounding(acc, c, k)))
        fail_msg("%lld * %a: %d and %d", (long long)acc, m, qk_requant_single(acc, c, k),
                 qk_requant_double(acc, c, k));
    /* within one step of the real product, as far as 31 bits of m reach */
    double real = (double)acc * m;
    if (fabs(real) < 1 << 20 && fabs(m) >= 0x1p-31 && fabs(m) < 1) {
        assert_true(fabs((double)qk_requant_single(acc, c, k) - real) <= 0.501);
        assert_true(fabs((double)qk_requant_double(acc, c, k) - real) <= 1.001);
    }
    if (requant_power(m, &k) && qk_requant_shift(acc, 1, k) != cut30(shift_rounding(acc, k)))
        fail_msg("%lld * %a: %d by shifts", (long long)acc, m, qk_requant_shift(acc, 1, k));
}

static void fixed_point_equals_definition(void **state) {
    (void)state;
    const double special[] = {0,
                              1,
                              -1,
                              0.5,
                              0.25,
                              1.5,
                              255,
                              0.1,
                              -0.1,
                              1e-9,
                              0x1p-31,
                              0x1p-32,
                              0x1p-33,
                              0x1p-40,
                              0x1p30,
                              0x1p29,
                              0x1.fffffffffp-1,
                              0x1p31,
                              1e30};
    const int64_t sums[] = {0,       1,         2,        3, 5, 127, 128, 1 << 24, (1 << 24) + 1,
                            1 << 30, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < COUNT(special); i++)
        for (size_t j = 0; j < COUNT(sums); j++) {
            check_fixed(sums[j], special[i]);
            if (sums[j] != INT32_MIN)
                check_fixed(-sums[j], special[i]);
        }
    for (int i = 0; i < 400; i++) {
        double m = i % 3 ? exp(uniform(log(1e-10), log(100))) : ldexp(1, (int)between(-34, 8));
        m *= i % 7 ? 1 : -1;
        for (int j = 0; j < 1000; j++)
            check_fixed(between(INT32_MIN, INT32_MAX) >> between(0, 31), m);
        for (int q = -300; q < 300; q++) /* at and next to ties */
            for (int d = -1; d <= 1; d++) {
                double at = rint((q + 0.5) / m) + d;
                if (fabs(at) < 0x1p31)
                    check_fixed((int64_t)at, m);
            }
    }
    int32_t c, k;
    requant_fixed(NAN, &c, &k);
    assert_int_equal(c, 0);
    requant_fixed(INFINITY, &c, &k);
    assert_true(qk_requant_single(1, c, k) > 1 << 24 && qk_requant_double(-1, c, k) < -(1 << 24));
    assert_false(requant_power(0, &k) || requant_power(0.3, &k) || requant_power(-1, &k));
    assert_true(requant_power(ldexp(1 + 0x1p-21, -7), &k) && k == -7); /* ties go up here anyway */
    assert_true(requant_power(ldexp(1 - 0x1p-23, -7), &k) && k == -7);
    assert_false(requant_power(1 + 0x1p-17, &k) || requant_power(1 - 0x1p-17, &k));
    assert_false(requant_power(INFINITY, &k) || requant_power(NAN, &k) ||
                 requant_power(0x1p31, &k));
    assert_int_equal(qk_requant_single(INT64_MAX, 1 << 30, -61), 1); /* as INT32_MAX */
}

/* ---- convolution ---- */

typedef struct {
    const IntType *x, *w;
    int64_t xz, wz[8];
    void *xs, *ws;
    int64_t bias[8];
} ConvData;

static int64_t conv_at(const qk_conv2d_q_params *p, const ConvData *d, int b, int o, int oy,
                       int ox) {
    int icg = p->ic / p->group, c0 = o / (p->oc / p->group) * icg;
    int64_t acc = d->bias[o];
    for (int c = 0; c < icg; c++)
        for (int ky = 0; ky < p->kh; ky++)
            for (int kx = 0; kx < p->kw; kx++) {
                int iy = oy * p->sh - p->pt + ky * p->dh, ix = ox * p->sw - p->pl + kx * p->dw;
                if (iy < 0 || iy >= p->ih || ix < 0 || ix >= p->iw)
                    continue;
                size_t xi = (size_t)(((b * p->ic + c0 + c) * p->ih + iy) * p->iw + ix);
                size_t wi = (size_t)(((o * icg + c) * p->kh + ky) * p->kw + kx);
                acc += (get(d->x, d->xs, xi) - d->xz) * (get(d->w, d->ws, wi) - d->wz[o]);
            }
    return acc;
}

static qk_conv2d_q_params random_conv(bool depthwise) {
    qk_conv2d_q_params p = {.n = 2, .ih = (int)between(1, 7), .iw = (int)between(1, 9)};
    p.group = (int)between(1, 3);
    p.ic = p.group * (depthwise ? 1 : (int)between(1, 3));
    p.oc = p.group * (int)between(1, 2);
    p.kh = (int)between(1, 3), p.kw = (int)between(1, 4);
    p.sh = (int)between(1, 3), p.sw = (int)between(1, 3);
    p.dh = (int)between(1, 2), p.dw = (int)between(1, 2);
    p.pt = (int)between(0, 3), p.pl = (int)between(0, 4);
    int th = p.ih + p.pt + (int)between(0, 3) - (p.kh - 1) * p.dh - 1;
    int tw = p.iw + p.pl + (int)between(0, 5) - (p.kw - 1) * p.dw - 1;
    p.oh = th < 0 ? 0 : th / p.sh + 1;
    p.ow = tw < 0 ? 0 : tw / p.sw + 1;
    p.m_step = p.wz_step = 1;
    p.has_wz = random_bits() % 2;
    return p;
}

static void conv_case(const IntType *x, const IntType *w, const IntType *y, bool depthwise) {
    qk_conv2d_q_params p = random_conv(depthwise);
    size_t nx = (size_t)(p.n * p.ic * p.ih * p.iw), plane = (size_t)(p.oh * p.ow);
    size_t len = (size_t)(p.ic / p.group * p.kh * p.kw), ny = (size_t)(p.n * p.oc) * plane;
    ConvData d = {.x = x, .w = w, .xz = random_zp(x), .xs = random_ints(x, nx)};
    d.ws = random_ints(w, (size_t)p.oc * len);
    bool wide = x->bytes == 2 || w->bytes == 2;
    int32_t wz[8] = {0}, mul[8], shift[8], bias32[8];
    float m[8];
    for (int o = 0; o < p.oc; o++) {
        wz[o] = (int32_t)(d.wz[o] = p.has_wz ? random_zp(w) : 0);
        bias32[o] = (int32_t)(d.bias[o] = between(-100000, 100000));
        m[o] = (float)((double)(y->hi - y->lo) / ldexp(uniform(0.2, 20), wide ? 30 : 17));
        if (random_bits() % 4 == 0)
            m[o] = 0x1p-9f; /* ties */
        requant_from_float(m[o], &mul[o], &shift[o]);
    }
    int64_t yz = random_zp(y);
    p.xz = (int32_t)d.xz, p.yz = (int32_t)yz, p.lo = (int32_t)y->lo, p.hi = (int32_t)y->hi;
    int each =
        wide ? 4 * (int)len + 40 : 2 * (int)len + 20; /* and some that are too few for more */
    p.room = each * (int)between(1, 20) + (int)between(0, 15);
    void *out = calloc(ny + 1, 4), *scratch = calloc((size_t)p.room + 800, 1);
    void *acc = calloc((size_t)p.ow + 1, 8);
    void *bias = wide ? (void *)d.bias : (void *)bias32;
    char name[64];
    snprintf(name, sizeof name, "qk_%s_q_%s_%s_%s", depthwise ? "depthwise" : "conv2d", x->id,
             w->id, y->id);
    if (depthwise) {
        qk_depthwise_q_params q = {p.n,  p.ic, p.ih, p.iw, p.oc, p.oh, p.ow, p.kh,
                                   p.kw, p.sh, p.sw, p.dh, p.dw, p.pt, p.pl, p.has_wz,
                                   1,    1,    p.xz, p.yz, p.lo, p.hi};
        RUN(name, &q, d.xs, d.ws, bias, wz, mul, shift, out, scratch, acc);
    } else {
        RUN(name, &p, d.xs, d.ws, bias, wz, mul, shift, out, scratch);
    }
    for (size_t i = 0; i < ny; i++) {
        int o = (int)(i / plane) % p.oc, b = (int)(i / plane) / p.oc, at = (int)(i % plane);
        int64_t sum = conv_at(&p, &d, b, o, at / p.ow, at % p.ow);
        int64_t want = ort_requant(sum, m[o], yz, y);
        if (get(y, out, i) != want)
            fail_msg("%s[%zu] = %lld, not %lld", name, i, (long long)get(y, out, i),
                     (long long)want);
    }
    free(d.xs), free(d.ws), free(out), free(scratch), free(acc);
}

static void conv_equals_reference(void **state) {
    (void)state;
    for (int i = 0; i < 3200; i++)
        conv_case(&int_types[i % 4], &int_types[i / 4 % 2 * 2], &int_types[i / 8 % 4], i / 32 % 2);
}

static void conv_f32_equals_reference(void **state) {
    (void)state;
    for (int i = 0; i < 400; i++) {
        bool depthwise = i % 2;
        qk_conv2d_q_params r = random_conv(depthwise);
        qk_conv2d_f32_params p = {r.n,  r.ic, r.ih, r.iw, r.oc, r.oh, r.ow,    r.kh, r.kw,
                                  r.sh, r.sw, r.dh, r.dw, r.pt, r.pl, r.group, 32,   1};
        qk_depthwise_f32_params q = {r.n,  r.ic, r.ih, r.iw, r.oc, r.oh, r.ow, r.kh,
                                     r.kw, r.sh, r.sw, r.dh, r.dw, r.pt, r.pl, 1};
        size_t nx = (size_t)(r.n * r.ic * r.ih * r.iw), plane = (size_t)(r.oh * r.ow);
        size_t len = (size_t)(r.ic / r.group * r.kh * r.kw), ny = (size_t)(r.n * r.oc) * plane;
        /* small integers: float32 sums are exact, so the integer reference applies */
        ConvData d = {.x = &int_types[0], .w = &int_types[0]};
        d.xs = random_ints(d.x, nx), d.ws = random_ints(d.w, (size_t)r.oc * len);
        float *x = calloc(nx + 1, 4), *w = calloc((size_t)r.oc * len + 1, 4), bias[8];
        float *y = calloc(ny + 1, 4), *col = calloc(32 * len + 1, 4);
        for (size_t j = 0; j < nx; j++)
            x[j] = ((int8_t *)d.xs)[j];
        for (size_t j = 0; j < (size_t)r.oc * len; j++)
            w[j] = ((int8_t *)d.ws)[j];
        for (int o = 0; o < r.oc; o++)
            bias[o] = (float)(d.bias[o] = between(-999, 999));
        if (depthwise)
            RUN("qk_depthwise_f32", &q, x, w, bias, y);
        else
            RUN("qk_conv2d_f32", &p, x, w, bias, y, col);
        for (size_t j = 0; j < ny; j++) {
            int o = (int)(j / plane) % r.oc, b = (int)(j / plane) / r.oc, at = (int)(j % plane);
            assert_true(y[j] == (float)conv_at(&r, &d, b, o, at / r.ow, at % r.ow));
        }
        free(d.xs), free(d.ws), free(x), free(w), free(y), free(col);
    }
}

/* ---- matrix product ---- */

static void matmul_case(const IntType *a, const IntType *b, const IntType *y, int i) {
    qk_matmul_q_params p = {.rank = 2, .m = (int)between(0, 9), .n = (int)between(1, 9)};
    p.k = (int)between(0, 40);
    p.dim[0] = 2, p.dim[1] = 3;
    bool ta = i & 1, tb = i & 2, wide = a->bytes == 2 || b->bytes == 2;
    p.as[0] = p.m * p.k,
    p.as[1] = 0; /* a is broadcast over the second batch dimension, b the first */
    p.bs[0] = 0, p.bs[1] = p.k * p.n;
    p.am = ta ? 1 : p.k, p.ak = ta ? p.m : 1, p.bk = tb ? 1 : p.n, p.bn = tb ? p.k : 1;
    p.cn = 1, p.bz_step = p.m_step = 1;
    void *as = random_ints(a, (size_t)(2 * p.m * p.k)),
         *bs = random_ints(b, (size_t)(3 * p.k * p.n));
    int64_t az = random_zp(a), yz = random_zp(y), bias64[9];
    int32_t bz[9], mul[9], shift[9], bias32[9];
    float m[9];
    for (int j = 0; j < p.n; j++) {
        bz[j] = (int32_t)random_zp(b);
        bias32[j] = (int32_t)(bias64[j] = between(-50000, 50000));
        m[j] = (float)((double)(y->hi - y->lo) / ldexp(uniform(0.2, 20), wide ? 32 : 18));
        requant_from_float(m[j], &mul[j], &shift[j]);
    }
    p.az = (int32_t)az, p.yz = (int32_t)yz, p.lo = (int32_t)y->lo, p.hi = (int32_t)y->hi;
    size_t ny = (size_t)(6 * p.m * p.n);
    int e = wide ? 4 : 2,
        tile = (int)between(0, 6); /* and bytes that are too few for one more row */
    p.room = 4 * e * p.k + tile * (e * p.k + (wide ? 32 : 16)) + (int)between(0, 15) / 8 * 8;
    void *out = calloc(ny + 1, 4), *scratch = calloc((size_t)p.room + 1, 1);
    char name[64];
    snprintf(name, sizeof name, "qk_matmul_q_%s_%s_%s", a->id, b->id, y->id);
    RUN(name, &p, as, bs, wide ? (void *)bias64 : (void *)bias32, bz, mul, shift, out, scratch);
    for (size_t at = 0; at < ny; at++) {
        int j = (int)at % p.n, r = (int)at / p.n % p.m, batch = (int)at / p.n / p.m;
        int64_t sum = bias64[j];
        for (int k = 0; k < p.k; k++)
            sum += (get(a, as, (size_t)(batch / 3 * p.as[0] + r * p.am + k * p.ak)) - az) *
                   (get(b, bs, (size_t)(batch % 3 * p.bs[1] + k * p.bk + j * p.bn)) - bz[j]);
        assert_int_equal(get(y, out, at), ort_requant(sum, m[j], yz, y));
    }
    free(as), free(bs), free(out), free(scratch);
}

static void matmul_equals_reference(void **state) {
    (void)state;
    for (int i = 0; i < 2048; i++)
        matmul_case(&int_types[i / 4 % 4], &int_types[i / 16 % 4], &int_types[i / 64 % 4], i);
}

static void matmul_f32_equals_reference(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) {
        int m = (int)between(0, 40), n = (int)between(0, 40), k = (int)between(0, 40);
        bool ta = i & 1, tb = i & 2;
        qk_matmul_f32_params p = {.m = m, .n = n, .k = k, .am = ta ? 1 : k, .ak = ta ? m : 1};
        p.bk = tb ? 1 : n, p.bn = tb ? k : 1, p.has_c = 1, p.cm = 1, p.alpha = 2, p.beta = 0.5f;
        p.room = i % 3 ? 80 * k : 0;
        float *a = calloc((size_t)(m * k) + 1, 4), *b = calloc((size_t)(k * n) + 1, 4);
        float c[40], *y = calloc((size_t)(m * n) + 1, 4), *cols = calloc((size_t)(20 * k) + 1, 4);
        for (int j = 0; j < m * k; j++)
            a[j] = (float)between(-99, 99);
        for (int j = 0; j < k * n; j++)
            b[j] = (float)between(-99, 99);
        for (int j = 0; j < m; j++)
            c[j] = (float)between(-99, 99);
        RUN("qk_matmul_f32", &p, a, b, c, y, cols);
        for (int r = 0; r < m; r++)
            for (int j = 0; j < n; j++) {
                double sum = 0;
                for (int q = 0; q < k; q++)
                    sum += (double)a[r * p.am + q * p.ak] * (double)b[q * p.bk + j * p.bn];
                assert_true(y[r * n + j] == (float)(2 * sum + 0.5 * (double)c[r]));
            }
        free(a), free(b), free(y), free(cols);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_complete),
        cmocka_unit_test(kernels_tell_what_they_use),
        cmocka_unit_test(curves_are_near),
        cmocka_unit_test(requant_equals_float),
        cmocka_unit_test(fixed_point_equals_definition),
        cmocka_unit_test(conv_equals_reference),
        cmocka_unit_test(conv_f32_equals_reference),
        cmocka_unit_test(matmul_equals_reference),
        cmocka_unit_test(matmul_f32_equals_reference),
    };
    int failed = 0;
    for (vectors = KERNEL_ANY; vectors <= kernel_vectors(); vectors++)
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
