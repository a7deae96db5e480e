/* The ways out of the printer: to a buffer, to a file, with large constants in a file beside the
 * text. */
#include "backend/qir/print.h"

enum { FLUSH_AT = 1 << 16 };

static Printer printer_new(const Module *m, FILE *f, const QirWriteOptions *options) {
    Printer p = {.arena = m->arena, .file = f, .module = m};
    p.options = options ? *options : (QirWriteOptions){0};
    p.b = buf_new(m->arena);
    p.few = p.options.has_few ? p.options.few : FEW;
    return p;
}

void print_flush(Printer *p) {
    if (!p->file || p->b.n < FLUSH_AT)
        return;
    fwrite(p->b.p, 1, p->b.n, p->file);
    p->flushed += p->b.n;
    p->b.n = 0;
}

void qir_print(const Module *m, Buf *b, const QirWriteOptions *options) {
    Printer p = printer_new(m, NULL, options);
    p.b = *b;
    print_module(&p);
    *b = p.b;
}

Str qir_stat_text(const Module *m, const Stat *s) {
    Printer p = printer_new(m, NULL, NULL);
    print_stat_fields(&p, s);
    return buf_as_str(&p.b);
}

Str qir_from_text(const Module *m, Provenance from) {
    Printer p = printer_new(m, NULL, NULL);
    print_from(&p, from);
    return buf_as_str(&p.b);
}

void qir_write(const Module *m, FILE *f, const QirWriteOptions *options) {
    Printer p = printer_new(m, f, options);
    print_module(&p);
    fwrite(p.b.p, 1, p.b.n, f);
}

/* "dir/model.qir" -> "dir/model.safetensors". */
static const char *blob_path(Arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    size_t dir = slash ? (size_t)(slash - path) + 1 : 0;
    return arena_strf(a, "%.*s%.*s.safetensors", (int)dir, path, STR_ARG(path_stem(a, path))).s;
}

static void let_go(Str data, void *module) {
    Tensor t = {.data = (const uint8_t *)data.s, .bytes = data.n};
    module_release(module, &t);
}

const SideFile *print_blob_file(Printer *p) {
    FILE *f = out_side(p->out, blob_path(p->arena, p->path));
    if (!f)
        return NULL;
    st_write(p->blob, f, let_go, (void *)(uintptr_t)p->module);
    return out_settle(p->out, f, p->path, false);
}

bool qir_write_file(const Module *m, OutFiles *out, const char *path,
                    const QirWriteOptions *options) {
    FILE *f = out_open(out, path);
    if (!f)
        return false;
    Printer p = printer_new(m, f, options);
    if (!p.options.no_blob && !out_is_device(path)) {
        /* The body comes first, as it shows whether there is a blob to be named in the head. It is
         * small when the large constants are not in it. */
        p.file = NULL;
        p.out = out;
        p.path = path;
        p.blob = st_writer(p.arena);
        p.keys = names_new(p.arena, p.arena);
    }
    print_module(&p);
    fwrite(p.b.p, 1, p.b.n, f);
    return !p.failed;
}
