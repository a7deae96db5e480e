/* compiler/json_print: a list keeps as many entries as it was given. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/json_print.h"

static void test_number(void **state) {
    (void)state;
    static const double all[] = {0.5, INFINITY, -INFINITY, NAN, 2};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        json_array_append_new(list, json_number(all[i]));
    char *text = json_dumps(list, JSON_COMPACT);
    assert_string_equal(text, "[0.5,null,null,null,2.0]");
    free(text);
    json_decref(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
