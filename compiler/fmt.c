/* qxc fmt FILE...: each file in place, if it changes; standard input to standard output. */
#include "compiler/expect.h"
#include "frontend/qir/qir_format.h"

static ExitCode write_back(Session *s, const char *path, Str text) {
    s->out = out_new(s->arena, s->d);
    FILE *f = out_open(s->out, path);
    if (!f)
        return EXIT_IO;
    fwrite(text.s, 1, text.n, f);
    return out_commit(s->out, !s->o.no_sync) ? EXIT_DONE : EXIT_IO;
}

/* As many as there were, but one at most. */
static void keep_blank_line(Buf *b, Str before) {
    size_t n = before.n, lines = 0;
    while (n && strchr(" \t\r\n", before.s[n - 1]))
        lines += before.s[--n] == '\n';
    if (lines > 1)
        buf_byte(b, '\n');
}

/* Each input of a text of several, as -split-input-file takes it apart. */
static bool format_inputs(Session *s, const char *path, Str text, Str *out) {
    Buf b = buf_new(s->arena);
    bool ok = true;
    for (size_t begin = 0, end; begin < text.n; begin = end) {
        Str formatted;
        end = input_end(text, begin);
        if (qir_format(s->arena, s->d, path, input_at(s->arena, text, begin, end), &formatted))
            buf_str(&b, formatted);
        else
            ok = false;
        if (end < text.n)
            keep_blank_line(&b, (Str){text.s, end});
    }
    *out = buf_as_str(&b);
    return ok;
}

/* Whether the word qir comes next, behind comments. */
static bool begins_input(Str text) {
    size_t i = 0;
    while (i < text.n && (strchr(" \t\r\n", text.s[i]) || text.s[i] == '/'))
        if (text.s[i++] == '/')
            while (i < text.n && text.s[i] != '\n')
                i++;
    return text.n - i > 3 && memcmp(text.s + i, "qir", 3) == 0;
}

/* `// -----` may also be an ornament of comments. */
static bool holds_several(Str text) {
    size_t begin = 0, end, n = 0;
    for (; begin < text.n; begin = end, n++) {
        end = input_end(text, begin);
        if (!begins_input((Str){text.s + begin, end - begin}))
            return false;
    }
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
    Str text, formatted;
    if (!file_text(s->arena, path, LOC_NONE, s->d, &text))
        return EXIT_IO;
    bool ok = holds_several(text) ? format_inputs(s, path, text, &formatted)
                                  : qir_format(s->arena, s->d, path, text, &formatted);
    if (!ok)
        return EXIT_WRONG;
    formatted = keep_line_ends(s->arena, text, formatted);
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
        worst = worst == EXIT_DONE ? code : worst;
    }
    return worst;
}
