/* support/arena, map, str */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/map.h"

static void test_arena_zeroed_and_aligned(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    for (size_t n = 0; n < 100000; n = n * 3 / 2 + 1) {
        unsigned char *p = arena_alloc(a, n);
        assert_int_equal((uintptr_t)p % 16, 0);
        if (n >= 16384)
            assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xA5, n);
    }
    arena_free(a);
    arena_free(NULL);
}

static void test_arena_large_keeps_small_chunk(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    char *first = arena_alloc(a, 8);
    arena_alloc(a, 1 << 20);
    char *second = arena_alloc(a, 8);
    assert_true(second > first && second - first < 64);
    arena_free(a);
}

/* Bytes that fit the limit come, the next ones jump to the handler and say what was asked. */
static void test_arena_limit(void **state) {
    (void)state;
    OutOfMemory oom = {0};
    Arena *volatile a = NULL;
    volatile bool refused = false;
    if (setjmp(oom.env)) {
        refused = true;
    } else {
        a = arena_new(100000, &oom);
        arena_alloc(a, 90000);
        assert_true(arena_used(a) >= 90000);
        arena_alloc(a, 20000);
    }
    assert_true(refused);
    assert_int_equal(oom.requested, 20000);
    assert_int_equal(oom.limit, 100000);
    arena_free(a);
}

static void test_arena_scratch(void **state) {
    (void)state;
    OutOfMemory oom = {0};
    Arena *volatile a = NULL;
    volatile bool refused = false;
    if (setjmp(oom.env)) {
        refused = true;
    } else {
        a = arena_new(100000, &oom);
        arena_alloc(a, 10000);
        size_t before = arena_used(a);
        for (int i = 0; i < 100; i++) { /* given back each time */
            Arena *s = arena_scratch(a), *other = arena_scratch(a);
            arena_alloc(s, 30000);
            arena_alloc(arena_scratch(other), 30000);
            assert_true(arena_used(a) >= before + 60000);
            assert_int_equal(arena_left(s), arena_left(a));
            arena_free(i % 2 ? s : other);
            arena_free(i % 2 ? other : s);
            assert_int_equal(arena_used(a), before);
        }
        arena_alloc(arena_scratch(arena_scratch(a)), 95000);
    }
    assert_true(refused);
    assert_int_equal(oom.requested, 95000);
    assert_int_equal(oom.limit, 100000);
    arena_free(a); /* and what scratch there is */
}

/* A large allocation is given back alone, in any order; what shares its memory with others stays.
 */
static void test_arena_release(void **state) {
    (void)state;
    enum { N = 5, LARGE = 50000 };
    Arena *a = arena_new(0, NULL), *inner = arena_scratch(a);
    char *large[N], *small = arena_alloc(inner, 100);
    size_t empty = arena_used(a);
    for (size_t i = 0; i < N; i++)
        memset(large[i] = arena_alloc(inner, LARGE), (int)i + 1, LARGE);
    size_t each = (arena_used(a) - empty) / N;
    arena_release(inner, small, 100);
    static const size_t order[N] = {2, 4, 0, 1, 3};
    for (size_t k = 0; k < N; k++) {
        arena_release(inner, large[order[k]], LARGE);
        assert_int_equal(arena_used(a), empty + (N - 1 - k) * each);
        assert_int_equal(arena_used(inner), arena_used(a));
        for (size_t i = k + 1; i < N; i++)
            assert_int_equal(large[order[i]][LARGE - 1], order[i] + 1);
    }
    small[99] = 1;
    arena_alloc(inner, LARGE);
    arena_free(a);
}

static void test_arena_overflow(void **state) {
    (void)state;
    OutOfMemory oom = {0};
    Arena *volatile a = NULL;
    volatile int refused = 0;
    if (setjmp(oom.env) == 0) {
        a = arena_new(0, &oom);
        arena_array(a, SIZE_MAX / 8 + 2, 8);
    } else if (refused++ == 0) {
        arena_alloc(a, SIZE_MAX - 3);
    }
    assert_int_equal(refused, 2);
    arena_free(a);
}

