#include "support/progress.h"

#include "support/buf.h"

enum { DEEPEST = 6, NO_LEVEL = DEEPEST };

static const double SILENT = 2, BETWEEN = 0.2, TOO_EARLY = 0.01; /* seconds, seconds, a part of 1 */

typedef struct Level {
    const char *what;
    size_t done, total;
    size_t shown; /* what the line said is done */
    double began;
} Level;

struct Progress {
    FILE *out;
    int columns;
    double (*clock)(void);
    double printed; /* when something was, or the run began */
    double drawn;   /* when the line was */
    size_t width;   /* of the line that stands there; 0: none does */
    Level levels[DEEPEST];
    size_t depth;
    Buf line;
};

Progress *progress_new(Arena *a, FILE *out, int columns, double (*clock)(void)) {
    Progress *p = NEW(a, Progress);
    *p = (Progress){.out = out, .columns = columns, .clock = clock, .printed = clock()};
    p->line = buf_new(a);
    return p;
}

/* How much of the level is done, from 0 to 1, with what is done within its step. */
static double part_done(const Progress *p, size_t level) {
    double within = 0;
    for (size_t i = p->depth; i-- > level;) {
        const Level *l = &p->levels[i];
        if (l->total)
            within = ((double)l->done + within) / (double)l->total;
    }
    return within < 1 ? within : 1;
}

/* The outermost level that is counted knows how long all will take. */
static void put_left(Progress *p, double now) {
    size_t i = 0;
    while (i < p->depth && !p->levels[i].total)
        i++;
    double part = i < p->depth ? part_done(p, i) : 0;
    if (part < TOO_EARLY)
        return;
    double left = (now - p->levels[i].began) * (1 - part) / part;
    long long s = (long long)left + 1;
    if (s < 3600)
        buf_fmt(&p->line, ", %lld:%02lld left", s / 60, s % 60);
    else
        buf_fmt(&p->line, ", %lld:%02lld h left", s / 3600, s % 3600 / 60);
}

/* What is within steps that pass by faster than they can be read is left out. */
static void put_levels(Progress *p) {
    bool fast = false;
    for (size_t i = 0; i < p->depth && !fast; i++) {
        Level *l = &p->levels[i];
        buf_fmt(&p->line, "%s%s", i ? ": " : "", l->what);
        if (l->total)
            buf_fmt(&p->line, " %zu of %zu", l->done < l->total ? l->done + 1 : l->total, l->total);
        else if (l->done)
            buf_fmt(&p->line, " %zu", l->done + 1);
        fast = l->done > l->shown + 1;
        l->shown = l->done;
    }
}

/* The cursor goes back to the start, so that whatever comes next stands there. */
static void draw(Progress *p, double now) {
    Buf *b = &p->line;
    b->n = 0;
    buf_byte(b, '\r');
    put_levels(p);
    put_left(p, now);
    size_t most = p->columns > 1 ? (size_t)p->columns - 1 : 1;
    if (b->n > most + 1)
        b->n = most + 1;
    size_t width = b->n - 1;
    for (size_t i = width; i < p->width; i++)
        buf_byte(b, ' ');
    buf_byte(b, '\r');
    fwrite(b->p, 1, b->n, p->out);
    fflush(p->out);
    p->width = width;
    p->drawn = now;
}

static void look(Progress *p) {
    double now = p->clock();
    if (now - p->printed >= SILENT && now - p->drawn >= BETWEEN)
        draw(p, now);
}

static void take_away(Progress *p) {
    Buf *b = &p->line;
    if (!p->width)
        return;
    b->n = 0;
    buf_byte(b, '\r');
    for (size_t i = 0; i < p->width; i++)
        buf_byte(b, ' ');
    buf_byte(b, '\r');
    fwrite(b->p, 1, b->n, p->out);
    fflush(p->out);
    p->width = 0;
}

size_t progress_begin(Progress *p, const char *what, size_t total) {
    if (!p || p->depth == DEEPEST)
        return NO_LEVEL;
    for (size_t i = 0; i < p->depth; i++)
        if (strcmp(p->levels[i].what, what) == 0)
            return NO_LEVEL;
    p->levels[p->depth] = (Level){.what = what, .total = total, .began = p->clock()};
    return p->depth++;
}

void progress_step(Progress *p, size_t level, size_t done) {
    if (!p || level >= p->depth)
        return;
    p->levels[level].done = done;
    look(p);
}

void progress_end(Progress *p, size_t level) {
    if (!p || level >= p->depth)
        return;
    p->depth = level;
    if (!level)
        take_away(p);
}

void progress_clear(Progress *p) {
    if (!p)
        return;
    take_away(p);
    p->printed = p->clock();
}
