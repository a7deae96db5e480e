/* support/progress: when the line stands there, what it says, and that it goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/diag.h"
#include "support/progress.h"

static double now; /* what the clock below says */

static double clock_of_test(void) {
    return now;
}

typedef struct Fixture {
    Arena *arena;
    FILE *out;
    char *text;
    size_t n, read;
    Progress *p;
} Fixture;

static int setup(void **state) {
    Fixture *f = calloc(1, sizeof *f);
    now = 100;
    f->arena = arena_new(0, NULL);
    f->out = open_memstream(&f->text, &f->n);
    f->p = progress_new(f->arena, f->out, 60, clock_of_test);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    Fixture *f = *state;
    fclose(f->out);
    free(f->text);
    arena_free(f->arena);
    free(f);
    return 0;
}

/* What was printed since the last question. */
static const char *printed(Fixture *f) {
    fflush(f->out);
    const char *text = f->text + f->read;
    f->read = f->n;
    return text;
}

static void test_silent(void **state) {
    Fixture *f = *state;
    size_t level = progress_begin(f->p, "sample", 10);
    progress_step(f->p, level, 1);
    now += 1.9;
    progress_step(f->p, level, 2);
    assert_string_equal(printed(f), "");
    progress_end(f->p, level); /* nothing stands there, so nothing is taken away */
    assert_string_equal(printed(f), "");
}

static void test_line(void **state) {
    Fixture *f = *state;
    size_t pass = progress_begin(f->p, "adaround", 0);
    size_t level = progress_begin(f->p, "layer", 10);
    now += 5;
    progress_step(f->p, level, 1);
    assert_string_equal(printed(f), "\radaround: layer 2 of 10, 0:46 left\r");
    now += 0.1; /* too soon for another */
    progress_step(f->p, level, 2);
    assert_string_equal(printed(f), "");
    now += 0.9;
    size_t sample = progress_begin(f->p, "sample", 4);
    progress_step(f->p, sample, 2); /* two and a half of ten took 6 s */
    assert_string_equal(printed(f), "\radaround: layer 3 of 10: sample 3 of 4, 0:19 left\r");
    progress_end(f->p, sample);
    now += 14;
    progress_step(f->p, level, 9); /* shorter than what stands there */
    assert_string_equal(printed(f), "\radaround: layer 10 of 10, 0:03 left              \r");
    progress_end(f->p, level);
    assert_string_equal(printed(f), ""); /* the pass goes on */
    progress_end(f->p, pass);
    assert_string_equal(printed(f), "\r                                   \r");
}

static void test_narrow(void **state) {
    Fixture *f = *state;
    f->p = progress_new(f->arena, f->out, 12, clock_of_test);
    size_t level = progress_begin(f->p, "a long name", 10);
    now += 3;
    progress_step(f->p, level, 0);
    assert_string_equal(printed(f), "\ra long name\r");
}

static void test_hours(void **state) {
    Fixture *f = *state;
    size_t level = progress_begin(f->p, "x", 100);
    now += 100;
    progress_step(f->p, level, 1);
    assert_string_equal(printed(f), "\rx 2 of 100, 2:45 h left\r");
}

/* A message takes the line away, and the next one waits for silence again. */
static void test_message(void **state) {
    Fixture *f = *state;
    Diags *d = diags_new(f->arena, f->out, false);
    diags_set_progress(d, f->p);
    size_t level = progress_begin(f->p, "x", 0);
    now += 3;
    progress_step(f->p, level, 0);
    assert_string_equal(printed(f), "\rx\r");
    diag_note(d, LOC_NONE, "hello");
    assert_string_equal(printed(f), "\r \rqxc: note: hello\n");
    now += 1;
    progress_step(f->p, level, 1);
    assert_string_equal(printed(f), "");
}

/* Work that ends on an error leaves levels behind; the one around them ends them, too. */
static void test_left_behind(void **state) {
    Fixture *f = *state;
    size_t outer = progress_begin(f->p, "x", 0);
    size_t inner = progress_begin(f->p, "y", 0);
    assert_true(progress_begin(f->p, "y", 0) > inner); /* the same once more is not shown */
    progress_end(f->p, outer);
    now += 3;
    progress_step(f->p, inner, 1);
    assert_string_equal(printed(f), "");
    for (size_t i = 0; i < 100; i++)
        progress_begin(f->p, i % 2 ? "z" : "w", 0);
    progress_step(NULL, progress_begin(NULL, "x", 1), 1);
    progress_end(NULL, 0);
    progress_clear(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_narrow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hours, setup, teardown),
        cmocka_unit_test_setup_teardown(test_message, setup, teardown),
        cmocka_unit_test_setup_teardown(test_left_behind, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
