/* Long statements in several lines. `qxc fmt` would leave them as they are. */
#include "backend/qir/print.h"

enum { DEEPEST = 64 };

typedef struct Wrap {
    Printer *printer;
    int indent[DEEPEST]; /* of the line on which each open bracket stands, in blanks */
    char open[DEEPEST];
    int depth, line; /* brackets; how the current line is indented */
    size_t line_begin;
} Wrap;

size_t print_column(const Printer *p) {
    size_t i = p->b.n;
    while (i > 0 && p->b.p[i - 1] != '\n')
        i--;
    return p->b.n - i;
}

static size_t string_end(Str s, size_t i) {
    for (i++; i < s.n && s.s[i] != '"'; i++)
        i += s.s[i] == '\\';
    return i + 1 < s.n ? i + 1 : s.n;
}

/* The end of what is not parted, from i on: behind the next comma and its blank within brackets. */
static size_t part_end(Wrap *w, Str s, size_t i) {
    while (i < s.n) {
        char c = s.s[i];
        if (c == '"') {
            i = string_end(s, i);
            continue;
        }
        bool arrow = c == '>' && i > 0 && s.s[i - 1] == '-';
        if ((c == '(' || c == '[' || c == '<') && w->depth < DEEPEST) {
            w->indent[w->depth] = w->line;
            w->open[w->depth++] = c;
        } else if ((c == ')' || c == ']' || (c == '>' && !arrow)) && w->depth > 0) {
            w->depth--;
        }
        i++;
        if (c == ',' && w->depth > 0 && i < s.n && s.s[i] == ' ')
            return i + 1;
    }
    return s.n;
}

static void new_line(Wrap *w) {
    Buf *b = &w->printer->b;
    int inner = w->depth - 1;
    w->line = w->indent[inner] + (w->open[inner] == '[' ? 6 : 4);
    b->n -= b->n > 0 && b->p[b->n - 1] == ' ';
    buf_byte(b, '\n');
    w->line_begin = b->n;
    for (int i = 0; i < w->line; i++)
        buf_byte(b, ' ');
}

size_t print_place(const Printer *p) {
    return p->flushed + p->b.n;
}

void end_wrapped(Printer *p, size_t place) {
    if (place < p->flushed) { /* a list of many lines */
        buf_byte(&p->b, '\n');
        print_flush(p);
        return;
    }
    size_t begin = place - p->flushed;
    Str s = {arena_copy(p->arena, p->b.p + begin, p->b.n - begin), p->b.n - begin};
    if (s.n > MOST_COLUMNS && !memchr(s.s, '\n', s.n)) {
        Wrap *w = NEW(p->arena, Wrap);
        w->printer = p;
        while ((size_t)w->line < s.n && s.s[w->line] == ' ')
            w->line++;
        p->b.n = w->line_begin = begin;
        for (size_t i = 0, end; i < s.n; i = end) {
            Wrap before = *w;
            end = part_end(w, s, i);
            size_t width = end - i - (end < s.n);
            if (i > 0 && p->b.n - w->line_begin + width > MOST_COLUMNS) {
                *w = before;
                new_line(w);
                end = part_end(w, s, i);
            }
            buf_put(&p->b, s.s + i, end - i);
        }
    }
    buf_byte(&p->b, '\n');
    print_flush(p);
}
