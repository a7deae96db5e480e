#define _GNU_SOURCE
#include "compiler/in_place.h"

#include "frontend/qir/qir_format.h"

#include <stdlib.h>
#include <sys/stat.h>

static bool is_link(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Files beside a text are named after it, and stand in its folder: of a link, they are those of
 * what it leads to. NULL after an error: from another folder these are not found. */
static const char *text_behind(Session *s, const char *in) {
    char *to = is_link(in) ? realpath(in, NULL) : NULL;
    char *here = to ? realpath(path_dir(s->arena, in), NULL) : NULL;
    bool near = here && strcmp(path_dir(s->arena, to), here) == 0;
    const char *text = in;
    if (near)
        text = arena_strf(s->arena, "%.*s%s", (int)(path_base(in) - in), in, path_base(to)).s;
    else if (here)
        text = NULL;
    if (!text)
        diag_error(s->d, LOC_NONE,
                   "-in-place: %s is a link into another folder, from which its files would not be "
                   "found: give %s",
                   diag_name(s->d, str_from(in)), diag_name(s->d, str_from(to)));
    free(here);
    free(to);
    return text;
}

bool in_place_settle(Session *s) {
    Options *o = &s->o;
    if (!o->in_place || !o->inputs.n)
        return true;
    const char *in = o->inputs.items[0];
    if (strcmp(in, "-") == 0)
        return diag_error(s->d, LOC_NONE,
                          "-in-place writes over the file that is read: standard input is none");
    if (o->output && !same_file(o->output, in))
        return diag_error(s->d, LOC_NONE,
                          "-in-place writes %s, and -o names another file: give one of the two",
                          diag_name(s->d, str_from(in)));
    o->output = text_behind(s, in);
    return o->output;
}

bool in_place_replaces(const Session *s, const FileMap *f) {
    struct stat st;
    const struct stat *of = file_stat(f);
    return s->o.in_place && of && stat(s->o.inputs.items[0], &st) == 0 && st.st_dev == of->st_dev &&
           st.st_ino == of->st_ino;
}

bool in_place_fits(const Session *s) {
    return !s->o.in_place || s->is_text ||
           diag_error(s->d, LOC_NONE,
                      "-in-place writes .qir, and %s is ONNX: -o FILE.qir writes a text",
                      diag_name(s->d, str_from(s->o.inputs.items[0])));
}

bool in_place_loses_nothing(Session *s) {
    const char *path = s->o.inputs.n ? s->o.inputs.items[0] : "";
    Str text;
    if (!s->o.in_place || s->o.drop_comments || !s->o.inputs.n || !session_input_is_text(s))
        return true;
    if (!file_text(s->arena, path, LOC_NONE, s->d, &text))
        return false;
    size_t n = qir_comments(s->arena, text);
    return !n || diag_error(s->d, LOC_NONE,
                            "-in-place would lose %zu comment%s of %s: -o FILE.qir writes another "
                            "file, and -drop-comments lets them go",
                            n, plural((int64_t)n), diag_name(s->d, str_from(path)));
}

void in_place_tell_left(const Session *s, const Module *m) {
    for (size_t i = 0; s->o.in_place && i < m->n_blobs; i++) {
        Str name = m->blobs[i].path;
        const char *path =
            arena_strf(s->arena, "%s/" STR_FMT, path_dir(s->arena, s->o.output), STR_ARG(name)).s;
        if (!memchr(name.s, '/', name.n) && same_file(path, path) && !file_is_named(s->out, path))
            diag_note(s->d, LOC_NONE, "'%s' stays, and no .qir or .onnx of its folder names it now",
                      diag_name(s->d, name));
    }
}

const char *in_place_functions(const Session *s, const Module *m) {
    if (!s->o.in_place || !m->n_functions)
        return NULL;
    const Function *f = m->functions[0];
    return arena_strf(s->arena, "%s::%s%s", diag_name(s->d, f->domain), diag_name(s->d, f->name),
                      arena_others(s->arena, " and ", m->n_functions - 1, ""))
        .s;
}

void in_place_tell_functions(const Session *s, const Module *m, const char *functions) {
    if (functions && !m->n_functions)
        diag_note(s->d, LOC_NONE,
                  "-in-place: func %s goes, and its calls are replaced by what it holds, which is "
                  "what types are decided of",
                  functions);
}
