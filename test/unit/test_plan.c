/* The memory planner: nothing alive together overlaps, everything is aligned, the bound holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exec/plan.h"

enum { ALIGN = 16 };

static uint32_t next(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static bool alive_together(const PlanItem *x, const PlanItem *y) {
    return x->first <= y->last && y->first <= x->last;
}

static bool apart(const PlanItem *x, const PlanItem *y) {
    return x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset;
}

static void check_layout(const PlanItem *items, size_t n, size_t total, size_t bound) {
    assert_true(total >= bound);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(items[i].offset % ALIGN, 0);
        assert_true(items[i].offset + items[i].bytes <= total);
        for (size_t k = 0; k < i; k++)
            assert_true(!alive_together(&items[i], &items[k]) || items[i].bytes == 0 ||
                        items[k].bytes == 0 || apart(&items[i], &items[k]));
    }
}

static void random_lives(void **state) {
    (void)state;
    uint32_t seed = 1;
    size_t sum = 0, sum_bound = 0;
    for (int round = 0; round < 300; round++) {
        Arena *a = arena_new(0, NULL);
        size_t n = 1 + next(&seed) % 60;
        int calls = (int)(1 + next(&seed) % 50);
        PlanItem *items = NEW_ARRAY(a, PlanItem, n);
        for (size_t i = 0; i < n; i++) {
            items[i].bytes = next(&seed) % (round % 2 ? 5000 : 40);
            items[i].first = (int)(next(&seed) % (uint32_t)calls);
            items[i].last = items[i].first + (int)(next(&seed) % 6);
        }
        size_t total = plan_offsets(a, items, n, ALIGN), bound = plan_bound(a, items, n, ALIGN);
        check_layout(items, n, total, bound);
        sum += total;
        sum_bound += bound;
        arena_free(a);
    }
    assert_true((double)sum < 1.05 * (double)sum_bound); /* and it is good */
}

/* A chain: two neighbours are alive at a time, so two slots are enough. */
static void chain_meets_the_bound(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    PlanItem items[20] = {0};
    for (int i = 0; i < 20; i++)
        items[i] = (PlanItem){(size_t)(100 + 37 * (i % 5)), i, i + 1, 0};
    size_t bound = plan_bound(a, items, 20, ALIGN);
    assert_int_equal(bound, 224 + 256); /* 211 and 248 bytes, aligned */
    assert_int_equal(plan_offsets(a, items, 20, ALIGN), bound);
    arena_free(a);
}

static void long_programs_stay_fast(void **state) {
    (void)state;
    enum { N = 100000 };
    Arena *a = arena_new(0, NULL);
    PlanItem *items = NEW_ARRAY(a, PlanItem, N);
    for (int i = 0; i < N; i++)
        items[i] = (PlanItem){(size_t)(16 * (1 + i % 7)), i, i + 1 + i % 3, 0};
    size_t total = plan_offsets(a, items, N, ALIGN);
    assert_true(total <= 2 * plan_bound(a, items, N, ALIGN));
    for (int i = 1; i < N; i++)
        for (int k = i > 8 ? i - 8 : 0; k < i; k++)
            assert_true(!alive_together(&items[i], &items[k]) || apart(&items[i], &items[k]));
    arena_free(a);
}

static void nothing_to_place(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    assert_int_equal(plan_offsets(a, NULL, 0, ALIGN), 0);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lives),
        cmocka_unit_test(chain_meets_the_bound),
        cmocka_unit_test(long_programs_stay_fast),
        cmocka_unit_test(nothing_to_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
