/* support/parallel */
#include "support/parallel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct Marks {
    unsigned char *by; /* one more than the worker that did the element; twice if done twice */
} Marks;

static void mark(void *ctx, size_t from, size_t to, int worker) {
    Marks *m = ctx;
    for (size_t i = from; i < to; i++)
        m->by[i] = (unsigned char)(m->by[i] ? 255 : worker + 1);
}

/* Every element once, by workers of known numbers. */
static void test_every_element(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 8, 9, 100, 4096, 100001}, parts[] = {1, 7, 64, 200000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            size_t n = sizes[i];
            int workers = parallel_workers(n, parts[k]);
            assert_in_range(workers, 1, PARALLEL_MOST);
            Marks m = {.by = calloc(n + 1, 1)};
            parallel_for(n, parts[k], mark, &m);
            for (size_t e = 0; e < n; e++)
                assert_in_range(m.by[e], 1, workers);
            assert_int_equal(m.by[n], 0);
            free(m.by);
        }
}

/* The same of tasks, however few they are. */
static void test_every_task(void **state) {
    (void)state;
    for (size_t n = 0; n <= 2 * PARALLEL_MOST; n++) {
        unsigned char by[2 * PARALLEL_MOST + 1] = {0};
        Marks m = {by};
        parallel_tasks(n, mark, &m);
        for (size_t e = 0; e < n; e++)
            assert_in_range(by[e], 1, PARALLEL_MOST);
        assert_int_equal(by[n], 0);
    }
}

static void sum(void *ctx, size_t from, size_t to, int worker) {
    uint64_t *sums = ctx;
    for (size_t i = from; i < to; i++)
        sums[worker] += i;
}

/* What workers gather is there when the loop has ended, thousands of times over. */
static void test_is_over_when_done(void **state) {
    (void)state;
    for (int round = 0; round < 2000; round++) {
        uint64_t sums[PARALLEL_MOST] = {0}, all = 0;
        parallel_for(1000, 10, sum, sums);
        for (int i = 0; i < PARALLEL_MOST; i++)
            all += sums[i];
        assert_int_equal(all, 499500);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_element),
        cmocka_unit_test(test_every_task),
        cmocka_unit_test(test_is_over_when_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
