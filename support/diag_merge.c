#include "support/diag_merge.h"

#include "support/map.h"

#include <ctype.h>

enum { FEWEST_LETTERS = 12, FEW = 2 };

typedef struct Format { /* the first was printed */
    size_t waits;       /* since something else was printed */
} Format;

typedef struct Waiting {
    Format *format; /* NULL: it is printed in any case */
    Buf shown;      /* of the first few of it */
} Waiting;

struct Merger {
    Arena *arena;
    Map *formats;
    Waiting *waiting; /* the first few of each format, as they came */
    size_t n, cap, at;
};

Merger *merger_new(Arena *a) {
    Merger *m = NEW(a, Merger);
    *m = (Merger){.arena = a, .formats = map_new(a)};
    return m;
}

/* Behind a conversion: %s, %.4g, %zu, %%. */
static const char *skip_conversion(const char *p) {
    p += strspn(p, "-+ #0123456789.*");
    p += strspn(p, "hljztL");
    return *p ? p + 1 : p;
}

static bool has_words(const char *fmt) {
    size_t letters = 0;
    for (const char *p = fmt; *p;)
        if (*p == '%')
            p = skip_conversion(p + 1);
        else
            letters += isalpha((unsigned char)*p++) != 0;
    return letters >= FEWEST_LETTERS;
}

static Format *find(Merger *m, const char *fmt) {
    return map_get(m->formats, str_from(fmt));
}

MergeFate merger_ask(Merger *m, const char *fmt) {
    Format *f = find(m, fmt);
    if (!f && !has_words(fmt))
        return MERGE_ALONE;
    if (!f)
        return MERGE_FIRST;
    return f->waits++ < FEW ? MERGE_WAITS : MERGE_MANY;
}

void merger_keep(Merger *m, const char *fmt) {
    Format *f = NEW(m->arena, Format);
    *f = (Format){0};
    map_set(m->formats, arena_str(m->arena, str_from(fmt)), f);
}

static void wait(Merger *m, Format *f, Str shown) {
    Waiting w = {f, buf_new(m->arena)};
    buf_str(&w.shown, shown);
    ARENA_PUSH(m->arena, m->waiting, m->n, m->cap, w);
}

void merger_wait(Merger *m, const char *fmt, Str shown) {
    wait(m, find(m, fmt), shown);
}

bool merger_is_busy(const Merger *m) {
    return m->n > 0;
}

void merger_wait_first(Merger *m, Str shown) {
    wait(m, NULL, shown);
}

void merger_add(Merger *m, Str shown) {
    if (m->n)
        buf_str(&m->waiting[m->n - 1].shown, shown);
}

/* Of no place: it stands for many. */
static Message note_of(Merger *m, const Format *f) {
    return (Message){
        .severity = DIAG_NOTE,
        .file = "qxc",
        .text = arena_strf(m->arena, "and %zu more of this kind (-v shows them)", f->waits)};
}

bool merger_next(Merger *m, MergeNext *next) {
    while (m->at < m->n) {
        Waiting *w = &m->waiting[m->at++];
        Format *f = w->format;
        if (f && !f->waits) /* a note stood for it */
            continue;
        *next = (MergeNext){0};
        if (f && f->waits > FEW) {
            next->note = note_of(m, f);
            f->waits = 0;
        } else {
            next->shown = buf_as_str(&w->shown);
        }
        return true;
    }
    for (size_t i = 0; i < m->n; i++)
        if (m->waiting[i].format)
            m->waiting[i].format->waits = 0;
    m->n = m->at = 0;
    return false;
}
