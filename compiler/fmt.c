/* qxc fmt FILE...: each file in place, if it changes; standard input to standard output. */
#include "compiler/expect.h"
#include "frontend/qir/qir_format.h"
#include "frontend/qir/qir_read.h"

static ExitCode write_back(Session *s, const char *path, Str text) {
    s->out = out_new(s->arena, s->d, !s->o.no_sync);
    FILE *f = out_open(s->out, path);
    if (!f)
        return EXIT_IO;
    fwrite(text.s, 1, text.n, f);
    return out_commit(s->out) ? EXIT_DONE : EXIT_IO;
}

/* As many as there were, but one at most. */
static void keep_blank_line(Buf *b, Str before) {
    size_t n = before.n, lines = 0;
    while (n && strchr(" \t\r\n", before.s[n - 1]))
        lines += before.s[--n] == '\n';
    if (lines > 1)
        buf_byte(b, '\n');
}

/* Appends the input as it is to stand. */
static bool format_input(Session *s, const char *path, const Input *in, Buf *b) {
    Arena *a = session_arena(s, in->text.n);
    Str formatted;
    bool ok = qir_format(a, s->d, path, in->text, in->line, &formatted);
    if (ok)
        buf_str(b, formatted);
    arena_free(a);
    return ok;
}

/* Each input of a text of several, as -split-input-file takes it apart. */
static bool format_inputs(Session *s, const char *path, Str text, Buf *b) {
    bool ok = true;
    for (Input in = {0}; input_next(text, &in);) {
        ok = format_input(s, path, &in, b) && ok;
        if (in.end < text.n)
            keep_blank_line(b, (Str){text.s, in.end});
    }
    return ok;
}

/* `// -----` may also be an ornament of comments. */
static bool holds_several(Str text) {
    size_t n = 0;
    for (Input in = {0}; input_next(text, &in); n++)
        if (!qir_begins(in.text, NULL))
            return false;
    return n > 1;
}

/* Line ends are those of the first line. */
static Str keep_line_ends(Arena *a, Str before, Str text) {
    const char *end = memchr(before.s, '\n', before.n);
    if (!end || end == before.s || end[-1] != '\r')
        return text;
    Buf b = buf_new(a);
    for (size_t i = 0; i < text.n; i++) {
        if (text.s[i] == '\n' && (i == 0 || text.s[i - 1] != '\r'))
            buf_byte(&b, '\r');
        buf_byte(&b, text.s[i]);
    }
    return buf_as_str(&b);
}

static ExitCode format_file(Session *s, const char *path) {
    Str text;
    if (!file_text(s->arena, path, LOC_NONE, s->d, &text))
        return EXIT_IO;
    Buf b = buf_new(s->arena);
    Input whole = {.text = text, .line = 1};
    if (!(holds_several(text) ? format_inputs(s, path, text, &b)
                              : format_input(s, path, &whole, &b)))
        return EXIT_WRONG;
    Str formatted = keep_line_ends(s->arena, text, buf_as_str(&b));
    if (s->o.check && !str_eq(text, formatted)) {
        diag_error(s->d, LOC_NONE, "%s is laid out otherwise: qxc fmt %s lays it out",
                   diag_name(s->d, str_from(path)), diag_name(s->d, str_from(path)));
        return EXIT_WRONG;
    }
    if (s->o.check)
        return EXIT_DONE;
    if (strcmp(path, "-") == 0)
        fwrite(formatted.s, 1, formatted.n, stdout);
    else if (!str_eq(text, formatted))
        return write_back(s, path, formatted);
    return EXIT_DONE;
}

/* A file with an error does not keep the others from being formatted. */
ExitCode cmd_fmt(Session *s) {
    ExitCode worst = EXIT_DONE;
    for (size_t i = 0; i < s->o.inputs.n; i++) {
        ExitCode code = format_file(s, s->o.inputs.items[i]);
        worst = code > worst ? code : worst;
    }
    return worst;
}
