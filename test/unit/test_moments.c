/* Exact sums of calibration: numbers that cancel, that are far apart, that end a float's range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "exec/shard.h"

static Arena *arena;

static void assert_text(const Exact *x, const char *expected) {
    Buf b = buf_new(arena);
    exact_print(&b, x);
    assert_string_equal(buf_as_str(&b).s, expected);
}

static Moments moments_in(const float *x, size_t n) {
    MomentsCounter *c = NEW(arena, MomentsCounter);
    size_t finite = 0;
    for (size_t i = 0; i < n; i++)
        finite += isfinite(x[i]);
    moments_count(c, x, n, finite);
    return *moments_counted(c);
}

/* ---- numbers ---- */

static void texts_come_back(void **state) {
    (void)state;
    const char *texts[] = {"0x0", "0x1f.8", "-0x1f.8", "0x0.00000000000000000000000000000000000001",
                           "-0x123456789abcdef0123456789abcdef.fedcba9876543210f"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Exact x;
        assert_true(exact_read(str_from(texts[i]), &x));
        assert_text(&x, texts[i]);
    }
    const char *wrong[] = {"",     "0x",      "-",     "1f",   "0x1F", "0x.8", "0x1.",
                           "0x1g", "0x1.8.8", "--0x1", "0x-1", " 0x1", "0x1 ", "0x1p3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Exact x;
        assert_false(exact_read(str_from(wrong[i]), &x));
    }
    Exact x;
    assert_false(exact_read((Str){"0x1\0", 4}, &x));
}

static void what_is_too_long_is_refused(void **state) {
    (void)state;
    char text[200] = "0x0.";
    Exact x;
    memset(text + 4, '1', 81);
    assert_false(exact_read(str_from(text), &x));
    text[4 + 80] = 0;
    assert_true(exact_read(str_from(text), &x));
    assert_text(&x, text);
    memset(text + 2, 'f', 96);
    text[2 + 96] = 0;
    assert_false(exact_read(str_from(text), &x));
    text[2 + 95] = 0;
    assert_true(exact_read(str_from(text), &x));
    assert_text(&x, text);
}

static void doubles_are_nearest(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double x;
    } pairs[] = {
        {"0x0", 0},
        {"-0x1.8", -1.5},
        {"0x20000000000000", 0x1p53},
        {"0x20000000000001", 0x1p53}, /* a tie: to even */
        {"0x20000000000001.00000000000000000000000000001", 0x1.0000000000001p53}, /* above it */
        {"0x20000000000003", 0x1.0000000000002p53},
        {"-0x20000000000000.ffffffffffffffff", -0x1p53},
        {"0x0.00000000000000000000000000000000000000000000000000000000000000000000000000000001",
         0x1p-320},
        {"0x100000000000000000000000000000000.0000000000000000000000000000000001", 0x1p128},
        {"0xffffffffffffffffffffffffffffffff", 0x1p128},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        Exact x;
        assert_true(exact_read(str_from(pairs[i].text), &x));
        assert_true(exact_double(&x) == pairs[i].x);
    }
}

static void floats_are_exact(void **state) {
    (void)state;
    const float x[] = {
        0,       -0.0f,        1, -1.5f, FLT_MAX, -FLT_MAX, FLT_MIN, 0x1.fffffcp-127f, 1e-45f,
        -1e-45f, 0x1.fffffep0f};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        Exact e = exact_float(x[i]);
        assert_true(exact_double(&e) == (double)x[i]);
    }
}

static void products(void **state) {
    (void)state;
    Exact x, y;
    assert_true(exact_read(STR("-0x1.8"), &x));
    y = exact_times(&x, UINT64_MAX);
    assert_text(&y, "-0x17ffffffffffffffe.8");
    y = exact_square(&x);
    assert_text(&y, "0x2.4");
    x = exact_scaled(1, 191);
    y = exact_square(&x);
    assert_true(exact_double(&y) == 0x1p382);
    x = exact_scaled(3, -160);
    y = exact_square(&x);
    assert_true(exact_double(&y) == 9 * 0x1p-320);
}

