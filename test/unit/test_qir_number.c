/* Numbers of .qir text: every bit pattern of the small types comes back from its decimal, and
 * decimals are rounded once, as strtof and strtod round them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "frontend/qir/number.h"
#include "ir/minifloat.h"

static const ElemType small[] = {
    ELEM_FLOAT16,        ELEM_BFLOAT16,   ELEM_FLOAT8E4M3FN, ELEM_FLOAT8E4M3FNUZ, ELEM_FLOAT8E5M2,
    ELEM_FLOAT8E5M2FNUZ, ELEM_FLOAT8E8M0, ELEM_FLOAT4E2M1,   ELEM_FLOAT6E2M3,     ELEM_FLOAT6E3M2,
};

static void small_floats_come_back(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof small / sizeof *small; k++)
        for (uint64_t bits = 0; bits < 1ull << elem_bits(small[k]); bits++) {
            uint64_t back = ~bits;
            double v = float_decode(small[k], bits);
            if (float_is_nan(small[k], bits)) {
                assert_true(v != v);
                continue;
            }
            assert_true(float_encode(small[k], v, &back));
            assert_int_equal(back, bits);
        }
}

static uint64_t encoded(ElemType e, double v) {
    uint64_t bits = 0;
    float_encode(e, v, &bits);
    return bits;
}

static void ties_go_to_even(void **state) {
    (void)state;
    assert_int_equal(encoded(ELEM_BFLOAT16, 1 + 0x1p-8), 0x3F80);
    assert_int_equal(encoded(ELEM_BFLOAT16, 1 + 3 * 0x1p-8), 0x3F82);
    assert_int_equal(encoded(ELEM_FLOAT16, 0x1p-25), 0); /* half of the smallest subnormal */
    assert_int_equal(encoded(ELEM_FLOAT16, 3 * 0x1p-25), 2);
    assert_int_equal(encoded(ELEM_FLOAT8E4M3FN, 17.0), 0x58); /* between 16 and 18 */
    uint64_t bits;
    assert_false(float_encode(ELEM_FLOAT16, 65520.0, &bits));
    assert_true(float_encode(ELEM_FLOAT16, 65519.0, &bits));
    assert_false(float_encode(ELEM_FLOAT8E4M3FN, 1e308 * 10, &bits));
}

/* Decimals near the middle of two floats, where rounding to double first would go wrong. */
static void decimals_round_once(void **state) {
    (void)state;
    uint32_t seed = 1;
    for (int i = 0; i < 200000; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t bits = (seed >> 8) % 0x7F000000u;
        float f, next;
        memcpy(&f, &bits, 4);
        bits++;
        memcpy(&next, &bits, 4);
        double middle = ((double)f + (double)next) / 2;
        char text[64];
        snprintf(text, sizeof text, "%.*e", (int)(seed >> 28) + 2, i % 2 ? middle : (double)f);
        Number n;
        assert_non_null(number_scan(text, &n));
        assert_true(number_f32(&n) == strtof(text, NULL));
        assert_true(number_f64(&n) == strtod(text, NULL));
    }
    Number n;
    /* Just above a middle between two floats, and the nearest double is that middle. */
    assert_non_null(number_scan("0.5000000298023224", &n));
    assert_true(number_f32(&n) == 0.5f + 0x1p-24f);
    /* One more digit than a double holds decides here. */
    assert_non_null(number_scan("1.00000005960464477539062500001", &n));
    assert_true(number_f32(&n) == 1.00000011920928955f);
}

static void check_int(const char *text, bool ok, int64_t want) {
    Number n;
    int64_t v = 0;
    assert_non_null(number_scan(text, &n));
    assert_int_equal(number_i64(&n, &v), ok);
    assert_true(!ok || v == want);
}

static void integers_do_not_overflow(void **state) {
    (void)state;
    check_int("9223372036854775807", true, INT64_MAX);
    check_int("9223372036854775808", false, 0);
    check_int("-9223372036854775808", true, INT64_MIN);
    check_int("-9223372036854775809", false, 0);
    check_int("18446744073709551616", false, 0);
    check_int("0x7fffffffffffffff", true, INT64_MAX);
    check_int("0x10000000000000000", false, 0);
    check_int("-0", true, 0);
    Number n;
    assert_null(number_scan("12abc", &n));
    assert_null(number_scan("1e", &n));
    assert_null(number_scan("0x", &n));
    assert_null(number_scan("-", &n));
    assert_null(number_scan("nan(1)", &n));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_floats_come_back),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(decimals_round_once),
        cmocka_unit_test(integers_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
