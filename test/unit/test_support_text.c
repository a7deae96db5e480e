/* support/buf, utf8: numbers and quoting */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/buf.h"
#include "support/utf8.h"

static int setup(void **state) {
    Arena *a = arena_new(0, NULL);
    Buf *b = NEW(a, Buf);
    *b = buf_new(a);
    *state = b;
    return 0;
}

static int teardown(void **state) {
    arena_free(((Buf *)*state)->arena);
    return 0;
}

static const char *text_f32(Buf *b, float v) {
    b->n = 0;
    buf_f32(b, v);
    return buf_as_str(b).s;
}

static const char *text_f64(Buf *b, double v) {
    b->n = 0;
    buf_f64(b, v);
    return buf_as_str(b).s;
}

static float f32_of(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static double f64_of(uint64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void test_f32(void **state) {
    static const struct {
        uint32_t bits;
        const char *text;
    } cases[] = {
        {0x00000000, "0.0"},
        {0x80000000, "-0.0"},
        {0x3F800000, "1.0"},
        {0x3DCCCCCD, "0.1"},
        {0xBDCCCCCD, "-0.1"},
        {0x3EAAAAAB, "0.33333334"},
        {0x3BE816F0, "0.0070828125"},
        {0x3727C5AC, "1.0e-05"},
        {0x38D1B717, "0.0001"},
        {0x4B800000, "16777216.0"},
        {0x4CBEBC20, "100000000.0"},
        {0x5A0E1BCA, "1.0e+16"},
        {0x7F7FFFFF, "3.4028235e+38"},
        {0x00800000, "1.1754944e-38"},
        {0x00000001, "1.0e-45"},
        {0x007FFFFF, "1.1754942e-38"},
        {0x7F800000, "inf"},
        {0xFF800000, "-inf"},
        {0x7FC00000, "nan"},
        {0xFFC00000, "nan(0xffc00000)"},
        {0x7FC01234, "nan(0x7fc01234)"},
        {0x7F800001, "nan(0x7f800001)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(text_f32(*state, f32_of(cases[i].bits)), cases[i].text);
}

static void test_f64(void **state) {
    static const struct {
        uint64_t bits;
        const char *text;
    } cases[] = {
        {0x0000000000000000, "0.0"},
        {0x8000000000000000, "-0.0"},
        {0x3FB999999999999A, "0.1"},
        {0x3FD5555555555555, "0.3333333333333333"},
        {0x3FD3333333333334, "0.30000000000000004"},
        {0x7FEFFFFFFFFFFFFF, "1.7976931348623157e+308"},
        {0x0010000000000000, "2.2250738585072014e-308"},
        {0x0000000000000001, "5.0e-324"},
        {0x4340000000000001, "9007199254740994.0"},
        {0x4341C37937E08000, "1.0e+16"},
        {0x7FF8000000000000, "nan"},
        {0x7FF0000000000001, "nan(0x7ff0000000000001)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(text_f64(*state, f64_of(cases[i].bits)), cases[i].text);
}

static uint64_t next_random(uint64_t *seed) { /* xorshift64 */
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

/* Significant digits of a printed number. */
static int digits_of(const char *text) {
    int n = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (n == 0 && *text == '0'))
            continue;
        n++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

static void test_f32_round_trip(void **state) {
    uint64_t seed = 20240229;
    for (int i = 0; i < 1000000; i++) {
        uint32_t bits = (uint32_t)(next_random(&seed) >> 20);
        float v = f32_of(bits);
        if (i % 2) /* as often in the range of weights and scales */
            memcpy(&bits, &(float){v = (float)(bits % 2000001) / 1e6f - 1.0f}, sizeof bits);
        if (isnan(v))
            continue;
        float back = strtof(text_f32(*state, v), NULL);
        uint32_t back_bits;
        memcpy(&back_bits, &back, sizeof bits);
        if (back_bits != bits)
            fail_msg("%08x printed as %s", bits, text_f32(*state, v));
    }
}

static void test_f64_round_trip(void **state) {
    uint64_t seed = 7;
    for (int i = 0; i < 200000; i++) {
        double v = f64_of(next_random(&seed));
        if (i % 2)
            v = (double)(int32_t)next_random(&seed) / 1e4;
        if (!isnan(v) && strtod(text_f64(*state, v), NULL) != v)
            fail_msg("%a printed as %s", v, text_f64(*state, v));
    }
}

/* No decimal with fewer digits reads back: held against every shorter precision of printf. */
static void check_shortest(Buf *b, float v) {
    char text[40];
    int n = digits_of(text_f32(b, v));
    for (int shorter = 1; shorter < n; shorter++) {
        snprintf(text, sizeof text, "%.*e", shorter - 1, (double)v);
        if (strtof(text, NULL) == v && strcmp(text_f32(b, v), text) != 0)
            fail_msg("%s prints as %s", text, text_f32(b, v));
    }
}

static void test_shortest(void **state) {
    uint64_t seed = 99;
    for (int i = 0; i < 20000; i++) {
        uint32_t bits = (uint32_t)(next_random(&seed) >> 20);
        float v = i % 2 ? f32_of(bits) : (float)(bits % 100000) / 1e4f;
        if (isfinite(v) && v != 0)
            check_shortest(*state, v);
    }
}

/* Next to each power of two, and between them. */
static void test_shortest_everywhere(void **state) {
    uint64_t seed = 5;
    for (uint32_t exponent = 0; exponent < 255; exponent++)
        for (uint32_t i = 0; i < 24; i++) {
            uint32_t random = (uint32_t)next_random(&seed);
            uint32_t mantissa = (i < 4 ? i : i < 8 ? 3 - i : random) & 0x7FFFFF;
            float v = f32_of(exponent << 23 | mantissa);
            if (strtof(text_f32(*state, v), NULL) != v)
                fail_msg("%a printed as %s", (double)v, text_f32(*state, v));
            if (v != 0)
                check_shortest(*state, v);
        }
}

static void test_locale(void **state) {
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        skip();
    assert_string_equal(text_f32(*state, 1e-30f), "1.0e-30");
    assert_string_equal(text_f64(*state, 0.1 + 0.2), "0.30000000000000004");
    setlocale(LC_NUMERIC, "C");
}

static void test_integers(void **state) {
    Buf *b = *state;
    b->n = 0;
    buf_i64(b, INT64_MIN);
    buf_byte(b, ' ');
    buf_i64(b, 0);
    buf_byte(b, ' ');
    buf_u64(b, UINT64_MAX);
    buf_fmt(b, " %s", "x");
    assert_string_equal(buf_as_str(b).s, "-9223372036854775808 0 18446744073709551615 x");
}

static void test_quoted(void **state) {
    static const struct {
        Str in;
        const char *out;
    } cases[] = {
        {STR("plain"), "\"plain\""},
        {STR("a\n\t\"\\"), "\"a\\n\\t\\\"\\\\\""},
        {STR("\x1b[31m\0\x7f"), "\"\\x1b[31m\\x00\\x7f\""},
        {STR("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\""},
        {STR("\xff\xc3"), "\"\\xff\\xc3\""},
        {STR("\xc0\x80"), "\"\\xc0\\x80\""},          /* overlong NUL */
        {STR("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\""}, /* surrogate */
        {STR("\xc2\x9b"), "\"\\xc2\\x9b\""},          /* C1 control */
        {STR("\xe2\x80\xae"), "\"\\xe2\\x80\\xae\""}, /* right-to-left override */
    };
    Buf *b = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        b->n = 0;
        buf_quoted(b, cases[i].in);
        assert_string_equal(buf_as_str(b).s, cases[i].out);
    }
}

static void test_shell(void **state) {
    static const struct {
        Str in;
        const char *out;
    } cases[] = {
        {STR("a/v1.2_b-c.onnx"), "a/v1.2_b-c.onnx"},
        {STR(""), "''"},
        {STR("a b"), "'a b'"},
        {STR("$(x)`y`*"), "'$(x)`y`*'"},
        {STR("~x"), "'~x'"},
        {STR("it's"), "'it'\\''s'"},
        {STR("gr\xc3\xb6\xc3\x9f"), "'gr\xc3\xb6\xc3\x9f'"},
        {STR("a\n1'\\"), "$'a\\0121\\'\\\\'"},
        {STR("b\xff"), "$'b\\377'"},
        {STR("\xe2\x80\xae"), "$'\\342\\200\\256'"}, /* right-to-left override */
    };
    Buf *b = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        b->n = 0;
        buf_shell(b, cases[i].in);
        assert_string_equal(buf_as_str(b).s, cases[i].out);
    }
}

static void test_utf8(void **state) {
    (void)state;
    uint32_t c;
    assert_int_equal(utf8_decode("\xf0\x9f\x98\x80", 4, &c), 4);
    assert_int_equal(c, 0x1F600);
    assert_int_equal(utf8_width(c), 2);
    assert_int_equal(utf8_decode("\xf0\x9f\x98\x80", 3, &c), 0);
    assert_int_equal(utf8_decode("\xf4\x90\x80\x80", 4, &c), 0); /* past U+10FFFF */
    assert_int_equal(utf8_decode("\xe0\x80\x80", 3, &c), 0);     /* overlong */
    assert_int_equal(utf8_decode("", 0, &c), 0);
    assert_int_equal(utf8_width(0x301), 0);
    assert_int_equal(utf8_width('a'), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),
        cmocka_unit_test(test_f64),
        cmocka_unit_test(test_f32_round_trip),
        cmocka_unit_test(test_f64_round_trip),
        cmocka_unit_test(test_shortest),
        cmocka_unit_test(test_shortest_everywhere),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_quoted),
        cmocka_unit_test(test_shell),
        cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