/* ---- sums ---- */

static void what_cancels_leaves_the_rest(void **state) {
    (void)state;
    const float x[] = {FLT_MAX, 1e-45f, 1, -FLT_MAX, -1};
    Moments m = moments_in(x, 5);
    assert_int_equal(m.count, 5);
    assert_true(exact_double(&m.sum) == (double)1e-45f);
    assert_true(moments_mean(&m) == (double)1e-45f / 5);
}

static void squares_of_the_largest(void **state) {
    (void)state;
    enum { MANY = 70000 }; /* more than bins hold at once */
    float *x = NEW_ARRAY(arena, float, MANY);
    for (size_t i = 0; i < MANY; i++)
        x[i] = i % 2 ? FLT_MAX : -FLT_MAX;
    Moments m = moments_in(x, MANY);
    assert_true(moments_mean(&m) == 0);
    assert_true(moments_deviation(&m) == (double)FLT_MAX);
    assert_true(moments_are_possible(&m));
    for (size_t i = 0; i < MANY; i++)
        x[i] = FLT_MAX;
    m = moments_in(x, MANY);
    assert_true(moments_mean(&m) == (double)FLT_MAX);
    assert_true(moments_deviation(&m) == 0);
}

static void denormals_count(void **state) {
    (void)state;
    const float x[] = {1e-45f, 3e-45f};
    Moments m = moments_in(x, 2);
    assert_true(moments_mean(&m) == 3 * 0x1p-150);
    assert_true(moments_deviation(&m) == 0x1p-150);
    assert_true(exact_double(&m.squares) == 5 * 0x1p-298);
}

/* A spread that double sums of squares lose. */
static void a_far_mean_leaves_the_spread(void **state) {
    (void)state;
    const float x[] = {16777215, 16777216, 16777214};
    Moments m = moments_in(x, 3);
    assert_true(moments_mean(&m) == 16777215);
    assert_true(fabs(moments_deviation(&m) - sqrt(2.0 / 3)) < 1e-15);
    const float same[] = {0.1f, 0.1f, 0.1f};
    m = moments_in(same, 3);
    assert_true(moments_deviation(&m) == 0);
}

static void what_is_not_finite_is_left_out(void **state) {
    (void)state;
    const float x[] = {NAN, INFINITY, 2, -INFINITY, -NAN, 4}, y[] = {2, 4};
    Moments a = moments_in(x, 6), b = moments_in(y, 2);
    assert_int_equal(a.count, 2);
    assert_memory_equal(&a, &b, sizeof a);
}

static void no_samples(void **state) {
    (void)state;
    Moments none = moments_in(NULL, 0), m = moments_in((const float[]){3}, 1), was = m;
    assert_int_equal(none.count, 0);
    assert_text(&none.sum, "0x0");
    assert_false(moments_are_possible(&none));
    assert_true(moments_join(&m, &none));
    assert_memory_equal(&m, &was, sizeof m);
}

static float random_float(void) {
    static uint32_t state = 1;
    float x;
    do {
        state = state * 1664525u + 1013904223u;
        uint32_t bits = state ^ state >> 15;
        memcpy(&x, &bits, sizeof x);
    } while (!isfinite(x));
    return x;
}

/* Any float, in any order, in parts of any length. */
static void order_and_parts_do_not_matter(void **state) {
    (void)state;
    enum { N = 100000 };
    float *x = NEW_ARRAY(arena, float, N);
    for (size_t i = 0; i < N; i++)
        x[i] = random_float();
    Moments whole = moments_in(x, N), parts = {0};
    for (size_t i = 0; i < N / 2; i++) {
        float y = x[i];
        x[i] = x[N - 1 - i];
        x[N - 1 - i] = y;
    }
    for (size_t i = 0, n; i < N; i += n) {
        n = i % 7919 + 1 < N - i ? i % 7919 + 1 : N - i;
        Moments part = moments_in(x + i, n);
        assert_true(moments_join(&parts, &part));
    }
    assert_memory_equal(&whole, &parts, sizeof whole);
    assert_true(moments_are_possible(&whole));
}

