#include <stdlib.h>

#include "compiler/max_arena.h"
#include "exec/bounded.h"
#include "program/bands.h"

/* ---- where most is alive ---- */

static bool alive_at(const Buffer *b, size_t step) {
    return b->kind == BUF_ARENA && b->alias < 0 && b->bytes && b->first >= 0 &&
           b->first <= (int)step && b->last >= (int)step;
}

static int by_offset(const void *x, const void *y) {
    const Buffer *const *a = x, *const *b = y;
    if ((*a)->offset != (*b)->offset)
        return (*a)->offset < (*b)->offset ? -1 : 1;
    return (*a)->bytes<(*b)->bytes ? -1 : (*a)->bytes>(*b)->bytes;
}

/* The buffers of a step, lowest first. */
typedef struct Alive {
    const Buffer **items;
    size_t n, cap;
    size_t bytes; /* of the arena that they cover: results may lie over operands */
} Alive;

static Alive alive_in(const Program *p, size_t step) {
    Arena *a = p->module->arena;
    Alive alive = {0};
    size_t end = 0;
    for (size_t i = 0; i < p->n_buffers; i++)
        if (alive_at(&p->buffers[i], step))
            ARENA_PUSH(a, alive.items, alive.n, alive.cap, &p->buffers[i]);
    if (alive.n)
        qsort(alive.items, alive.n, sizeof *alive.items, by_offset);
    for (size_t i = 0; i < alive.n; i++) {
        size_t from = alive.items[i]->offset, to = from + alive.items[i]->bytes;
        from = from > end ? from : end;
        alive.bytes += to > from ? to - from : 0;
        end = to > end ? to : end;
    }
    return alive;
}

static size_t peak_of(const Program *p) {
    size_t peak = 0, most = 0;
    for (size_t c = 0; c < p->n_calls; c++) {
        size_t bytes = alive_in(p, c).bytes;
        if (bytes > most) {
            most = bytes;
            peak = c;
        }
    }
    return peak;
}

/* ---- the error ---- */

enum { MOST_NAMED = 6 };

static void tell_buffers(const Alive *alive, Diags *d) {
    for (size_t i = 0; i < alive->n && i < MOST_NAMED; i++) {
        const Buffer *b = alive->items[i];
        const char *what = b->value ? diag_name(d, b->value->name) : "working memory";
        diag(d, DIAG_NOTE, b->value ? b->value->loc : LOC_NONE, "bytes %zu to %zu: %s", b->offset,
             b->offset + b->bytes, what);
    }
    if (alive->n > MOST_NAMED)
        diag(d, DIAG_NOTE, LOC_NONE, "and %zu others", alive->n - MOST_NAMED);
}

static void tell_too_large(const Program *p, const Program *first, size_t bytes, Diags *d) {
    size_t step = peak_of(p);
    Alive alive = alive_in(p, step);
    const Node *n = p->calls[step].node;
    bool less = p->arena_bytes < first->arena_bytes;
    diag_error(
        d, n ? n->loc : LOC_NONE,
        "-max-arena=%zu: the arena has %zu bytes%s; most of it is in use at step %zu of %zu, "
        "%s: %zu bytes",
        bytes, p->arena_bytes, less ? " with the slower ways that take less" : "", step + 1,
        p->n_calls, n ? node_text(n) : "a conversion", alive.bytes);
    tell_buffers(&alive, d);
}

/* ---- ways with less ---- */

/* What costs least comes first, and what was asked for goes last. False where there is no further
 * one. */
static bool next_way(ProgramOptions *o, size_t bytes) {
    if (o->bands != BANDS_CHAINS) {
        o->bands = BANDS_CHAINS;
        o->enough_arena = bytes;
    } else if (o->enough_arena) { /* it was counted, and what is laid out may take more */
        o->enough_arena = 0;
    } else if (!o->least_scratch) {
        o->least_scratch = true;
    } else if (o->threads > 1) {
        o->threads /= 2;
    } else {
        return false;
    }
    return true;
}

static void tell_way(const Program *first, const Program *p, int threads, const ProgramOptions *o,
                     Diags *d) {
    diag(d, DIAG_NOTE, LOC_NONE, "-max-arena: %zu bytes in place of %zu, as %s", p->arena_bytes,
         first->arena_bytes,
         o->least_scratch ? "kernels take the least memory that they can do with, which is slower"
         : program_bands(p).calls
             ? "more steps run in bands of rows"
             : "kernels take less memory than they could use, which may be slower");
    if (o->threads != threads)
        diag(d, DIAG_NOTE, LOC_NONE, "-max-arena: steps fall into parts for %d thread%s, not %d",
             o->threads, o->threads == 1 ? "" : "s", threads);
}

Program *fit_arena(Module *m, Program *p, ProgramOptions *o, size_t bytes, Diags *d) {
    Program *first = p, *best = p;
    int threads = o->threads;
    ProgramOptions asked = *o;
    while (p->arena_bytes > bytes && !first->n_bounds && next_way(&asked, bytes)) {
        p = program_build_bounded(m, &asked, d);
        if (!p)
            return NULL;
        best = p->arena_bytes < best->arena_bytes ? p : best;
    }
    if (p->arena_bytes > bytes) {
        tell_too_large(best, first, bytes, d);
        return NULL;
    }
    *o = asked;
    if (p != first)
        tell_way(first, p, threads, o, d);
    return p;
}
