/* support/safetensors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/buf.h"
#include "support/safetensors.h"

typedef struct Fixture {
    Arena *arena;
    Diags *d;
} Fixture;

static int setup(void **state) {
    Fixture *f = calloc(1, sizeof *f);
    f->arena = arena_new(0, NULL);
    f->d = diags_new(f->arena, NULL, false);
    diags_record(f->d, true);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    Fixture *f = *state;
    arena_free(f->arena);
    free(f);
    return 0;
}

static Str written(Fixture *f, StWriter *w) {
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    st_write(w, out, NULL, NULL);
    fclose(out);
    Str copy = arena_str(f->arena, (Str){text, n});
    free(text);
    return copy;
}

static SafeTensors *parse(Fixture *f, const char *json, size_t data) {
    Buf b = buf_new(f->arena);
    uint64_t n = strlen(json);
    for (int i = 0; i < 8; i++)
        buf_byte(&b, (char)(n >> (8 * i)));
    buf_text(&b, json);
    for (size_t i = 0; i < data; i++)
        buf_byte(&b, (char)i);
    return st_parse(f->arena, buf_as_str(&b), "w.safetensors", LOC_NONE, f->d);
}

static void test_round_trip(void **state) {
    Fixture *f = *state;
    const float w[6] = {1, 2, 3, 4, 5, 6};
    StWriter *out = st_writer(f->arena);
    assert_true(st_add_metadata(out, STR("format"), STR("qir \"1\"\n")));
    assert_true(
        st_add(out, STR("z \\ \"w\""), "F32", 2, (int64_t[]){2, 3}, (Str){(const char *)w, 24}));
    assert_true(st_add(out, STR("b"), "I8", 1, (int64_t[]){3}, STR("abc")));
    assert_true(st_add(out, STR("\xc3\xbc"), "I64", 1, (int64_t[]){0}, STR("")));
    assert_true(st_add(out, STR("packed"), "F4", 1, (int64_t[]){2}, STR("x")));
    assert_false(st_add(out, STR("b"), "I8", 0, NULL, STR("a")));
    assert_false(st_add(out, STR("\xff"), "I8", 0, NULL, STR("a")));
    assert_false(st_add(out, STR("a\0b"), "I8", 0, NULL, STR("a")));
    assert_false(st_add(out, STR("__metadata__"), "I8", 0, NULL, STR("a")));
    assert_false(st_add_metadata(out, STR("k"), STR("\xff")));

    Str bytes = written(f, out);
    assert_int_equal((unsigned char)bytes.s[0] % 8, 0);
    assert_int_equal(bytes.s[8], '{');
    SafeTensors *st = st_parse(f->arena, bytes, "w", LOC_NONE, f->d);
    assert_non_null(st);
    assert_int_equal(st_size(st), 4);
    assert_true(str_is(st_at(st, 0)->name, "z \\ \"w\""));
    assert_true(str_is(st_at(st, 3)->name, "packed"));
    const StTensor *t = st_find(st, STR("z \\ \"w\""));
    assert_string_equal(t->dtype, "F32");
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->dims[1], 3);
    assert_int_equal(t->data.n, 24);
    assert_memory_equal(t->data.s, w, 24);
    assert_true(str_is(st_find(st, STR("b"))->data, "abc"));
    assert_null(st_find(st, STR("c")));
    assert_true(str_is(st_metadata(st, STR("format")), "qir \"1\"\n"));
    assert_null(st_metadata(st, STR("k")).s);
    assert_int_equal(diags_errors(f->d), 0);
}

static void test_empty(void **state) {
    Fixture *f = *state;
    SafeTensors *st = st_parse(f->arena, written(f, st_writer(f->arena)), "w", LOC_NONE, f->d);
    assert_non_null(st);
    assert_int_equal(st_size(st), 0);
    StWriter *w = st_writer(f->arena);
    st_add_metadata(w, STR("a"), STR("b"));
    assert_non_null(st_parse(f->arena, written(f, w), "w", LOC_NONE, f->d));
}

static void test_refuses(void **state) {
    Fixture *f = *state;
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"", "not JSON"},
        {"{", "not JSON"},
        {"[]", "not an object"},
        {"{\"a\":1,\"a\":2}", "not JSON"},
        {"{\"a\":1}", "dtype"},
        {"{\"a\":{}}", "dtype"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", "dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,9223372036854775807]}}",
         "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", "do not fit"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
         "do not fit"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", "do not fit"},
        {"{\"__metadata__\":[]}", "__metadata__"},
        {"{\"__metadata__\":{\"a\":1}}", "__metadata__"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (parse(f, cases[i].json, 8))
            fail_msg("accepted: %s", cases[i].json);
        const DiagRecord *r;
        size_t n = diags_records(f->d, &r);
        assert_int_equal(n, i + 1);
        if (!strstr(r[n - 1].text, cases[i].why))
            fail_msg("%s: %s", cases[i].json, r[n - 1].text);
    }
}

static void test_sizes(void **state) {
    Fixture *f = *state;
    static const Str files[] = {
        STR(""),
        STR("1234567"),
        STR("\xff\xff\xff\xff\xff\xff\xff\xff{}"),
        STR("\x03\0\0\0\0\0\0\0{}"),
    };
    for (size_t i = 0; i < 4; i++) {
        assert_null(st_parse(f->arena, files[i], "w", LOC_NONE, f->d));
        const DiagRecord *r;
        assert_int_equal(diags_records(f->d, &r), i + 1);
        assert_non_null(strstr(r[i].text, i < 2 ? "too short" : "longer than the file"));
    }
    assert_non_null(parse(f, "{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[4,8]}}", 8));
}

static void test_deep_nesting(void **state) {
    Fixture *f = *state;
    Buf b = buf_new(f->arena);
    for (int i = 0; i < 1000000; i++)
        buf_byte(&b, '[');
    assert_null(parse(f, buf_as_str(&b).s, 0));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip), TEST(test_empty),        TEST(test_refuses),
        TEST(test_sizes),      TEST(test_deep_nesting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
