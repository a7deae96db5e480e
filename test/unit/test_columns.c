/* compiler/columns: samples of a value whose type only a run tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/columns.h"

static Tensor *number(Arena *a, ElemType e, uint8_t first) {
    uint8_t *bytes;
    Tensor *t = tensor_new(a, e, 0, NULL, &bytes);
    bytes[0] = first;
    return t;
}

static void test_other_type(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    Diags *d = diags_new(a, NULL, false);
    Value v = {.name = STR("y")};
    Column c;
    diags_record(d, true);
    assert_true(column_new(&c, &v, v.name, true));
    assert_true(column_add_tensor(&c, a, number(a, ELEM_INT64, 7), d));
    assert_true(column_add_tensor(&c, a, number(a, ELEM_INT64, 8), d));
    assert_false(column_add_tensor(&c, a, number(a, ELEM_UINT8, 9), d));
    assert_string_equal(diags_first_error(d),
                        "'y' is uint8 for sample 3 and int64 for those before, so that they make "
                        "no array: run them one by one, or without -o");
    assert_int_equal(c.n, 2);
    arena_free(a);
}

/* What is printed is gone, and the next sample may be of another type. */
static void test_printed_alone(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    Diags *d = diags_new(a, NULL, false);
    Value v = {.name = STR("y")};
    Column c;
    Buf b = buf_new(a);
    assert_true(column_new(&c, &v, v.name, true));
    assert_true(column_add_tensor(&c, a, number(a, ELEM_INT64, 7), d));
    column_print(&c, a, &b);
    assert_true(column_add_tensor(&c, a, number(a, ELEM_UINT8, 9), d));
    column_print(&c, a, &b);
    assert_string_equal(buf_as_str(&b).s, "%y : int64[] = [7]\n%y : uint8[] = [9]\n");
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_type),
                                       cmocka_unit_test(test_printed_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
