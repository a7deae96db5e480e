#include "compiler/qir_roundtrip.h"

#include "backend/qir/qir_write.h"
#include "frontend/qir/qir_read.h"

/* References to blobs stay, as the files are where they were. */
static Str print_text(const Module *m) {
    QirWriteOptions options = {.keep_blobs = true};
    Buf b = buf_new(m->arena);
    qir_print(m, &b, &options);
    return buf_as_str(&b);
}

static Str line_at(Str text, size_t at, size_t *begin) {
    while (at > 0 && text.s[at - 1] != '\n')
        at--;
    const char *end = at < text.n ? memchr(text.s + at, '\n', text.n - at) : NULL;
    *begin = at;
    return (Str){text.s + at, end ? (size_t)(end - text.s) - at : text.n - at};
}

static bool report_difference(Diags *d, uint32_t source, Str before, Str after) {
    size_t at = 0, begin;
    while (at < before.n && at < after.n && before.s[at] == after.s[at])
        at++;
    Str line = line_at(after, at, &begin);
    Loc where = {source, (uint32_t)at, (uint32_t)at, NULL};
    diag_error(d, where, "this line of the printed text comes back different");
    diag_note(d, where, "it is printed as: %s", diag_name(d, line));
    return false;
}

bool qir_roundtrip_check(const Module *m, Diags *d) {
    Str before = print_text(m);
    OutOfMemory oom = {.limit = 0};
    Arena *volatile a = NULL;
    if (setjmp(oom.env)) {
        arena_free(a);
        return diag_error(d, LOC_NONE, "not enough memory to read the printed text back");
    }
    a = arena_new(0, &oom);
    QirReadOptions options = {.dir = path_dir(m->arena, m->path ? m->path : "-"),
                              .skip_checksums = true};
    Module *again = qir_read_text(a, d, "<printed text>", before, &options);
    if (!again) {
        arena_free(a);
        return false; /* the reader said why; its text stays for its messages */
    }
    Str after = print_text(again);
    bool ok = str_eq(before, after);
    if (!ok)
        report_difference(d, diags_source(d, "<printed text>", before), before, after);
    module_free(again);
    return ok;
}