static void counts_have_an_end(void **state) {
    (void)state;
    Moments m = moments_in((const float[]){FLT_MAX}, 1), was = m;
    Moments most = {.count = INT64_MAX, .sum = exact_times(&m.sum, INT64_MAX)};
    most.squares = exact_times(&m.squares, INT64_MAX);
    assert_true(moments_are_possible(&most));
    assert_true(moments_mean(&most) == (double)FLT_MAX && moments_deviation(&most) == 0);
    assert_false(moments_join(&m, &most));
    assert_memory_equal(&m, &was, sizeof m);
}

static bool are_possible(int64_t count, const char *sum, const char *squares) {
    Moments m = {.count = count};
    assert_true(exact_read(str_from(sum), &m.sum) && exact_read(str_from(squares), &m.squares));
    return moments_are_possible(&m);
}

static void impossible_sums(void **state) {
    (void)state;
    char huge[128] = "-0x7";
    memset(huge + 4, 'f', 94);
    assert_true(are_possible(2, "0x2", "0x2"));
    assert_false(are_possible(2, "0x2", "0x1.ffffffffffffffffffffffffffffffff"));
    assert_false(are_possible(0, "0x0", "0x0"));
    assert_false(are_possible(-1, "0x0", "0x0"));
    assert_false(are_possible(1, "0x0", "-0x1"));
    assert_false(are_possible(1, "0x0", huge + 1));
    assert_false(are_possible(1, huge, huge + 1));
    assert_false(are_possible(1, huge + 1, huge + 1));
    assert_false(are_possible(INT64_MAX, huge + 1, "0x1"));
}

/* ---- in statistics ---- */

static void statistics_hold_them(void **state) {
    (void)state;
    Histogram *h = NEW(arena, Histogram);
    histogram_add(arena, h, (const float[]){1, 2, -3}, 3);
    Shard x = {.has_moments = true, .moments = moments_in((const float[]){1, 2, -3}, 3)}, y;
    x.options = (CalibOptions){.method = CALIB_PERCENTILE, .percentile = 99.9};
    x.seen = (Range){-3, 2};
    x.histogram = h;
    Stat *s = calib_stat(arena, -3, 2, 0, 1, 1);
    shard_write(arena, &x, s);
    assert_int_equal(s->n_attrs, 5);
    assert_true(shard_read(arena, s, &y) && y.has_moments && !y.has_ends);
    assert_memory_equal(&x.moments, &y.moments, sizeof x.moments);
    assert_memory_equal(h->octaves[0][127], y.histogram->octaves[0][127], 2048);
    shard_join(arena, &y, &x);
    assert_int_equal(y.moments.count, 6);
    assert_int_equal(y.histogram->total, 6);
    shard_forget(arena, s);
    assert_int_equal(s->n_attrs, 0);
    assert_true(shard_read(arena, s, &y) && !shard_says_anything(&y));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(doubles_are_nearest),
        cmocka_unit_test(floats_are_exact),
        cmocka_unit_test(products),
        cmocka_unit_test(what_cancels_leaves_the_rest),
        cmocka_unit_test(squares_of_the_largest),
        cmocka_unit_test(denormals_count),
        cmocka_unit_test(a_far_mean_leaves_the_spread),
        cmocka_unit_test(what_is_not_finite_is_left_out),
        cmocka_unit_test(no_samples),
        cmocka_unit_test(order_and_parts_do_not_matter),
        cmocka_unit_test(counts_have_an_end),
        cmocka_unit_test(impossible_sums),
        cmocka_unit_test(statistics_hold_them),
    };
    arena = arena_new(0, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(arena);
    return failed;
}
