/* support/store: constants that lie in memory or in a file, and read the same */
#include <signal.h>
#ifdef __linux__
#include <sys/mount.h>
#endif
#include <sys/resource.h>
#include <sys/wait.h>

#include "support/platform.h"
#include "support/store.h"
#include "file_tools.h"

enum { SIZE = 300000 };

static uint8_t byte_of(size_t seed, size_t i) {
    return (uint8_t)(seed * 31 + i * 7 + i / 256);
}

static const uint8_t *make(Arena *a, size_t seed, size_t n) {
    uint8_t *p = store_begin(a, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(p[i], 0);
        p[i] = byte_of(seed, i);
    }
    return store_end(a, p, n);
}

static void expect(const uint8_t *p, size_t seed, size_t n) {
    for (size_t i = 0; i < n; i++)
        assert_int_equal(p[i], byte_of(seed, i));
}

/* Files and folders that a listing shows. */
static int count_files(const char *dir) {
    DIR *d = opendir(dir);
    int n = -2; /* itself and the one above */
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* A dozen constants of several sizes; returns how many bytes of the arena they take. */
static size_t fill(Arena *a) {
    enum { N = 12 };
    const uint8_t *made[N];
    size_t before = arena_used(a);
    for (size_t i = 0; i < N; i++)
        made[i] = make(a, i, SIZE + i);
    size_t used = arena_used(a) - before;
    const uint8_t *copy = store_copy(a, made[3], SIZE + 3);
    for (size_t i = 0; i < N; i++) {
        expect(made[i], i, SIZE + i);
        store_release(a, made[i], SIZE + i);
        expect(made[i], i, SIZE + i);
    }
    expect(copy, 3, SIZE + 3);
    return used;
}

static void test_in_memory(void **state) {
    Fixture *f = *state;
    Arena *a = arena_new(0, NULL);
    assert_true(fill(a) > 12 * SIZE); /* no store */
    store_open(a, in_dir(f, ""), 100 * SIZE);
    assert_true(fill(a) > 12 * SIZE);
    arena_free(a);
}

static void test_on_disk(void **state) {
    Fixture *f = *state;
    Arena *a = arena_new(0, NULL);
    store_open(a, in_dir(f, ""), 0);
    assert_true(fill(a) < SIZE); /* the room that each is made in is not of the arena */
    assert_int_equal(count_files(in_dir(f, "")), 0);
    arena_free(a);
}

static void test_budget(void **state) {
    Fixture *f = *state;
    Arena *a = arena_new(0, NULL);
    store_open(a, in_dir(f, ""), 5 * SIZE);
    size_t used = fill(a);
    assert_true(used > 4 * SIZE && used < 6 * SIZE); /* the fifth has a few bytes too many */
    arena_free(a);
}

/* What is small stays in memory, and so does what is made while another is. */
static void test_others(void **state) {
    Fixture *f = *state;
    Arena *a = arena_new(0, NULL);
    store_open(a, in_dir(f, ""), 0);
    uint8_t *outer = store_begin(a, SIZE);
    const uint8_t *small = make(a, 1, 100), *inner = make(a, 2, SIZE);
    memset(outer, 7, SIZE);
    const uint8_t *kept = store_end(a, outer, SIZE);
    expect(small, 1, 100);
    expect(inner, 2, SIZE);
    assert_int_equal(kept[SIZE - 1], 7);
    expect(make(a, 3, SIZE), 3, SIZE);
    assert_int_equal(kept[0], 7);
    arena_free(a);
}

static void test_no_folder(void **state) {
    Fixture *f = *state;
    Arena *a = arena_new(0, NULL);
    store_open(a, in_dir(f, "absent"), 0);
    assert_true(fill(a) > 12 * SIZE);
    arena_free(a);
}

/* A disk that is full: files may not grow beyond a few constants. */
static void test_full(void **state) {
    Fixture *f = *state;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit most = {4 * SIZE, 4 * SIZE};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &most);
        Arena *a = arena_new(0, NULL);
        store_open(a, in_dir(f, ""), 0);
        size_t used = fill(a);
        arena_free(a);
        _exit(used > 8 * SIZE && used < 12 * SIZE ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* What is asked for is there before it is written, and zeros; what is there stays. */
static void test_reserve(void **state) {
    Fixture *f = *state;
    enum { MORE = 1 << 20 };
    char byte = 0;
    struct stat st;
    int fd = open(in_dir(f, "reserved"), O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "x", 1, 10), 1);
    assert_true(file_reserve(fd, 0, MORE));
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pread(fd, &byte, 1, 10), 1);
    assert_int_equal(byte, 'x');
#ifdef __linux__ /* others have nothing to ask for it with */
    assert_true((off_t)st.st_blocks * 512 >= MORE);
    assert_int_equal(pread(fd, &byte, 1, MORE - 1), 1);
    assert_int_equal(byte, 0);
#endif
    close(fd);
    assert_false(file_reserve(fd, 0, MORE)); /* it is no file any more */
}

/* A file system that has room for a few constants: the others lie in memory, and all can be read.
 */
static void test_small_disk(void **state) {
#ifdef __linux__
    Fixture *f = *state;
    if (mount("none", in_dir(f, ""), "tmpfs", 0, "size=1280k") != 0)
        skip(); /* only root may */
    Arena *a = arena_new(0, NULL);
    store_open(a, in_dir(f, ""), 0);
    size_t used = fill(a);
    int fd = open(in_dir(f, "rest"), O_RDWR | O_CREAT, 0600);
    bool reserved = file_reserve(fd, 0, 4 << 20);
    close(fd);
    arena_free(a);
    assert_int_equal(umount(in_dir(f, "")), 0);
    assert_true(used > 8 * SIZE && used < 12 * SIZE);
    assert_false(reserved);
#else
    (void)state;
    skip();
#endif
}

/* A child has the same file, to which it must not write. */
static void test_child(void **state) {
    Fixture *f = *state;
    Arena *a = arena_new(0, NULL);
    store_open(a, in_dir(f, ""), 0);
    const uint8_t *first = make(a, 1, SIZE);
    pid_t child = fork();
    if (child == 0) {
        expect(first, 1, SIZE);
        _exit(fill(a) > 12 * SIZE ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    const uint8_t *second = make(a, 2, SIZE);
    expect(first, 1, SIZE);
    expect(second, 2, SIZE);
    arena_free(a);
}

typedef struct TooMuch {
    Arena *a;
} TooMuch;

static void make_too_much(void *ctx) {
    TooMuch *t = ctx;
    make(t->a, 1, SIZE);
    arena_alloc(t->a, (size_t)1 << 40);
}

/* A try that runs out of memory takes nothing of the store along. */
static void test_try(void **state) {
    Fixture *f = *state;
    OutOfMemory oom = {0}; /* arena_try sets where it goes to */
    Arena *a = arena_new((size_t)64 << 20, &oom);
    store_open(a, in_dir(f, ""), 0);
    TooMuch t = {a};
    assert_false(arena_try(a, make_too_much, &t));
    const uint8_t *next = make(a, 2, SIZE);
    expect(next, 2, SIZE);
    arena_free(a);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_in_memory), TEST(test_on_disk), TEST(test_budget),  TEST(test_others),
        TEST(test_no_folder), TEST(test_full),    TEST(test_reserve), TEST(test_small_disk),
        TEST(test_child),     TEST(test_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
