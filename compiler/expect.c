#define _GNU_SOURCE
#include "compiler/expect.h"

#include "compiler/places.h"
typedef struct Expectation {
    Severity severity;
    int line; /* 0: @unknown */
    Str text;
    Loc at; /* of the comment */
    bool met;
} Expectation;

typedef struct Expectations {
    Expectation *items;
    size_t n, cap;
} Expectations;

static const char *const kinds[] = {
    [DIAG_NOTE] = "note",
    [DIAG_REMARK] = "remark",
    [DIAG_WARNING] = "warning",
    [DIAG_ERROR] = "error",
};

/* ---- reading the comments ---- */

static bool take(Str *s, const char *word) {
    size_t n = strlen(word);
    if (s->n < n || memcmp(s->s, word, n) != 0)
        return false;
    s->s += n;
    s->n -= n;
    return true;
}

/* "@+1", "@above", ...; what is absent is the comment's own line. */
static bool read_place(Str *s, int here, int *line) {
    *line = here;
    if (!take(s, "@"))
        return true;
    if (take(s, "unknown")) {
        *line = 0;
        return true;
    }
    if (take(s, "above") || take(s, "below")) {
        *line += s->s[-1] == 'w' ? 1 : -1;
        return true;
    }
    int sign = take(s, "+") ? 1 : take(s, "-") ? -1 : 0;
    int n = 0, digits = 0;
    for (; digits < 8 && s->n && s->s[0] >= '0' && s->s[0] <= '9'; digits++) {
        n = 10 * n + (s->s[0] - '0');
        s->s++;
        s->n--;
    }
    *line += sign * n;
    return sign && digits;
}

/* What follows "expected-"; false when it is written wrongly. */
static bool read_expectation(Str s, int here, Expectation *e) {
    size_t k = 0;
    while (k < sizeof kinds / sizeof *kinds && !take(&s, kinds[k]))
        k++;
    if (k == sizeof kinds / sizeof *kinds || !read_place(&s, here, &e->line))
        return false;
    e->severity = (Severity)k;
    while (take(&s, " "))
        ;
    const char *end = take(&s, "{{") ? memmem(s.s, s.n, "}}", 2) : NULL;
    if (end)
        e->text = (Str){s.s, (size_t)(end - s.s)};
    return end != NULL;
}

static void read_line(Session *s, uint32_t source, Str line, int number, Expectations *all) {
    static const char word[] = "expected-";
    const char *comment = memmem(line.s, line.n, "//", 2), *end = line.s + line.n;
    for (const char *p = comment; p && (p = memmem(p, (size_t)(end - p), word, strlen(word)));) {
        uint32_t begin = (uint32_t)(p - s->text.s);
        p += strlen(word);
        Expectation e = {.at = {source, begin, begin + (uint32_t)strlen(word), NULL}};
        if (read_expectation((Str){p, (size_t)(end - p)}, number, &e))
            ARENA_PUSH(s->arena, all->items, all->n, all->cap, e);
        else
            diag_error(s->d, e.at, "an expectation is written expected-error@+1 {{text}}");
    }
}

static Expectations read_expectations(Session *s, uint32_t source) {
    Expectations all = {0};
    int number = s->first_line;
    for (size_t i = 0; i < s->text.n; number++) {
        const char *p = s->text.s + i, *nl = memchr(p, '\n', s->text.n - i);
        size_t n = nl ? (size_t)(nl - p) : s->text.n - i;
        read_line(s, source, (Str){p, n}, number, &all);
        i += n + 1;
    }
    return all;
}

/* ---- comparing ---- */

static bool meets(const Expectation *e, const DiagRecord *r, int line) {
    return !e->met && e->severity == r->severity && e->line == line &&
           memmem(r->text, strlen(r->text), e->text.s, e->text.n);
}

/* Reports what differs through fresh diagnostics; true when nothing does. */
static bool compare(Session *s, const Diags *seen) {
    const char *path = s->o.inputs.items[0];
    uint32_t source = diags_source_part(s->d, path, s->text, s->first_line);
    Expectations all = read_expectations(s, source);
    const DiagRecord *r;
    size_t n = diags_records(seen, &r);
    for (size_t i = 0; i < n; i++) {
        const char *name = diags_source_name(seen, r[i].at.source);
        bool here = name && r[i].line && strcmp(name, path) == 0;
        size_t k = 0;
        while (k < all.n && !meets(&all.items[k], &r[i], here ? r[i].line : 0))
            k++;
        if (k < all.n)
            all.items[k].met = true;
        else
            diag_error(s->d, here ? (Loc){source, r[i].at.begin, r[i].at.end, NULL} : LOC_NONE,
                       "unexpected %s: %s", kinds[r[i].severity], r[i].text);
    }
    for (size_t k = 0; k < all.n; k++)
        if (!all.items[k].met)
            diag_error(s->d, all.items[k].at, "expected %s was not reported: %.*s",
                       kinds[all.items[k].severity], STR_ARG(all.items[k].text));
    return diags_errors(s->d) == 0;
}

/* ---- one input after the other ---- */

static size_t input_end(Str text, size_t at) {
    static const char mark[] = "\n// -----";
    size_t n = strlen(mark);
    for (const char *p = text.s + at, *end = text.s + text.n;
         (p = memmem(p, (size_t)(end - p), mark, n)); p += n) {
        const char *rest = p + n;
        while (rest < end && (*rest == '-' || *rest == ' ' || *rest == '\r'))
            rest++;
        if (rest == end || *rest == '\n')
            return (size_t)(p - text.s) + 1;
    }
    return text.n;
}

bool input_next(Str whole, Input *in) {
    if (in->line && in->end == whole.n)
        return false;
    in->line = in->line ? in->line : 1;
    for (size_t i = 0; i < in->text.n; i++)
        in->line += in->text.s[i] == '\n';
    size_t begin = in->end;
    in->end = input_end(whole, begin);
    in->text = (Str){whole.s + begin, in->end - begin};
    return true;
}

static ExitCode run_one(Session *s, ExitCode (*command)(Session *)) {
    Diags *outer = s->d;
    if (s->o.verify_diagnostics) {
        s->d = diags_new(s->arena, NULL, false);
        diags_quiet(s->d, s->o.quiet);
        diags_record(s->d, true);
        places_show(s);
    }
    ExitCode code = command(s);
    session_free_modules(s, 0);
    if (s->o.verify_diagnostics) {
        const Diags *seen = s->d;
        s->d = outer;
        code = compare(s, seen) ? EXIT_DONE : EXIT_WRONG;
    }
    return code;
}

ExitCode run_inputs(Session *s, ExitCode (*command)(Session *)) {
    if (s->o.split_input_file && (s->o.output || (s->o.emit && strcmp(s->o.emit, "qir") != 0))) {
        diag_error(s->d, LOC_NONE, "-split-input-file prints text on standard output");
        return EXIT_USAGE;
    }
    Str text;
    if (!file_text(s->arena, s->o.inputs.items[0], LOC_NONE, s->d, &text))
        return EXIT_IO;
    s->has_text = true;
    s->text = text;
    s->first_line = 1;
    if (!s->o.split_input_file)
        return run_one(s, command);
    ExitCode worst = EXIT_DONE;
    for (Input in = {0}; input_next(text, &in);) {
        s->text = in.text;
        s->first_line = in.line;
        if (in.line > 1)
            puts("// -----");
        ExitCode code = run_one(s, command);
        worst = worst == EXIT_DONE ? code : worst;
    }
    return worst;
}
