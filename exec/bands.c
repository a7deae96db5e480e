/* See exec/bands.h. The call at which most memory is in use is taken with its neighbours into the
 * bands that need least, and so on until it resists. Then bands are made fewer again, as far as
 * that costs nothing: where memory is short is only known in the end. */
#include "exec/bands.h"
#include "exec/memory.h"
#include "exec/place.h"
#include "program/bands.h"

enum { MOST_BANDS = 128, WORTH = 8 };

typedef struct Search {
    const Program *program;
    bool chains;
    const bool *joins;   /* by call */
    const size_t *whole; /* by call: bytes in use without bands */
    size_t *now;         /* with the groups so far */
    Banding *groups;     /* by their first call; n 0: none begins there */
} Search;

/* ---- one group ---- */

static size_t room(const Program *p, int root) {
    return root < 0 ? 0 : plan_aligned(memory_bytes(&p->buffers[root]), BUFFER_ALIGN);
}

/* The least scratch of a call. */
static size_t scratch_of(const Program *p, const Call *c) {
    size_t bytes = 0;
    for (int i = 0; i < c->n_args; i++) {
        const Buffer *b = c->args[i] < 0 ? NULL : &p->buffers[c->args[i]];
        if (b && b->scratch)
            bytes += plan_aligned(c->growth.step && c->growth.buffer == c->args[i] ? c->growth.least
                                                                                   : b->bytes,
                                  BUFFER_ALIGN);
    }
    return bytes;
}

/* What is alive beside the group, its operand and its result. Whatever is so at its first call is
 * so at all. */
static size_t others(const Program *p, const Banding *g, int x, int y) {
    const Call *first = &p->calls[g->first];
    int m = bands_result(p, first);
    size_t bytes = 0;
    for (size_t i = 0; i < p->n_buffers; i++) {
        const Buffer *b = &p->buffers[i];
        if (b->first >= 0 && b->first <= (int)g->first && b->last >= (int)g->first && !b->scratch &&
            (int)i != x && (int)i != y && (int)i != m)
            bytes += room(p, (int)i);
    }
    return bytes;
}

/* The bytes in use while the group runs. */
static size_t need(const Search *s, const Banding *g, const BandSizes *sizes) {
    const Program *p = s->program;
    const Call *first = &p->calls[g->first], *last = first + g->n - 1;
    int x = memory_root(p, first->args[0]), y = memory_root(p, last->args[call_output(p, last)]);
    size_t scratch = 0, saved = 0;
    for (size_t i = 0; i < g->n; i++) {
        size_t own = scratch_of(p, &first[i]);
        scratch = own > scratch ? own : scratch;
    }
    PlanOverlay o = {.lead = sizes->lead};
    if (x >= 0 && y >= 0 && p->buffers[x].last == (int)g->first &&
        p->buffers[y].first == (int)(g->first + g->n - 1))
        saved = plan_saving(memory_bytes(&p->buffers[x]), memory_bytes(&p->buffers[y]), &o,
                            BUFFER_ALIGN);
    return others(p, g, x, y) + room(p, x) + room(p, y) + sizes->between + scratch - saved;
}

/* Rows in a band that make `bands` of them. */
static int32_t rows_for(int32_t height, int32_t bands) {
    return (height + bands - 1) / bands;
}

/* The fewest bands, of each image, with which the group needs `enough` bytes at most, or else those
 * with which it needs least: sets the rows, returns the bytes. SIZE_MAX: it cannot be in bands. */
static size_t choose_rows(const Search *s, Banding *g, size_t enough) {
    int32_t height = bands_height(s->program, g), most = height < MOST_BANDS ? height : MOST_BANDS;
    size_t best = SIZE_MAX;
    Banding tried = *g;
    for (int32_t bands = 1; bands <= most && best > enough; bands++) {
        BandSizes sizes;
        tried.rows = rows_for(height, bands);
        if (bands > 1 && tried.rows == rows_for(height, bands - 1))
            continue;
        if (!bands_measure(s->program, &tried, &sizes) || sizes.n_bands < 2 ||
            sizes.n_bands > MOST_BANDS)
            continue;
        size_t bytes = need(s, &tried, &sizes);
        if (bytes < best) {
            best = bytes;
            *g = tried;
        }
    }
    return best;
}

/* ---- which groups ---- */

