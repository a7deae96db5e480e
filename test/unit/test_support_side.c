/* support/file: files beside others, which replace nothing but their own */
#include <sys/file.h>

#include "support/sha256.h"
#include "file_tools.h"

static mode_t mode_of(Fixture *f, const char *name) {
    struct stat st;
    assert_int_equal(stat(in_dir(f, name), &st), 0);
    return st.st_mode & 0777;
}

/* The model, which refers to a file of these bytes. */
static void write_main(Fixture *f, const char *bytes) {
    char hash[SHA256_HEX + 1];
    sha256_hex(str_from(bytes), hash);
    write_file(f, "m.qir", arena_strf(f->arena, "blob w.bin %s\n", hash).s);
}

/* Settles on w.bin for these bytes; NULL after a diagnostic. */
static const SideFile *settle(Fixture *f, OutFiles *o, const char *bytes, bool fixed) {
    FILE *main = out_open(o, in_dir(f, "m.qir")), *side = out_side(o, in_dir(f, "w.bin"));
    fputs(bytes, side);
    const SideFile *s = out_settle(o, side, in_dir(f, "m.qir"), fixed);
    if (s)
        fprintf(main, "blob %s %s\n", s->name, s->hash);
    return s;
}

static void test_own(void **state) {
    Fixture *f = *state;
    write_main(f, "old");
    write_file(f, "w.bin", "old");
    chmod(in_dir(f, "w.bin"), 0640);
    OutFiles *o = out_new(f->arena, f->d, true);
    const SideFile *s = settle(f, o, "new", true);
    assert_non_null(s);
    assert_string_equal(s->name, "w.bin");
    assert_int_equal(s->size, 3);
    assert_true(out_commit(o));
    assert_ptr_equal(out_side_at(o, 0), s);
    assert_null(out_side_at(o, 1));
    assert_file(f, "w.bin", "new");
    assert_int_equal(mode_of(f, "w.bin"), 0640);
    assert_int_equal(files_in(f->dir), 2);
}

