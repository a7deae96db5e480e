#include "compiler/in_place.h"

#include <sys/stat.h>

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
    o->output = in;
    return true;
}

/* Comments stand behind `//`, outside of strings. */
static size_t comments_in(Str text) {
    size_t n = 0;
    bool string = false;
    for (size_t i = 0; i + 1 < text.n; i++) {
        if (string && text.s[i] == '\\')
            i++;
        else if (text.s[i] == '"')
            string = !string;
        else if (text.s[i] == '\n')
            string = false;
        else if (!string && text.s[i] == '/' && text.s[i + 1] == '/') {
            n++;
            while (i + 1 < text.n && text.s[i + 1] != '\n')
                i++;
        }
    }
    return n;
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
    size_t n = comments_in(text);
    return !n || diag_error(s->d, LOC_NONE,
                            "-in-place would lose %zu comment%s of %s: -o FILE.qir writes another "
                            "file, and -drop-comments lets them go",
                            n, plural((int64_t)n), diag_name(s->d, str_from(path)));
}