/* A Conv, what maps its elements alone, and a pool; in chains whatever has rows. */
static bool may_be(const Search *s, const Banding *g) {
    const Call *calls = &s->program->calls[g->first];
    if (!bands_windows(&calls[0]))
        return false;
    for (size_t i = 1; i + 1 < g->n && !s->chains; i++)
        if (bands_windows(&calls[i]))
            return false;
    const Call *last = &calls[g->n - 1];
    return s->chains || (bands_windows(last) && !bands_weighs(last));
}

/* What is in use at most in calls beside the group, of those from `from` to the one before `to`. */
static size_t rest(const Search *s, size_t from, size_t to, const Banding *g) {
    size_t most = 0;
    for (size_t c = from; c < to; c++) {
        bool inside = c >= g->first && c < g->first + g->n;
        size_t bytes = s->now[c];
        most = !inside && bytes > most ? bytes : most;
    }
    return most;
}

/* Another group is inside of this one, or beside it. */
static bool crosses(const Search *s, const Banding *g) {
    for (size_t c = 0; c < s->program->n_calls; c++) {
        const Banding *other = &s->groups[c];
        size_t end = c + other->n, own = g->first + g->n;
        bool apart = end <= g->first || c >= own, inside = c >= g->first && end <= own;
        if (other->n && !apart && !inside)
            return true;
    }
    return false;
}

/* The group around a call with which those that it is joined to need least, itself included: what
 * it needs, SIZE_MAX where none is better than now. */
static size_t best_around(const Search *s, size_t call, Banding *best) {
    size_t from = call, to = call + 1, least = SIZE_MAX, bytes = SIZE_MAX;
    while (from > 0 && s->joins[from - 1])
        from--;
    while (s->joins[to - 1])
        to++;
    for (size_t first = from; first <= call; first++)
        for (size_t end = call + 1; end <= to; end++) {
            Banding g = {.first = first, .n = end - first};
            if (g.n < 2 || !may_be(s, &g) || crosses(s, &g))
                continue;
            size_t own = choose_rows(s, &g, 0), beside = rest(s, from, to, &g);
            size_t both = own > beside ? own : beside;
            if (own < s->now[call] && (both < least || (both == least && own < bytes))) {
                least = both;
                bytes = own;
                *best = g;
            }
        }
    return bytes;
}

static void take(Search *s, const Banding *g, size_t bytes) {
    for (size_t c = g->first; c < g->first + g->n; c++) {
        s->groups[c].n = 0;
        s->now[c] = bytes;
    }
    s->groups[g->first] = *g;
}

static size_t peak_of(const size_t *bytes, size_t n) {
    size_t peak = 0;
    for (size_t c = 1; c < n; c++)
        peak = bytes[c] > bytes[peak] ? c : peak;
    return peak;
}

/* As far down as it goes. */
static void descend(Search *s, size_t enough) {
    size_t n = s->program->n_calls;
    for (;;) {
        size_t peak = peak_of(s->now, n);
        Banding g;
        size_t bytes = s->now[peak] <= enough ? SIZE_MAX : best_around(s, peak, &g);
        if (bytes == SIZE_MAX)
            return;
        take(s, &g, bytes);
    }
}

/* Groups that nothing needs go, and those that stay have as few bands as `enough` bytes allow. */
static void relax(Search *s, size_t enough) {
    for (size_t c = 0; c < s->program->n_calls; c++) {
        Banding *g = &s->groups[c];
        size_t most = 0;
        for (size_t k = c; k < c + g->n; k++)
            most = s->whole[k] > most ? s->whole[k] : most;
        if (g->n && most <= enough)
            g->n = 0;
        else if (g->n)
            choose_rows(s, g, enough);
    }
}

void program_band(Arena *a, Program *p, bool chains, size_t enough) {
    size_t n = p->n_calls, found = 0;
    if (n < 2 || p->n_bounds)
        return;
    Arena *own = arena_new(0, arena_handler(a));
    Search s = {.program = p,
                .chains = chains,
                .joins = bands_joins(own, p),
                .whole = program_loads(own, p),
                .groups = NEW_ARRAY(own, Banding, n)};
    s.now = arena_copy(own, s.whole, n * sizeof *s.now);
    size_t before = s.whole[peak_of(s.whole, n)];
    descend(&s, enough);
    size_t after = s.now[peak_of(s.now, n)];
    if (after < before && (chains || after <= before - before / WORTH)) {
        relax(&s, after > enough ? after : enough);
        for (size_t c = 0; c < n; c++)
            if (s.groups[c].n)
                s.groups[found++] = s.groups[c];
        bands_make(a, p, s.groups, found);
        p->arena_alive = program_alive(own, p);
    }
    arena_free(own);
}