static void take_in_scratch(void *ctx) {
    Arena *a = ((void **)ctx)[0];
    size_t *bytes = ((void **)ctx)[1];
    Arena *scratch = arena_scratch(a);
    arena_alloc(scratch, 1000);
    arena_alloc(scratch, *bytes);
    *bytes = 0;
}

/* What does not last takes its scratch with it, and the arena's own handler is as it was. */
static void test_arena_try(void **state) {
    (void)state;
    OutOfMemory oom = {0};
    Arena *volatile a = NULL;
    volatile bool refused = false;
    if (setjmp(oom.env) == 0) {
        a = arena_new(100000, &oom);
        Arena *older = arena_scratch(a);
        arena_alloc(older, 500);
        size_t before = arena_used(a), bytes = 200000;
        assert_false(arena_try(a, take_in_scratch, (void *[]){a, &bytes}));
        assert_int_equal(bytes, 200000);
        assert_int_equal(arena_used(a), before);
        bytes = 2000;
        assert_true(arena_try(a, take_in_scratch, (void *[]){a, &bytes}));
        assert_int_equal(bytes, 0);
        assert_true(arena_used(a) > before + 3000);
        arena_alloc(a, 200000);
    } else {
        refused = true;
    }
    assert_true(refused);
    arena_free(a);
}

static void test_arena_push_and_text(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    int *items = NULL;
    size_t n = 0, cap = 0;
    for (int i = 0; i < 10000; i++)
        ARENA_PUSH(a, items, n, cap, i);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(items[i], i);
    Str s = arena_str(a, (Str){"a\0b-", 3});
    assert_int_equal(s.n, 3);
    assert_memory_equal(s.s, "a\0b", 4);
    assert_null(arena_str(a, STR_NONE).s);
    assert_string_equal(arena_strf(a, "%d-%s", 7, "x").s, "7-x");
    assert_string_equal(arena_others(a, " (and ", 2, ")"), " (and 2 others)");
    assert_string_equal(arena_others(a, ", and ", 1, ""), ", and 1 other");
    assert_string_equal(arena_others(a, ", and ", 0, ")"), "");
    arena_free(a);
}

static void test_map(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    Map *m = map_new(a);
    assert_null(map_get(m, STR("x")));
    int v[3];
    assert_true(map_set(m, STR("b"), &v[0]));
    assert_true(map_set(m, STR(""), &v[1]));
    assert_true(map_set(m, (Str){"a\0b", 3}, &v[2]));
    assert_false(map_set(m, STR("b"), &v[1]));
    assert_ptr_equal(map_get(m, STR("b")), &v[1]);
    assert_ptr_equal(map_get(m, (Str){"a\0b", 3}), &v[2]);
    assert_null(map_get(m, STR("a")));
    assert_int_equal(map_size(m), 3);
    assert_true(str_is(map_key(m, 0), "b"));
    assert_int_equal(map_key(m, 1).n, 0);
    assert_ptr_equal(map_value(m, 2), &v[2]);
    arena_free(a);
}

static void test_map_million(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    Map *m = map_new(a);
    for (int i = 0; i < 1000000; i++)
        assert_true(map_set(m, arena_strf(a, "/layer.%d/Conv_output_0", i), m));
    for (int i = 0; i < 1000000; i += 997) {
        assert_ptr_equal(map_get(m, arena_strf(a, "/layer.%d/Conv_output_0", i)), m);
        assert_null(map_get(m, arena_strf(a, "/layer.%d/Conv_output_1", i)));
    }
    arena_free(a);
}

