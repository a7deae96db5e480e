/* support/npy, npz */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <zip.h>

#include "support/file.h"
#include "support/npz.h"

enum { FLOAT = 1, INT8 = 3, INT16 = 5, INT64 = 7, BOOL = 9, FLOAT16 = 10 };

typedef struct Fixture {
    Arena *arena;
    Diags *d;
    char path[64];
} Fixture;

static int setup(void **state) {
    Fixture *f = calloc(1, sizeof *f);
    f->arena = arena_new(0, NULL);
    f->d = diags_new(f->arena, NULL, false);
    diags_record(f->d, true);
    strcpy(f->path, "/tmp/qxc-test-XXXXXX");
    close(mkstemp(f->path));
    *state = f;
    return 0;
}

static int teardown(void **state) {
    Fixture *f = *state;
    unlink(f->path);
    arena_free(f->arena);
    free(f);
    return 0;
}

static void write_bytes(Fixture *f, const void *data, size_t n) {
    FILE *out = fopen(f->path, "wb");
    assert_int_equal(fwrite(data, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
}

static Str read_back(Fixture *f) {
    FileMap *m = file_map(f->path, LOC_NONE, f->d);
    Str copy = arena_str(f->arena, file_bytes(m));
    file_unmap(m);
    return copy;
}

static void assert_said(Fixture *f, const char *part) {
    const DiagRecord *r;
    size_t n = diags_records(f->d, &r);
    if (!n || !strstr(r[n - 1].text, part))
        fail_msg("'%s' does not hold '%s'", n ? r[n - 1].text : "", part);
}

/* A .npy of version 1 with any header text. */
static Str npy(Fixture *f, const char *header, const void *data, size_t n) {
    Buf b = buf_new(f->arena);
    size_t size = strlen(header);
    buf_put(&b, "\x93NUMPY\x01\0", 8);
    buf_byte(&b, (char)(size & 255));
    buf_byte(&b, (char)(size >> 8));
    buf_text(&b, header);
    buf_put(&b, data, n);
    return buf_as_str(&b);
}

static Npz *open_npy(Fixture *f, const char *header, const void *data, size_t n) {
    Str bytes = npy(f, header, data, n);
    write_bytes(f, bytes.s, bytes.n);
    return npz_open(f->arena, f->path, LOC_NONE, f->d);
}

static const float ramp[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static void write_example(Fixture *f) {
    FILE *out = fopen(f->path, "wb");
    NpzWriter *w = npz_writer(f->arena, out);
    assert_true(npz_add(w, STR("x"), FLOAT, 2, (int64_t[]){4, 3}, ramp));
    assert_true(npz_add(w, STR("/layer.1/y\xc3\xbc"), INT64, 0, NULL, &(int64_t){-7}));
    assert_true(npz_add(w, STR("raw\xff"), INT8, 1, (int64_t[]){0}, NULL));
    npz_finish(w);
    assert_int_equal(fclose(out), 0);
}

static void assert_example(Fixture *f) {
    Npz *z = npz_open(f->arena, f->path, LOC_NONE, f->d);
    assert_non_null(z);
    assert_int_equal(npz_size(z), 3);
    int x = npz_find(z, STR("x"));
    assert_true(x >= 0 && npz_find(z, STR("X")) == -1);
    assert_true(npz_find(z, STR("raw\xff")) >= 0);
    const NpyArray *a = npz_at(z, (size_t)x);
    assert_int_equal(a->elem, FLOAT);
    assert_int_equal(a->rank, 2);
    assert_int_equal(a->dims[0], 4);
    assert_int_equal(a->count, 12);

    float got[12] = {0};
    NpyReader *r = npy_reader(z, (size_t)x);
    assert_true(npy_read_at(r, 3, 6, got));
    assert_memory_equal(got, ramp + 3, 6 * sizeof *got);
    assert_true(npy_read_at(r, 9, 3, got));
    assert_memory_equal(got, ramp + 9, 3 * sizeof *got);
    assert_true(npy_read_at(r, 0, 12, got)); /* backwards */
    assert_memory_equal(got, ramp, sizeof ramp);
    npy_reader_close(r);

    int64_t scalar = 0;
    r = npy_reader(z, (size_t)npz_find(z, STR("/layer.1/y\xc3\xbc")));
    assert_true(npy_read(r, &scalar, 1));
    assert_int_equal(scalar, -7);
    npy_reader_close(r);
    npz_close(z);
}

static void test_round_trip(void **state) {
    Fixture *f = *state;
    write_example(f);
    Str first = read_back(f);
    assert_example(f);
    write_example(f);
    assert_true(str_eq(first, read_back(f)));
}

static void test_deflated(void **state) {
    Fixture *f = *state;
    write_example(f);
    int code;
    zip_t *zip = zip_open(f->path, 0, &code);
    for (int i = 0; i < 3; i++)
        assert_int_equal(zip_set_file_compression(zip, (zip_uint64_t)i, ZIP_CM_DEFLATE, 9), 0);
    assert_int_equal(zip_close(zip), 0);
    assert_example(f);
}

static void test_single_array(void **state) {
    Fixture *f = *state;
    FILE *out = fopen(f->path, "wb");
    npy_write(f->arena, out, FLOAT, 1, (int64_t[]){12}, ramp);
    fclose(out);
    assert_int_equal(read_back(f).n, 128 + sizeof ramp);
    Npz *z = npz_open(f->arena, f->path, LOC_NONE, f->d);
    assert_int_equal(npz_size(z), 1);
    assert_true(str_eq(npz_at(z, 0)->name, path_stem(f->arena, f->path)));
    NpyReader *r = npy_reader(z, 0);
    float got[12];
    assert_true(npy_read_at(r, 6, 6, got));
    assert_memory_equal(got, ramp + 6, 6 * sizeof *got);
    assert_true(npy_read_at(r, 0, 12, got));
    assert_memory_equal(got, ramp, sizeof ramp);
    npy_reader_close(r);
    npz_close(z);
}

static void test_big_endian_bool_and_version_2(void **state) {
    Fixture *f = *state;
    Npz *z = open_npy(f, "{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n",
                      "\x01\x02\xff\xfe", 4);
    int16_t v[2];
    NpyReader *r = npy_reader(z, 0);
    assert_true(npy_read(r, v, 2));
    assert_int_equal(v[0], 0x102);
    assert_int_equal(v[1], -2);
    npz_close(z);

    z = open_npy(f, "{\"shape\":(3L,),\"descr\":\"|b1\",\"fortran_order\":False}", "\0\2\1", 3);
    char b[3];
    assert_true(npy_read(npy_reader(z, 0), b, 3));
    assert_memory_equal(b, "\0\1\1", 3);
    npz_close(z);

    static const char two[] = "\x93NUMPY\x02\0\x37\0\0\0{'descr': '<f2', 'fortran_order': False, "
                              "'shape': (1,)}\nAB";
    write_bytes(f, two, sizeof two - 1);
    z = npz_open(f->arena, f->path, LOC_NONE, f->d);
    assert_non_null(z);
    assert_int_equal(npz_at(z, 0)->elem, FLOAT16);
    npz_close(z);
}

/* Listed, but not readable. */
static void test_unsupported(void **state) {
    Fixture *f = *state;
    Npz *z =
        open_npy(f, "{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}", "abcabcabcabc", 12);
    assert_non_null(z);
    assert_int_equal(npz_at(z, 0)->elem, 0);
    assert_null(npy_reader(z, 0));
    assert_said(f, "dtype '<U3' is not supported");
    npz_close(z);
}

/* First axis fastest: read in the order of C, by samples too, back and forth. */
static void test_fortran_order(void **state) {
    Fixture *f = *state;
    char got[12];
    Npz *z = open_npy(f, "{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3, 2)}",
                      "abcdefghijkl", 12);
    NpyReader *r = npy_reader(z, 0);
    assert_non_null(r);
    assert_true(npy_read(r, got, 12));
    assert_memory_equal(got, "agciekbhdjfl", 12);
    assert_true(npy_read_at(r, 6, 6, got));
    assert_memory_equal(got, "bhdjfl", 6);
    assert_true(npy_read_at(r, 0, 6, got));
    assert_memory_equal(got, "agciek", 6);
    npz_close(z);
    z = open_npy(f, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2)}", "\0a\0b\0c\0d", 8);
    int16_t v[4];
    assert_true(npy_read(npy_reader(z, 0), v, 4));
    assert_memory_equal(v, ((int16_t[]){'a', 'c', 'b', 'd'}), sizeof v);
    npz_close(z);
    z = open_npy(f, "{'descr': '|i1', 'fortran_order': True, 'shape': (1, 4)}", "abcd", 4);
    assert_true(npy_read(npy_reader(z, 0), got, 4)); /* both orders at once */
    assert_memory_equal(got, "abcd", 4);
    npz_close(z);
}

static void test_bad_headers(void **state) {
    Fixture *f = *state;
    static const char *const headers[] = {
        "",
        "{}",
        "x",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", /* eight bytes of data */
        "{'descr': '<f4', 'fortran_order': False, 'shape': "
        "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1,1,1,1,1,1,1,1,1,1,1,1,1)}",
        "{'\xff",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        if (open_npy(f, headers[i], "12345678", 8))
            fail_msg("accepted: %s", headers[i]);
        assert_int_equal(diags_errors(f->d), i + 1);
    }
}

/* Every prefix of a good file, and every single byte of its header damaged: a diagnostic or a
 * smaller truth, never a crash. */
static void test_cut_and_damaged(void **state) {
    Fixture *f = *state;
    write_example(f);
    Str whole = read_back(f);
    for (size_t n = 0; n < whole.n; n += n < 200 ? 1 : 7) {
        write_bytes(f, whole.s, n);
        assert_null(npz_open(f->arena, f->path, LOC_NONE, f->d));
    }
    char *bytes = arena_copy(f->arena, whole.s, whole.n);
    for (size_t i = 0; i < whole.n; i++) {
        bytes[i] = (char)(bytes[i] ^ 0x15);
        write_bytes(f, bytes, whole.n);
        Npz *z = npz_open(f->arena, f->path, LOC_NONE, f->d);
        for (size_t k = 0; z && k < npz_size(z); k++) {
            NpyReader *r = npy_reader(z, k);
            size_t size = (size_t)npz_at(z, k)->count * npz_at(z, k)->elem_size;
            if (r && size < 1000)
                npy_read(r, arena_alloc(f->arena, size), (size_t)npz_at(z, k)->count);
            npy_reader_close(r);
        }
        npz_close(z);
        bytes[i] = whole.s[i];
    }
}

static void test_checksum(void **state) {
    Fixture *f = *state;
    write_example(f);
    Str whole = read_back(f);
    char *bytes = arena_copy(f->arena, whole.s, whole.n);
    size_t at = 0;
    while (memcmp(bytes + at, ramp, sizeof ramp) != 0)
        at++;
    bytes[at + 9] ^= 1;
    write_bytes(f, bytes, whole.n);
    Npz *z = npz_open(f->arena, f->path, LOC_NONE, f->d);
    NpyReader *r = npy_reader(z, 0);
    float got[12];
    assert_false(npy_read(r, got, 12));
    assert_said(f, "CRC");
    npy_reader_close(r);
    npz_close(z);
}

/* The archive's directory says that an entry holds 2 GiB. */
static void test_claimed_size(void **state) {
    Fixture *f = *state;
    write_example(f);
    Str whole = read_back(f);
    char *bytes = arena_copy(f->arena, whole.s, whole.n);
    size_t at = 0;
    while (memcmp(bytes + at, "PK\1\2", 4) != 0)
        at++;
    memcpy(bytes + at + 24, "\xff\xff\xff\x7f", 4);
    write_bytes(f, bytes, whole.n);
    assert_null(npz_open(f->arena, f->path, LOC_NONE, f->d));
    assert_said(f, "larger than it can be");
}

static void test_not_ours(void **state) {
    Fixture *f = *state;
    write_bytes(f, "hello there", 11);
    assert_null(npz_open(f->arena, f->path, LOC_NONE, f->d));
    assert_said(f, "neither");
    assert_null(npz_open(f->arena, "/tmp", LOC_NONE, f->d));
    assert_said(f, "regular");
    assert_null(npz_open(f->arena, "/nonexistent.npz", LOC_NONE, f->d));
    assert_said(f, "No such file");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),   TEST(test_deflated),
        TEST(test_single_array), TEST(test_big_endian_bool_and_version_2),
        TEST(test_unsupported),  TEST(test_fortran_order),
        TEST(test_bad_headers),  TEST(test_cut_and_damaged),
        TEST(test_checksum),     TEST(test_claimed_size),
        TEST(test_not_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
