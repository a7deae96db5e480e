#define _GNU_SOURCE
#include "test/fuzz/fuzz.h"

#include <stdlib.h>
#include <unistd.h>

#include "backend/qir/qir_write.h"
#include "compiler/write_onnx.h"
#include "frontend/onnx/onnx.h"
#include "frontend/qir/qir_read.h"
#include "ir/ops/op.h"

enum { MAX_ARENAS = 16, ARENA_LIMIT = 64 << 20 };

struct Fuzz {
    OutOfMemory oom;
    Arena *arenas[MAX_ARENAS];
    size_t n_arenas;
    FILE *messages; /* goes nowhere */
    Diags *diags;
    FILE *stream;
    char *written;
    size_t n_written;
};

/* ---- the empty folder, one for the process ---- */

static char empty_dir[] = "/tmp/qxc-fuzz-XXXXXX";
static bool have_empty_dir;

static void remove_empty_dir(void) {
    rmdir(empty_dir);
}

const char *fuzz_dir(Fuzz *f) {
    (void)f;
    if (!have_empty_dir) {
        fuzz_promise(mkdtemp(empty_dir) != NULL, "a temporary folder", STR_NONE, STR_NONE);
        have_empty_dir = true;
        atexit(remove_empty_dir);
    }
    return empty_dir;
}

/* ---- one input ---- */

Arena *fuzz_arena(Fuzz *f) {
    fuzz_promise(f->n_arenas < MAX_ARENAS, "few enough arenas", STR_NONE, STR_NONE);
    return f->arenas[f->n_arenas++] = arena_new(ARENA_LIMIT, &f->oom);
}

Diags *fuzz_diags(Fuzz *f) {
    return f->diags;
}

static void close_stream(Fuzz *f) {
    if (f->stream)
        fclose(f->stream);
    free(f->written);
    f->stream = NULL;
    f->written = NULL;
}

FILE *fuzz_stream(Fuzz *f) {
    close_stream(f);
    f->stream = open_memstream(&f->written, &f->n_written);
    fuzz_promise(f->stream != NULL, "a stream in memory", STR_NONE, STR_NONE);
    return f->stream;
}

Str fuzz_written(Fuzz *f) {
    fflush(f->stream);
    Str copy = arena_str(fuzz_arena(f), (Str){f->written, f->n_written});
    close_stream(f);
    return copy;
}

int fuzz_run(void (*body)(Fuzz *f, Str input), const uint8_t *data, size_t size) {
    Fuzz *f = calloc(1, sizeof *f);
    f->messages = fopen("/dev/null", "w");
    if (!setjmp(f->oom.env)) {
        f->diags = diags_new(fuzz_arena(f), f->messages, false);
        body(f, (Str){(const char *)data, size});
        fuzz_promise(!diags_unexplained(f->diags), "a refusal says why", STR_NONE, STR_NONE);
    }
    close_stream(f);
    fclose(f->messages);
    for (size_t i = 0; i < f->n_arenas; i++)
        arena_free(f->arenas[i]);
    free(f);
    return 0;
}

/* ---- promises ---- */

static void show(const char *what, Str s) {
    fprintf(stderr, "---- %s, %zu bytes\n", what, s.n);
    if (s.s && memchr(s.s, 0, s.n))
        for (size_t i = 0; i < s.n; i++)
            fprintf(stderr, "%02x%c", (unsigned char)s.s[i], i % 32 == 31 ? '\n' : ' ');
    else if (s.s)
        fwrite(s.s, 1, s.n, stderr);
    fputc('\n', stderr);
}

void fuzz_promise(bool ok, const char *what, Str one, Str other) {
    if (ok)
        return;
    fprintf(stderr, "broken promise: %s\n", what);
    if (one.s)
        show("one", one);
    if (other.s)
        show("other", other);
    abort();
}

/* ---- reading and writing ---- */

bool fuzz_valid(Fuzz *f, Module *m, unsigned flags) {
    int errors = diags_errors(f->diags);
    bool ok = module_check(m, flags, f->diags);
    fuzz_promise(ok == (diags_errors(f->diags) == errors), "a refusal says why", STR_NONE,
                 STR_NONE);
    return ok;
}

static Module *checked(Fuzz *f, Module *m, int errors_before) {
    fuzz_promise(!m == (diags_errors(f->diags) > errors_before), "a refusal says why", STR_NONE,
                 STR_NONE);
    return m;
}

Module *fuzz_read_qir(Fuzz *f, Str text) {
    int errors = diags_errors(f->diags);
    QirReadOptions options = {.in.dir = fuzz_dir(f)};
    return checked(f, qir_read_text(fuzz_arena(f), f->diags, "fuzz.qir", text, &options), errors);
}

Module *fuzz_read_onnx(Fuzz *f, Str bytes) {
    int errors = diags_errors(f->diags);
    OnnxReadOptions options = {.in.dir = fuzz_dir(f)};
    return checked(f, onnx_read_bytes(fuzz_arena(f), f->diags, "fuzz.onnx", bytes, &options),
                   errors);
}

Str fuzz_print(Module *m) {
    Buf b = buf_new(m->arena);
    qir_print(m, &b, NULL);
    return buf_as_str(&b);
}

Str fuzz_write_onnx(Fuzz *f, Module *m) {
    int errors = diags_errors(f->diags);
    OnnxWriteOptions options = {.allow_newer = true};
    bool ok = write_onnx_checked(m, fuzz_stream(f), &options, f->diags);
    fuzz_promise(ok == (diags_errors(f->diags) == errors), "a refusal says why", STR_NONE,
                 STR_NONE);
    return ok ? fuzz_written(f) : STR_NONE;
}

Module *fuzz_reread(Fuzz *f, Str text) {
    Module *m = fuzz_read_qir(f, text);
    fuzz_promise(m != NULL, "printed text parses", text, STR_NONE);
    fuzz_promise(fuzz_valid(f, m, VERIFY_ERRORS), "printed text verifies", text, STR_NONE);
    Str again = fuzz_print(m);
    fuzz_promise(str_eq(text, again), "printed text prints the same", text, again);
    return m;
}
