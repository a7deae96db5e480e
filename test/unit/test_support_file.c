/* support/file: mapping, names that stand in models, whole-or-nothing output */
#include "file_tools.h"

static void test_map(void **state) {
    Fixture *f = *state;
    write_file(f, "a", "hello");
    write_file(f, "empty", "");
    assert_file(f, "a", "hello");
    assert_file(f, "empty", "");
    file_unmap(NULL);

    assert_null(file_map(in_dir(f, "none"), LOC_NONE, f->d));
    assert_said(f, "No such file");
    assert_null(file_map(f->dir, LOC_NONE, f->d));
    assert_said(f, "folder");
    assert_int_equal(mkfifo(in_dir(f, "fifo"), 0600), 0);
    assert_null(file_map(in_dir(f, "fifo"), LOC_NONE, f->d)); /* and does not hang */
    assert_said(f, "regular");
    assert_null(file_map("/dev/zero", LOC_NONE, f->d));
}

static void test_stdin(void **state) {
    Fixture *f = *state;
    int pipe_ends[2], old = dup(0);
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(write(pipe_ends[1], "piped", 5), 5);
    close(pipe_ends[1]);
    dup2(pipe_ends[0], 0);
    FileMap *m = file_map("-", LOC_NONE, f->d);
    dup2(old, 0);
    close(old);
    close(pipe_ends[0]);
    assert_non_null(m);
    assert_true(str_is(file_bytes(m), "piped"));
    file_unmap(m);
}

static void test_beside(void **state) {
    Fixture *f = *state;
    mkdir(in_dir(f, "sub"), 0700);
    write_file(f, "w.bin", "weights");
    write_file(f, "sub/w.bin", "deeper");
    static const char *const good[] = {"w.bin", "./w.bin", "sub/w.bin", "sub//w.bin"};
    for (int i = 0; i < 4; i++) {
        FileMap *m =
            file_map_beside((Folders){f->dir, NULL}, str_from(good[i]), NULL, LOC_NONE, f->d);
        assert_non_null(m);
        assert_true(str_is(file_bytes(m), i < 2 ? "weights" : "deeper"));
        file_unmap(m);
    }
    assert_int_equal(diags_errors(f->d), 0);
}

