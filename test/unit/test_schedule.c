/* The order of steps: what is found is possible, and for few steps nothing better is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exec/schedule.h"

enum { MOST = 7 };

static uint32_t next(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

typedef struct Random {
    Schedule s;
    ScheduleStep steps[SCHEDULE_MAX];
    ScheduleItem items[SCHEDULE_MAX];
    ScheduleSaving savings[SCHEDULE_MAX];
    int uses[SCHEDULE_MAX][8];
} Random;

/* Step i makes item i and reads one or two of those before it; some may share memory with it. */
static void make(Random *r, int n, uint32_t *seed) {
    *r = (Random){.s = {r->items, (size_t)n, r->steps, n}};
    for (int i = 0; i < n; i++) {
        ScheduleStep *step = &r->steps[i];
        r->items[i] = (ScheduleItem){.bytes = 1 + next(seed) % 100, .after = next(seed) % 8 == 0};
        r->uses[i][step->n_items++] = i;
        step_set_add(&r->items[i].users, i);
        for (int k = i > 0 ? (int)(next(seed) % 3) : 0; k > 0; k--) {
            int from = (int)(next(seed) % (uint32_t)i);
            if (r->items[from].users.word[i / 64] >> i % 64 & 1)
                continue;
            r->uses[i][step->n_items++] = from;
            step_set_add(&r->items[from].users, i);
            step_set_add(&step->needs, from);
            size_t least =
                r->items[from].bytes < r->items[i].bytes ? r->items[from].bytes : r->items[i].bytes;
            if (next(seed) % 2) {
                r->savings[i] = (ScheduleSaving){from, i, least};
                step->savings = &r->savings[i];
                step->n_savings = 1;
            }
        }
        step->items = r->uses[i];
        step->own = next(seed) % 30;
    }
}

static bool possible(const Schedule *s, const int *order) {
    StepSet done = {{0}};
    for (int i = 0; i < s->n_steps; i++) {
        for (int w = 0; w < SCHEDULE_MAX / 64; w++)
            if (s->steps[order[i]].needs.word[w] & ~done.word[w])
                return false;
        step_set_add(&done, order[i]);
    }
    return true;
}

/* The smallest peak of all orders that begin with the first `k`. */
static size_t smallest(const Schedule *s, int *order, int k) {
    size_t best = k == s->n_steps && possible(s, order) ? schedule_peak(s, order) : SIZE_MAX;
    for (int i = k; i < s->n_steps; i++) {
        int kept = order[k];
        order[k] = order[i];
        order[i] = kept;
        size_t peak = smallest(s, order, k + 1);
        best = peak < best ? peak : best;
        order[i] = order[k];
        order[k] = kept;
    }
    return best;
}

static void small_graphs_are_solved(void **state) {
    (void)state;
    uint32_t seed = 1;
    Arena *a = arena_new(0, NULL);
    Scheduler *scheduler = scheduler_new(a);
    int better = 0;
    for (int round = 0; round < 200; round++) {
        Random r;
        int order[MOST], all[MOST];
        make(&r, 1 + (int)(next(&seed) % MOST), &seed);
        for (int i = 0; i < r.s.n_steps; i++)
            all[i] = i;
        size_t peak = schedule_peak(&r.s, NULL), least = smallest(&r.s, all, 0);
        bool found = schedule_search(scheduler, &r.s, peak, order);
        assert_int_equal(found, least < peak);
        better += found;
        if (found) {
            assert_true(possible(&r.s, order));
            assert_int_equal(schedule_peak(&r.s, order), least);
        }
    }
    assert_in_range(better, 30, 190);
    arena_free(a);
}

/* As many steps as there may be: what is found is possible and better. */
static void large_graphs(void **state) {
    (void)state;
    uint32_t seed = 2;
    Arena *a = arena_new(0, NULL);
    Scheduler *scheduler = scheduler_new(a);
    for (int round = 0; round < 3; round++) {
        Random r;
        int order[SCHEDULE_MAX];
        make(&r, SCHEDULE_MAX, &seed);
        size_t peak = schedule_peak(&r.s, NULL);
        assert_true(schedule_search(scheduler, &r.s, peak, order));
        assert_true(possible(&r.s, order));
        assert_true(schedule_peak(&r.s, order) < peak);
    }
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_graphs_are_solved),
        cmocka_unit_test(large_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
