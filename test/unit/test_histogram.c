/* Histograms of calibration: counts, growth, independence of order, and the ranges read off them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/calibrate.h"
#include "exec/histogram.h"

enum { N = 20000 };

static float samples[N];
static Histogram h, other;

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

static void add_all(Histogram *into, const float *x, size_t n, size_t chunk) {
    memset(into, 0, sizeof *into);
    for (size_t i = 0; i < n; i += chunk)
        histogram_add(into, x + i, n - i < chunk ? n - i : chunk);
}

static void order_does_not_matter(void **state) {
    (void)state;
    static float backwards[N];
    fill();
    for (int i = 0; i < N; i++)
        backwards[i] = samples[N - 1 - i];
    add_all(&h, samples, N, 100);
    add_all(&other, backwards, N, 777);
    assert_memory_equal(&h, &other, sizeof h);
    assert_int_equal(h.total, N);
}

static void bins_are_where_they_should_be(void **state) {
    (void)state;
    const float x[] = {0.0f, -0.0f, 1.0f, -1.0f, 1.999f, 0.0004f, NAN, INFINITY};
    add_all(&h, x, 8, 8);
    assert_int_equal(h.total, 6); /* not NaN, not infinity */
    assert_int_equal(h.zeros, 2);
    assert_int_equal(h.exponent, 1); /* 1.999 < 2 */
    assert_int_equal(h.positive[HISTOGRAM_BINS / 2], 1);
    assert_int_equal(h.negative[HISTOGRAM_BINS / 2 - 1], 1); /* its upper end is included */
    assert_int_equal(h.positive[0], 1);
    const float large = -100.0f; /* range 2 -> 128: six doublings */
    histogram_add(&h, &large, 1);
    assert_int_equal(h.exponent, 7);
    assert_int_equal(h.positive[16], 1);
    assert_int_equal(h.negative[15], 1);
    assert_int_equal(h.positive[31], 1);
}

static void percentile_is_the_quantile(void **state) {
    (void)state;
    double lo, hi;
    fill();
    add_all(&h, samples, N, N);
    qsort(samples, N, sizeof *samples, ascending);
    histogram_percentile(&h, 99.0, false, (double)samples[0], (double)samples[N - 1], &lo, &hi);
    double width = histogram_width(&h);
    assert_true(fabs(lo - (double)samples[N / 200]) <= width);
    assert_true(fabs(hi - (double)samples[N - 1 - N / 200]) <= width);
    histogram_percentile(&h, 100.0, false, (double)samples[0], (double)samples[N - 1], &lo, &hi);
    assert_true(lo == (double)samples[0] && hi == (double)samples[N - 1]);
    for (int i = 0; i < N; i++)
        samples[i] = fabsf(samples[i]);
    qsort(samples, N, sizeof *samples, ascending);
    histogram_percentile(&h, 99.0, true, -1000, 1000, &lo, &hi);
    assert_true(lo == -hi && fabs(hi - (double)samples[N - 1 - N / 100]) <= width);
}

static void one_sided_ranges(void **state) {
    (void)state;
    double lo, hi;
    for (int i = 0; i < N; i++) /* like the output of a Relu */
        samples[i] = i % 2 ? 0.0f : (float)i / N;
    add_all(&h, samples, N, 64);
    histogram_percentile(&h, 99.9, false, 0, 1, &lo, &hi);
    assert_true(lo == 0 && hi > 0.99 && hi <= 1);
    histogram_mse(&h, false, 0, 1, &lo, &hi);
    assert_true(lo == 0 && hi > 0.9 && hi <= 1);
    for (int i = 0; i < N; i++)
        samples[i] = 0;
    add_all(&h, samples, N, 64);
    histogram_percentile(&h, 99.9, false, 0, 0, &lo, &hi);
    assert_true(lo == 0 && hi == 0);
}

/* Few far outliers: both searches give them up; minmax could not. */
static void searches_clip_outliers(void **state) {
    (void)state;
    double lo, hi;
    fill();
    add_all(&h, samples, N, N);
    double min = INFINITY, max = -INFINITY;
    for (int i = 0; i < N; i++) {
        min = fmin(min, (double)samples[i]);
        max = fmax(max, (double)samples[i]);
    }
    assert_true(max - min > 30);
    histogram_mse(&h, false, min, max, &lo, &hi);
    assert_true(lo >= min && hi <= max && hi - lo < max - min && hi - lo > 4);
    double t = histogram_entropy(&h);
    assert_true(t > 2 && t < fmax(-min, max));
}

static void methods_parse(void **state) {
    (void)state;
    CalibOptions o = {0};
    assert_true(calib_parse(STR("percentile=99.9"), &o));
    assert_int_equal(o.method, CALIB_PERCENTILE);
    assert_true(o.percentile == 99.9);
    assert_true(calib_parse(STR("mse"), &o));
    assert_int_equal(o.method, CALIB_MSE);
    assert_false(calib_parse(STR("percentile=x"), &o));
    assert_false(calib_parse(STR("percentile=101"), &o));
    assert_false(calib_parse(STR("minmax=1"), &o));
    assert_false(calib_parse(STR("median"), &o));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(bins_are_where_they_should_be),
        cmocka_unit_test(percentile_is_the_quantile),
        cmocka_unit_test(one_sided_ranges),
        cmocka_unit_test(searches_clip_outliers),
        cmocka_unit_test(methods_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