static void test_beside_refuses(void **state) {
    Fixture *f = *state;
    mkdir(in_dir(f, "sub"), 0700);
    write_file(f, "w.bin", "weights");
    write_file(f, "sub/w.bin", "deeper");
    assert_int_equal(symlink("w.bin", in_dir(f, "link")), 0);
    assert_int_equal(symlink("sub", in_dir(f, "linkdir")), 0);
    assert_int_equal(symlink("/etc/passwd", in_dir(f, "sub/out")), 0);
    assert_int_equal(link(in_dir(f, "sub/w.bin"), in_dir(f, "hard")), 0);
    mkfifo(in_dir(f, "fifo"), 0600);
    char long_name[5000];
    memset(long_name, 'x', sizeof long_name);
    const struct {
        Str name;
        const char *why;
    } cases[] = {
        {STR(""), "empty"},
        {STR_NONE, "empty"},
        {STR("/etc/passwd"), "absolute"},
        {STR("../x"), "'..'"},
        {STR("sub/../w.bin"), "'..'"},
        {STR("sub/../../x"), "'..'"},
        {STR(".."), "'..'"},
        {STR("."), "regular"},
        {STR("sub"), "regular"},
        {STR("sub/."), "regular"},
        {STR("sub/"), "folder"},
        {STR("w.bin/x"), "not a folder"},
        {STR("link"), "symbolic link"},
        {STR("linkdir/w.bin"), "symbolic link"},
        {STR("sub/out"), "symbolic link"},
        {STR("hard"), "hard link"},
        {STR("sub/w.bin"), "hard link"},
        {STR("fifo"), "regular"},
        {STR("none"), "No such file"},
        {STR("w.bin\0.txt"), "NUL"},
        {{long_name, sizeof long_name}, "too long"},
        {{long_name, 1000}, "too long"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(file_map_beside((Folders){f->dir, NULL}, cases[i].name, NULL, LOC_NONE, f->d));
        assert_int_equal(diags_errors(f->d), i + 1);
        assert_said(f, cases[i].why);
    }
    assert_null(file_map_beside((Folders){in_dir(f, "no-such-dir"), NULL}, STR("w.bin"), NULL,
                                LOC_NONE, f->d));
}

static void test_beside_absent(void **state) {
    Fixture *f = *state;
    bool absent = false;
    mkdir(in_dir(f, "sub"), 0700);
    write_file(f, "w.bin", "weights");
    assert_int_equal(symlink("none", in_dir(f, "dangling")), 0);
    static const char *const missing[] = {"none", "sub/none", "none/w.bin", "./none"};
    for (size_t i = 0; i < 4; i++, absent = false) {
        assert_null(file_map_beside((Folders){f->dir, NULL}, str_from(missing[i]), &absent,
                                    LOC_NONE, f->d));
        assert_true(absent);
    }
    assert_int_equal(diags_errors(f->d), 0);
    assert_int_equal(diags_warnings(f->d), 4);
    static const char *const wrong[] = {"none/../w.bin", "dangling", "sub", "w.bin/none", "/none"};
    for (int i = 0; i < 5; i++) {
        absent = true;
        assert_null(
            file_map_beside((Folders){f->dir, NULL}, str_from(wrong[i]), &absent, LOC_NONE, f->d));
        assert_false(absent);
        assert_int_equal(diags_errors(f->d), i + 1);
    }
    absent = true;
    assert_null(
        file_map_beside((Folders){in_dir(f, "none"), NULL}, STR("w.bin"), &absent, LOC_NONE, f->d));
    assert_false(absent);
}

static void test_out_commit(void **state) {
    Fixture *f = *state;
    write_file(f, "old", "before");
    chmod(in_dir(f, "old"), 0640);
    OutFiles *o = out_new(f->arena, f->d, true);
    fputs("after", out_open(o, in_dir(f, "old")));
    fputs("new", out_open(o, in_dir(f, "new")));
    assert_file(f, "old", "before"); /* not yet */
    assert_true(out_commit(o));
    assert_file(f, "old", "after");
    assert_file(f, "new", "new");
    assert_int_equal(files_in(f->dir), 2);
    struct stat st;
    stat(in_dir(f, "old"), &st);
    assert_int_equal(st.st_mode & 0777, 0640);
    mode_t mask = umask(0);
    umask(mask);
    stat(in_dir(f, "new"), &st);
    assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
}

static void test_out_abort(void **state) {
    Fixture *f = *state;
    write_file(f, "old", "before");
    OutFiles *o = out_new(f->arena, f->d, false);
    fputs("after", out_open(o, in_dir(f, "old")));
    fputs("new", out_open(o, in_dir(f, "new")));
    out_abort(o);
    assert_file(f, "old", "before");
    assert_int_equal(files_in(f->dir), 1);
}

/* The second rename fails (a folder took its place meanwhile): the first is undone. */
static void test_out_rolls_back(void **state) {
    Fixture *f = *state;
    write_file(f, "a", "before");
    OutFiles *o = out_new(f->arena, f->d, false);
    fputs("after", out_open(o, in_dir(f, "a")));
    fputs("new", out_open(o, in_dir(f, "b")));
    fputs("new", out_open(o, in_dir(f, "c")));
    mkdir(in_dir(f, "c"), 0700);
    assert_false(out_commit(o));
    assert_int_equal(diags_errors(f->d), 1);
    assert_file(f, "a", "before");
    assert_int_equal(files_in(f->dir), 2);
}

static void test_out_full_disk(void **state) {
    Fixture *f = *state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    write_file(f, "old", "before");
    OutFiles *o = out_new(f->arena, f->d, false);
    fputs("after", out_open(o, in_dir(f, "old")));
    fputs("lost", out_open(o, "/dev/full"));
    assert_false(out_commit(o));
    assert_said(f, "cannot write '/dev/full': No space left");
    assert_file(f, "old", "before");
    assert_int_equal(files_in(f->dir), 1);

    /* An error that stdio met long before the commit, and forgot the reason of. */
    FILE *full = out_open(o, "/dev/full");
    setvbuf(full, NULL, _IONBF, 0);
    fputs("lost", full);
    assert_false(out_commit(o));
    assert_said(f, "cannot write '/dev/full': No space left");
}

static void test_out_devices_and_links(void **state) {
    Fixture *f = *state;
    write_file(f, "target", "before");
    assert_int_equal(symlink("target", in_dir(f, "link")), 0);
    OutFiles *o = out_new(f->arena, f->d, false);
    fputs("gone", out_open(o, "/dev/null"));
    fputs("after", out_open(o, in_dir(f, "link")));
    assert_true(out_commit(o));
    assert_file(f, "target", "after");
    struct stat st;
    lstat(in_dir(f, "link"), &st);
    assert_true(S_ISLNK(st.st_mode));
    stat("/dev/null", &st);
    assert_true(S_ISCHR(st.st_mode));
}

static void test_out_refuses(void **state) {
    Fixture *f = *state;
    OutFiles *o = out_new(f->arena, f->d, false);
    assert_null(out_open(o, ""));
    assert_null(out_open(o, f->dir));
    assert_said(f, "directory");
    assert_null(out_open(o, in_dir(f, "none/x")));
    assert_said(f, "No such file");
    assert_non_null(out_open(o, in_dir(f, "x")));
    assert_null(out_open(o, in_dir(f, "x")));
    assert_said(f, "twice");
    out_abort(o);
    assert_int_equal(files_in(f->dir), 0);
}

static void test_out_protected(void **state) {
    Fixture *f = *state;
    if (!run_as_user(f))
        skip();
    OutFiles *o = out_new(f->arena, f->d, false);
    write_file(f, "kept", "before");
    chmod(in_dir(f, "kept"), 0400);
    assert_null(out_open(o, in_dir(f, "kept")));
    assert_said(f, "Permission denied");
    out_abort(o);
    assert_file(f, "kept", "before");
    chmod(f->dir, 0500);
    o = out_new(f->arena, f->d, false);
    assert_null(out_open(o, in_dir(f, "new")));
    assert_said(f, "Permission denied");
    out_abort(o);
    chmod(f->dir, 0700);
    assert_int_equal(files_in(f->dir), 1);
}

static void test_paths_and_crc(void **state) {
    Fixture *f = *state;
    assert_string_equal(path_dir(f->arena, "a.onnx"), ".");
    assert_string_equal(path_dir(f->arena, "x/y//a.onnx"), "x/y");
    assert_string_equal(path_dir(f->arena, "/a.onnx"), "/");
    assert_true(str_is(path_stem(f->arena, "x.y/a.b.onnx"), "a.b"));
    assert_true(str_is(path_stem(f->arena, "x.y/model"), "model"));
    assert_true(str_is(path_stem(f->arena, ".hidden"), ".hidden"));
    assert_int_equal(crc32_of("123456789", 9), 0xCBF43926);
    assert_int_equal(crc32_more(crc32_of("1234", 4), "56789", 5), 0xCBF43926);
    assert_int_equal(crc32_of("", 0), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_map),           TEST(test_stdin),
        TEST(test_beside),        TEST(test_beside_refuses),
        TEST(test_beside_absent), TEST(test_out_commit),
        TEST(test_out_abort),     TEST(test_out_rolls_back),
        TEST(test_out_full_disk), TEST(test_out_devices_and_links),
        TEST(test_out_refuses),   TEST(test_out_protected),
        TEST(test_paths_and_crc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
