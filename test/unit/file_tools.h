/* For the tests of files: a folder of their own, and what was said last. */
#ifndef QXC_TEST_FILE_TOOLS_H
#define QXC_TEST_FILE_TOOLS_H

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/file.h"

typedef struct Fixture {
    Arena *arena;
    Diags *d;
    char dir[64];
    uid_t user; /* who began */
} Fixture;

static inline int setup(void **state) {
    Fixture *f = calloc(1, sizeof *f);
    f->arena = arena_new(0, NULL);
    f->d = diags_new(f->arena, NULL, false);
    diags_record(f->d, true);
    f->user = getuid();
    strcpy(f->dir, "/tmp/qxc-test-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    *state = f;
    return 0;
}

/* Root may write anywhere: from here on somebody else owns the folder and runs the test, until its
 * teardown. False where that cannot be. */
static inline bool run_as_user(Fixture *f) {
    enum { NOBODY = 65534 };
    if (geteuid() != 0)
        return true;
    return chown(f->dir, NOBODY, (gid_t)-1) == 0 && setreuid(NOBODY, (uid_t)-1) == 0 &&
           seteuid(NOBODY) == 0 && access(f->dir, W_OK) == 0;
}

static inline int run_as_before(uid_t real) {
    return getuid() == real ? 0 : seteuid(real) || setreuid(real, real);
}

static inline int teardown(void **state) {
    Fixture *f = *state;
    if (run_as_before(f->user) != 0)
        return -1;
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
    int status = system(command);
    arena_free(f->arena);
    free(f);
    return status;
}

static inline const char *in_dir(Fixture *f, const char *name) {
    return arena_strf(f->arena, "%s/%s", f->dir, name).s;
}

static inline void write_file(Fixture *f, const char *name, const char *text) {
    FILE *out = fopen(in_dir(f, name), "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static inline void assert_file(Fixture *f, const char *name, const char *text) {
    FileMap *m = file_map(in_dir(f, name), LOC_NONE, f->d);
    assert_non_null(m);
    assert_true(str_is(file_bytes(m), text));
    file_unmap(m);
}

static inline const char *last_message(Fixture *f) {
    const DiagRecord *r;
    size_t n = diags_records(f->d, &r);
    return n ? r[n - 1].text : "";
}

static inline void assert_said(Fixture *f, const char *part) {
    if (!strstr(last_message(f), part))
        fail_msg("'%s' does not hold '%s'", last_message(f), part);
}

static inline int files_in(const char *dir) {
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

#endif