static void test_str(void **state) {
    (void)state;
    assert_true(str_cmp(STR("a"), STR("ab")) < 0);
    assert_true(str_cmp(STR("b"), STR("ab")) > 0);
    assert_true(str_cmp(STR("\xff"), STR("a")) > 0);
    assert_int_equal(str_cmp(STR(""), STR_NONE), 0);
    assert_true(str_starts(STR("conv1"), "conv"));
    assert_false(str_starts(STR("con"), "conv"));
    assert_true(str_ends(STR("x.npy"), ".npy"));
    assert_false(str_ends(STR("npy"), ".npy"));
}

static void test_glob(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool match;
    } cases[] = {
        {"", "", true},
        {"*", "", true},
        {"?", "", false},
        {"conv*", "conv1", true},
        {"conv*", "con", false},
        {"*conv", "my/conv", true},
        {"a*b*c", "axxbyyc", true},
        {"a*b*c", "axxbyy", false},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"*a", "aaab", false},
        {"[a]", "a", false},
        {"[a]", "[a]", true},
        {"a**b", "ab", true},
        {"abc", "abcd", false},
        {"a\\*", "a*", true},
        {"a\\*", "ab", false},
        {"a\\?", "a?", true},
        {"a\\?", "ab", false},
        {"a\\,b", "a,b", true},
        {"a\\\\", "a\\", true},
        {"*\\*", "ab*", true},
        {"*\\*", "ab", false},
        {"a\\b", "a\\b", true},
        {"a\\", "a\\", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (str_glob(cases[i].pattern, str_from(cases[i].text)) != cases[i].match)
            fail_msg("%s on %s", cases[i].pattern, cases[i].text);
    /* The pattern that takes exponential time where `*` backtracks. */
    char text[10001];
    memset(text, 'a', 10000);
    text[10000] = 'b';
    assert_false(str_glob("*a*a*a*a*a*a*a*a*a*a*a*c", (Str){text, sizeof text}));
}

static void test_list(void **state) {
    (void)state;
    static const struct {
        const char *list, *items; /* these with | between them */
    } cases[] = {
        {"a", "a"},           {"a,b*", "a|b*"},       {"", ""},       {",", "|"},
        {"a,", "a|"},         {"a\\,b,c", "a\\,b|c"}, {"a\\", "a\\"}, {"a\\\\,b", "a\\\\|b"},
        {"a\\b,c", "a\\b|c"}, {"\\,", "\\,"},         {",,a", "||a"}, {"*,?\\*", "*|?\\*"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32] = "";
        const char *at = cases[i].list;
        Str item;
        for (size_t n = 0; str_next_item(&at, &item); n += strlen(text + n))
            snprintf(text + n, sizeof text - n, "%s" STR_FMT,
                     n || item.s > cases[i].list ? "|" : "", STR_ARG(item));
        assert_string_equal(text, cases[i].items);
        assert_null(at);
        assert_false(str_next_item(&at, &item));
    }
}

static void test_distance(void **state) {
    (void)state;
    assert_int_equal(str_distance(STR("Conv"), STR("Conv"), 3), 0);
    assert_int_equal(str_distance(STR("Conv"), STR("Cnov"), 3), 1);
    assert_int_equal(str_distance(STR("Relu"), STR("Relu6"), 3), 1);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting"), 3), 3);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting"), 2), 3);
    assert_int_equal(str_distance(STR(""), STR("abc"), 9), 3);
    assert_int_equal(str_distance(STR("a"), STR("abcdef"), 2), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_zeroed_and_aligned),
        cmocka_unit_test(test_arena_large_keeps_small_chunk),
        cmocka_unit_test(test_arena_limit),
        cmocka_unit_test(test_arena_scratch),
        cmocka_unit_test(test_arena_release),
        cmocka_unit_test(test_arena_overflow),
        cmocka_unit_test(test_arena_try),
        cmocka_unit_test(test_arena_push_and_text),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_map_million),
        cmocka_unit_test(test_str),
        cmocka_unit_test(test_glob),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
