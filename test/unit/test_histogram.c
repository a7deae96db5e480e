/* Histograms of calibration: counts, independence of order, and the ranges read off them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/calibrate.h"

enum { N = 20000 };

static float samples[N];
static Arena *arena;

/* Close to normal, mean 0.5, a few outliers. */
static void fill(void) {
    uint32_t state = 7;
    for (int i = 0; i < N; i++) {
        double sum = -6;
        for (int k = 0; k < 12; k++) {
            state = state * 1664525u + 1013904223u;
            sum += (double)(state >> 8) / (1 << 24);
        }
        samples[i] = (float)(sum + 0.5) * (i % 5000 == 17 ? 30.0f : 1.0f);
    }
}

static int ascending(const void *x, const void *y) {
    float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

static Histogram *histogram_of(const float *x, size_t n, size_t chunk) {
    Histogram *h = NEW(arena, Histogram);
    for (size_t i = 0; i < n; i += chunk)
        histogram_add(arena, h, x + i, n - i < chunk ? n - i : chunk);
    return h;
}

static Bins bins_of(const float *x, size_t n) {
    return histogram_bins(arena, histogram_of(x, n, 64));
}

static Range seen_in(const float *x, size_t n) {
    Range r = {INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        r.low = fmin(r.low, (double)x[i]);
        r.high = fmax(r.high, (double)x[i]);
    }
    return r;
}

static void assert_same(Bins x, Bins y) {
    assert_int_equal(x.n, y.n);
    assert_true(x.total == y.total);
    for (size_t i = 0; i < x.n; i++)
        assert_true(x.at[i].number == y.at[i].number && x.at[i].count == y.at[i].count);
}

static void order_does_not_matter(void **state) {
    (void)state;
    static float backwards[N];
    fill();
    for (int i = 0; i < N; i++)
        backwards[i] = samples[N - 1 - i];
    Bins a = histogram_bins(arena, histogram_of(samples, N, 100));
    assert_same(a, histogram_bins(arena, histogram_of(backwards, N, 777)));
    assert_true(a.total == N);
}

static void bins_make_the_histogram_again(void **state) {
    (void)state;
    fill();
    Bins b = bins_of(samples, N);
    Histogram *h = NEW(arena, Histogram);
    for (size_t i = 0; i < b.n; i++)
        assert_true(histogram_add_bin(arena, h, b.at[i].number, b.at[i].count));
    assert_same(b, histogram_bins(arena, h));
    assert_false(histogram_add_bin(arena, h, 255 * 256 + 1, 1));
    assert_false(histogram_add_bin(arena, h, INT64_MIN, 1));
    assert_false(histogram_add_bin(arena, h, 1, INT64_MAX));
    assert_false(histogram_add_bin(arena, h, 1, UINT64_MAX));
    assert_true(histogram_add_bin(arena, h, 1, INT64_MAX - N));
    assert_false(histogram_add_bin(arena, h, 2, 1));
}

static void bins_are_where_they_should_be(void **state) {
    (void)state;
    const float x[] = {0.0f, -0.0f, 1.0f, -1.0f, 1.003f, 1e-45f, 3.4028235e38f, NAN, INFINITY};
    Bins b = bins_of(x, sizeof x / sizeof *x);
    assert_int_equal(b.n, 5);  /* 1.003 is less than 1 + 1/256 */
    assert_true(b.total == 7); /* not NaN, not infinity */
    assert_true(b.at[0].low < -1 && b.at[0].high == -1 && b.at[0].low >= -1 - 1.0 / 256);
    assert_true(b.at[1].number == 0 && b.at[1].count == 2);
    assert_true(b.at[2].low == 0 && b.at[2].high > 0 && b.at[2].high < 1e-37);
    assert_true(b.at[3].low == 1 && b.at[3].count == 2);
    assert_true(b.at[4].high == ldexp(1, 128));
    for (size_t i = 1; i < b.n; i++)
        assert_true(b.at[i - 1].high <= b.at[i].low);
}

static void percentile_is_the_quantile(void **state) {
    (void)state;
    fill();
    Bins b = bins_of(samples, N);
    qsort(samples, N, sizeof *samples, ascending);
    RangeQuery q = {seen_in(samples, N), false, 256};
    Range r = range_percentile(b, &q, 99.0);
    double low = (double)samples[N / 200], high = (double)samples[N - 1 - N / 200];
    assert_true(r.low <= low && r.low >= low * (1 + 1.0 / 256));
    assert_true(r.high >= high && r.high <= high * (1 + 1.0 / 256));
    r = range_percentile(b, &q, 100.0);
    assert_true(r.low == q.seen.low && r.high == q.seen.high);
    for (int i = 0; i < N; i++)
        samples[i] = fabsf(samples[i]);
    qsort(samples, N, sizeof *samples, ascending);
    q = (RangeQuery){{-1000, 1000}, true, 256};
    r = range_percentile(b, &q, 99.0);
    high = (double)samples[N - 1 - N / 100];
    assert_true(r.low == -r.high && r.high >= high && r.high <= high * (1 + 1.0 / 256));
}

/* A far outlier makes nothing coarser: the edge is still within 1/256 of the quantile. */
static void outliers_leave_bins_fine(void **state) {
    (void)state;
    fill();
    for (int i = 0; i < N; i++)
        samples[i] = fabsf(samples[i]);
    samples[5] = 1e6f;
    Bins b = bins_of(samples, N);
    RangeQuery q = {seen_in(samples, N), false, 256};
    Range r = range_percentile(b, &q, 98.0);
    qsort(samples, N, sizeof *samples, ascending);
    double high = (double)samples[N - 1 - N / 100];
    assert_true(r.high >= high && r.high <= high * (1 + 1.0 / 256));
}

static void one_sided_ranges(void **state) {
    (void)state;
    for (int i = 0; i < N; i++) /* like the output of a Relu */
        samples[i] = i % 2 ? 0.0f : (float)i / N;
    Bins b = bins_of(samples, N);
    RangeQuery q = {seen_in(samples, N), false, 256};
    Range r = range_percentile(b, &q, 99.9);
    assert_true(r.low == 0 && r.high > 0.99 && r.high <= 1);
    r = range_mse(b, &q);
    assert_true(r.low == 0 && r.high > 0.9 && r.high <= 1);
    for (int i = 0; i < N; i++)
        samples[i] = 0;
    b = bins_of(samples, N);
    q.seen = (Range){0, 0};
    r = range_percentile(b, &q, 99.9);
    assert_true(r.low == 0 && r.high == 0);
    r = range_mse(b, &q);
    assert_true(r.low == 0 && r.high == 0);
    r = range_entropy(arena, b, &q);
    assert_true(r.low == 0 && r.high == 0);
}

/* The squared error of quantizing to `levels` levels over [low, high], by definition. */
static double squared_error(Range r, int64_t levels) {
    double step = (r.high - r.low) / (double)(levels - 1), sum = 0;
    for (int i = 0; i < N; i++) {
        double x = (double)samples[i], y = rint(fmin(fmax(x, r.low), r.high) / step) * step;
        sum += (x - y) * (x - y);
    }
    return sum;
}

/* Better than what was seen, and than any other symmetric range in 2 % steps, by at most what the
 * bins hide. */
static void mse_is_least(void **state) {
    (void)state;
    fill();
    Bins b = bins_of(samples, N);
    for (int64_t levels = 16; levels <= 256; levels *= 16) {
        RangeQuery q = {seen_in(samples, N), false, levels};
        Range r = range_mse(b, &q);
        double e = squared_error(r, levels);
        assert_true(e < squared_error(q.seen, levels) * (levels == 16 ? 0.5 : 1));
        q.symmetric = true;
        r = range_mse(b, &q);
        assert_true(r.low == -r.high);
        e = squared_error(r, levels);
        for (double t = 1; t < q.seen.high; t *= 1.02)
            assert_true(e <= 1.02 * squared_error((Range){-t, t}, levels));
    }
}

/* Few far outliers are given up; a distribution without any is not. */
static void entropy_clips_outliers(void **state) {
    (void)state;
    static float many[10 * N];
    fill();
    for (int i = 0; i < 10 * N; i++)
        many[i] = samples[i % N] / (float)(i % 7 + 1) * (i == 17 ? 100.0f : 1.0f);
    Bins b = bins_of(many, 10 * N);
    RangeQuery q = {seen_in(many, 10 * N), false, 256};
    Range r = range_entropy(arena, b, &q);
    assert_true(r.high > 2 && r.high < q.seen.high / 2);
    b = bins_of(many, 1000); /* too few to say */
    q.seen = seen_in(many, 1000);
    r = range_entropy(arena, b, &q);
    assert_true(r.low == q.seen.low && r.high == q.seen.high);
}

static void methods_parse(void **state) {
    (void)state;
    CalibOptions o = {0};
    assert_true(calib_parse(STR("percentile=99.9"), &o));
    assert_int_equal(o.method, CALIB_PERCENTILE);
    assert_true(o.percentile == 99.9);
    assert_true(calib_parse(STR("mse"), &o));
    assert_int_equal(o.method, CALIB_MSE);
    assert_true(calib_parse(STR("moving-average=0.5"), &o));
    assert_true(o.averaging == 0.5);
    assert_false(calib_parse(STR("moving-average=2"), &o));
    assert_false(calib_parse(STR("percentile=x"), &o));
    assert_false(calib_parse(STR("percentile=101"), &o));
    assert_false(calib_parse(STR("percentile="), &o));
    assert_false(calib_parse(STR("minmax=1"), &o));
    assert_false(calib_parse(STR("median"), &o));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(bins_make_the_histogram_again),
        cmocka_unit_test(bins_are_where_they_should_be),
        cmocka_unit_test(percentile_is_the_quantile),
        cmocka_unit_test(outliers_leave_bins_fine),
        cmocka_unit_test(one_sided_ranges),
        cmocka_unit_test(mse_is_least),
        cmocka_unit_test(entropy_clips_outliers),
        cmocka_unit_test(methods_parse),
    };
    arena = arena_new(0, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(arena);
    return failed;
}
