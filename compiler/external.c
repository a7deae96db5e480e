/* See compiler/external.h. */
#include "compiler/external.h"

#include <sys/stat.h>

#include "compiler/metadata.h"

/* Whether the model goes to where nothing lies beside it. */
static bool is_stream(const Options *o) {
    return !o->output || out_is_device(o->output);
}

/* FILE as the option gives it: a bare name lies beside the model. NULL where nothing says which. */
static const char *path_of(const Options *o, Arena *a) {
    const char *file = o->external_data;
    if (file && *file && (strchr(file, '/') || is_stream(o)))
        return file;
    if (is_stream(o))
        return NULL;
    if (!file || !*file)
        return arena_strf(a, "%s.data", o->output).s;
    size_t dir = (size_t)(path_base(o->output) - o->output);
    return arena_strf(a, "%.*s%s", (int)dir, o->output, file).s;
}

static bool same_folder(Arena *a, const char *x, const char *y) {
    struct stat one, other;
    return stat(path_dir(a, x), &one) != 0 || stat(path_dir(a, y), &other) != 0 ||
           (one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}

bool external_fits(const Session *s) {
    const Options *o = &s->o;
    if (!o->external_data)
        return true;
    const char *path = path_of(o, s->arena), *base = path ? path_base(path) : "";
    if (!path)
        return diag_error(s->d, LOC_NONE,
                          "-external-data: beside a stream there is no file: name one, "
                          "-external-data=FILE");
    const char *shown = diag_name(s->d, str_from(path));
    if (strchr(base, '/') || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return diag_error(s->d, LOC_NONE, "-external-data=%s: this names a folder", shown);
    if (is_stream(o))
        return true;
    if (!same_folder(s->arena, path, o->output))
        return diag_error(
            s->d, LOC_NONE,
            "-external-data=%s: the model finds its data in its own folder alone: did "
            "you mean -external-data=%s?",
            shown, diag_name(s->d, str_from(base)));
    return strcmp(base, path_base(o->output)) != 0 ||
           diag_error(s->d, LOC_NONE, "-external-data=%s: -o names the same file", shown);
}

/* Whether the model has to be told apart from its weights, which is said. False after a diagnostic,
 * too. */
static bool is_too_large(Writing *w, const OnnxWriteOptions *o, const char *path, bool *ok) {
    unsigned long long size = onnx_size(w->m, o);
    *ok = size > 0;
    if (size <= ONNX_WRITE_LARGEST || !onnx_can_move(w->m))
        return false;
    if (!path)
        *ok = diag_error(w->s->d, LOC_NONE,
                         "the model takes %llu bytes, and an ONNX file holds 2 GiB: its weights "
                         "need a file, -external-data=FILE or -o FILE",
                         size);
    else
        diag(w->s->d, DIAG_NOTE, LOC_NONE,
             "the model takes %llu bytes, and an ONNX file holds 2 GiB: its weights go to '%s'",
             size, diag_name(w->s->d, str_from(path)));
    return *ok;
}

bool external_write(Writing *w, const OnnxWriteOptions *o) {
    const Options *given = &w->s->o;
    const char *path = path_of(given, w->s->arena);
    bool ok = true;
    if (given->external_data ? !onnx_can_move(w->m) : !is_too_large(w, o, path, &ok)) {
        if (given->external_data)
            diag(w->s->d, DIAG_NOTE, LOC_NONE,
                 "-external-data: no constant at hand has %d bytes or more, so none moves",
                 ONNX_EXTERNAL_FROM);
        return ok;
    }
    FILE *f = out_side(w->out, path);
    if (!f)
        return false;
    OnnxMoved moved = onnx_move(w->m, f);
    const char *main = given->output ? given->output : "/dev/stdout";
    bool fixed = given->external_data && *given->external_data;
    const SideFile *side = out_settle(w->out, f, main, fixed);
    if (!side)
        return false;
    onnx_name_moved(&moved, str_from(side->name));
    metadata_put_external(w->m, side->name, side->hash);
    return true;
}
