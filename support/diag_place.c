/* Where a message points: sources, their lines, and parts of what stands in them. */
#include "support/diag_parts.h"

uint32_t diags_source(Diags *d, const char *name, Str text) {
    return diags_source_part(d, name, text, 1);
}

uint32_t diags_source_part(Diags *d, const char *name, Str text, int first_line) {
    Source s = {arena_str(d->arena, str_from(name)).s, text, first_line, 0, first_line};
    ARENA_PUSH(d->arena, d->sources, d->n_sources, d->cap_sources, s);
    return (uint32_t)d->n_sources;
}

static Source *source_of(const Diags *d, uint32_t source) {
    return source && source <= d->n_sources ? &d->sources[source - 1] : NULL;
}

const char *diags_source_name(const Diags *d, uint32_t source) {
    const Source *s = source_of(d, source);
    return s ? s->name : NULL;
}

/* The line that holds `offset`: where it begins, and its number. */
static size_t find_line(Source *s, size_t offset, int *number) {
    size_t begin = s->seen_begin;
    int line = s->seen_line;
    if (offset < begin) {
        begin = 0;
        line = s->first_line;
    }
    const char *nl;
    while (begin < offset && (nl = memchr(s->text.s + begin, '\n', offset - begin))) {
        begin = (size_t)(nl - s->text.s) + 1;
        line++;
    }
    s->seen_begin = begin;
    s->seen_line = line;
    *number = line;
    return begin;
}

int diags_line(Diags *d, Loc at) {
    int line = 0;
    if (at.source && at.end && d->sources[at.source - 1].text.s)
        find_line(&d->sources[at.source - 1], at.begin, &line);
    return line;
}

Message diag_message(Diags *d, Severity sev, Loc at) {
    const char *file = diags_source_name(d, at.source);
    Loc shown = at; /* in text */
    if (at.what && d->show && !d->recording)
        shown = d->show(d->show_ctx, at);
    Source *s = source_of(d, shown.source);
    if (at.what && at.what->part && s && s->text.s && d->find)
        d->find(d->arena, s->text, at.what->part, &shown);
    Message m = {.severity = sev,
                 .file = file ? file : "qxc",
                 .place = at.what,
                 .shows = d->show_words,
                 .source = s ? s->text : STR_NONE,
                 .begin = shown.begin,
                 .end = shown.end};
    if (!m.source.s)
        return m;
    if (m.begin > m.source.n)
        m.begin = m.source.n;
    if (m.end > m.source.n)
        m.end = m.source.n;
    m.line_begin = find_line(s, m.begin, &m.line);
    m.column = (int)(m.begin - m.line_begin) + 1;
    return m;
}

void diags_show(Diags *d, DiagShow *show, void *ctx, const char *words) {
    d->show = show;
    d->show_ctx = ctx;
    d->show_words = words;
}

void diags_find_parts(Diags *d, DiagFindPart *find) {
    d->find = find;
}

Loc diag_part(Diags *d, Loc at, DiagPart part) {
    const Source *s = source_of(d, at.source);
    if (!d->find || diag_past_limit(d, d->errors + 1)) /* will not be printed */
        return at;
    if (at.what) { /* the text that shows it is made when the message is printed */
        Place *place = arena_copy(d->arena, at.what, sizeof *at.what);
        place->part = arena_copy(d->arena, &part, sizeof part);
        at.what = place;
    } else if (s && s->text.s) {
        d->find(d->arena, s->text, &part, &at);
    }
    return at;
}