/* What is large is hashed while it is written, what is small behind and before it is not. */
static void test_large_parts(void **state) {
    Fixture *f = *state;
    enum { LARGE = 3 << 20, N = LARGE + 10000 };
    static const size_t ends[] = {5000, 5000 + LARGE, N};
    char *bytes = arena_alloc(f->arena, N), hash[SHA256_HEX + 1];
    for (size_t i = 0; i < N; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    sha256_hex((Str){bytes, N}, hash);
    OutFiles *o = out_new(f->arena, f->d, false);
    FILE *side = out_side(o, in_dir(f, "w.bin"));
    for (size_t i = 0, at = 0; i < 3; at = ends[i++])
        assert_int_equal(fwrite(bytes + at, 1, ends[i] - at, side), ends[i] - at);
    const SideFile *s = out_settle(o, side, in_dir(f, "m.qir"), true);
    assert_non_null(s);
    assert_int_equal(s->size, N);
    assert_string_equal(s->hash, hash);
    assert_true(out_commit(o));
    Str got;
    assert_true(file_text(f->arena, in_dir(f, "w.bin"), LOC_NONE, f->d, &got));
    assert_int_equal(got.n, N);
    assert_memory_equal(got.s, bytes, N);
}

static void test_protected(void **state) {
    Fixture *f = *state;
    if (!run_as_user(f))
        skip();
    for (int force = 0; force < 2; force++) {
        write_main(f, "old");
        write_file(f, "w.bin", "old");
        chmod(in_dir(f, "w.bin"), 0440);
        OutFiles *o = out_new(f->arena, f->d, false);
        if (force)
            out_force(o);
        assert_null(settle(f, o, "new", true));
        assert_said(f, "cannot write");
        assert_said(f, "w.bin': Permission denied");
        out_abort(o);
        assert_file(f, "w.bin", "old");
        unlink(in_dir(f, "w.bin"));
    }
}

/* Whoever reads the model refuses a file of several names, so one is not ours even with our bytes.
 */
static void test_hard_link(void **state) {
    Fixture *f = *state;
    write_main(f, "same");
    write_file(f, "w.bin", "same");
    assert_int_equal(link(in_dir(f, "w.bin"), in_dir(f, "other")), 0);

    OutFiles *o = out_new(f->arena, f->d, false);
    const SideFile *s = settle(f, o, "same", false);
    assert_non_null(s);
    assert_string_not_equal(s->name, "w.bin");
    assert_said(f, "it is a link");
    out_abort(o);

    o = out_new(f->arena, f->d, false);
    assert_null(settle(f, o, "same", true));
    assert_said(f, "it is a link; -force replaces it");
    out_abort(o);
    assert_int_equal(files_in(f->dir), 3);

    o = out_new(f->arena, f->d, false);
    out_force(o);
    assert_non_null(settle(f, o, "new", true));
    assert_true(out_commit(o));
    assert_file(f, "w.bin", "new");
    assert_file(f, "other", "same");
}

static void test_symbolic_link(void **state) {
    Fixture *f = *state;
    write_main(f, "same");
    write_file(f, "other", "same");
    assert_int_equal(symlink("other", in_dir(f, "w.bin")), 0);
    OutFiles *o = out_new(f->arena, f->d, false);
    assert_null(settle(f, o, "same", true));
    assert_said(f, "it is a link; -force replaces it");
    out_abort(o);
    o = out_new(f->arena, f->d, false);
    out_force(o);
    out_keep(o, in_dir(f, "other")); /* what the link leads to stays */
    assert_non_null(settle(f, o, "new", true));
    assert_true(out_commit(o));
    assert_file(f, "w.bin", "new");
    assert_file(f, "other", "same");
}

/* Neither -force nor the right hash lets these pass. */
static void test_never(void **state) {
    Fixture *f = *state;
    write_main(f, "old");
    write_file(f, "w.bin", "old");
    OutFiles *o = out_new(f->arena, f->d, false);
    out_force(o);
    out_keep(o, in_dir(f, "w.bin"));
    assert_null(settle(f, o, "new", true));
    assert_said(f, "w.bin': it is an input of this run");
    assert_null(strstr(last_message(f), "-force"));
    out_abort(o);
    unlink(in_dir(f, "w.bin"));
    mkdir(in_dir(f, "w.bin"), 0700);
    o = out_new(f->arena, f->d, false);
    out_force(o);
    assert_null(settle(f, o, "new", true));
    assert_said(f, "it is no regular file");
    assert_null(strstr(last_message(f), "-force"));
    out_abort(o);
}

static void test_same_bytes_stay(void **state) {
    Fixture *f = *state;
    write_file(f, "w.bin", "same"); /* nobody refers to it */
    struct stat before, after;
    stat(in_dir(f, "w.bin"), &before);
    OutFiles *o = out_new(f->arena, f->d, false);
    assert_non_null(settle(f, o, "same", true));
    assert_true(out_commit(o));
    stat(in_dir(f, "w.bin"), &after);
    assert_true(before.st_ino == after.st_ino);
    assert_int_equal(diags_errors(f->d), 0);
    assert_int_equal(files_in(f->dir), 2);
}

/* Between settling and the end somebody may write, or take the name. */
static void test_changed_meanwhile(void **state) {
    Fixture *f = *state;
    static const char *const before[] = {NULL, "old", "new"};
    for (int i = 0; i < 3; i++) {
        write_main(f, "old");
        unlink(in_dir(f, "w.bin"));
        if (before[i])
            write_file(f, "w.bin", before[i]);
        OutFiles *o = out_new(f->arena, f->d, false);
        assert_non_null(settle(f, o, "new", true));
        write_file(f, "w.bin", "another's");
        assert_false(out_commit(o));
        assert_said(f, "w.bin': another program has changed it meanwhile");
        assert_file(f, "w.bin", "another's");
        assert_int_equal(files_in(f->dir), 2);

        unlink(in_dir(f, "w.bin"));
        if (before[i])
            write_file(f, "w.bin", before[i]);
        o = out_new(f->arena, f->d, false);
        assert_non_null(settle(f, o, "new", true));
        write_file(f, "w.bin", "new"); /* by a run like this one */
        assert_true(out_commit(o));
        assert_file(f, "w.bin", "new");
        assert_int_equal(files_in(f->dir), 2);
    }
}

/* Others wait for renaming alone, not for what goes on between settling and the end. */
static void test_locked(void **state) {
    Fixture *f = *state;
    OutFiles *o = out_new(f->arena, f->d, false);
    assert_non_null(settle(f, o, "new", true));
    int fd = open(f->dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_false(out_commit(o));
    assert_said(f, "for 5 seconds another program has had a lock on its folder");
    assert_int_equal(files_in(f->dir), 0);
    close(fd);
    o = out_new(f->arena, f->d, false);
    assert_non_null(settle(f, o, "new", true));
    assert_true(out_commit(o));
}

/* A file is looked through in parts: what stands across two of them is found. */
static void test_large_main(void **state) {
    Fixture *f = *state;
    enum { PART = 1 << 22 };
    char hash[SHA256_HEX + 1];
    sha256_hex(STR("old"), hash);
    write_file(f, "w.bin", "old");
    FILE *out = fopen(in_dir(f, "m.qir"), "w");
    assert_non_null(out);
    fprintf(out, "%*s%s%*s%s", PART - 30, "", hash, PART - SHA256_HEX, "", "w.bin");
    fclose(out);
    FileMap *map = file_map(in_dir(f, "m.qir"), LOC_NONE, f->d);
    char whole[SHA256_HEX + 1], parts[SHA256_HEX + 1];
    sha256_hex(file_bytes(map), whole);
    file_sha256(map, parts);
    assert_string_equal(whole, parts);
    file_unmap(map);
    OutFiles *o = out_new(f->arena, f->d, false);
    assert_non_null(settle(f, o, "new", true));
    assert_true(out_commit(o));
    assert_file(f, "w.bin", "new");
}

/* Wherever memory runs out, nothing is left but what was there. */
static void test_out_of_memory(void **state) {
    Fixture *f = *state;
    volatile int failed = 0;
    for (volatile size_t limit = 64;; limit += 64) {
        OutOfMemory oom = {0};
        OutFiles *volatile o = NULL;
        Arena *volatile a = NULL;
        write_main(f, "old");
        write_file(f, "w.bin", "old");
        if (setjmp(oom.env)) {
            failed++;
            if (o)
                out_abort(o);
            arena_free(a);
            assert_int_equal(files_in(f->dir), 2);
            assert_file(f, "w.bin", "old");
            continue;
        }
        a = arena_new(limit, &oom);
        o = out_new(a, f->d, false);
        assert_non_null(settle(f, o, "new", true));
        assert_true(out_commit(o));
        arena_free(a);
        break;
    }
    assert_true(failed > 3);
    assert_file(f, "w.bin", "new");
    assert_int_equal(files_in(f->dir), 2);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_own),
        TEST(test_large_parts),
        TEST(test_protected),
        TEST(test_hard_link),
        TEST(test_symbolic_link),
        TEST(test_never),
        TEST(test_same_bytes_stay),
        TEST(test_changed_meanwhile),
        TEST(test_locked),
        TEST(test_large_main),
        TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
