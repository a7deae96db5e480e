/* The exact search for a layout, by branch and bound. Items are placed in order of their offsets,
 * each as low as those before it let it: some smallest layout is made like that. Work is counted in
 * pairs of items looked at, never in time, so that results are the same everywhere. */
#include <stdlib.h>
#include <string.h>

#include "exec/place.h"

enum { MOST_ITEMS = 256, WORK = 1000000 };

typedef struct Choice {
    size_t offset, bytes;
    uint32_t item;
} Choice;

typedef struct Search {
    Layout *l;
    size_t bound, best, *offsets, n_steps;
    int64_t *rest; /* by step: bytes of the items to be placed, less what overlays can save there */
    bool *placed;  /* by item */
    Choice *choices; /* MOST_ITEMS for each depth */
    long work;
} Search;

static size_t size_of(const Search *s, uint32_t item) {
    return plan_aligned(s->l->plan->items[item].bytes, s->l->plan->align);
}

/* From `least` on. */
static size_t lowest(Search *s, uint32_t item, size_t least) {
    size_t n = layout_gaps(s->l, item);
    int64_t at = (int64_t)least;
    for (size_t i = 0; i < n; i++)
        if (at > s->l->gaps[i].low && at < s->l->gaps[i].high)
            at = s->l->gaps[i].high;
    return (size_t)at;
}

static int by_offset(const void *x, const void *y) {
    const Choice *a = x, *b = y;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* Items that may come next, the most promising first; 0 where no layout from here is smaller. An
 * item that fits wholly below another choice can as well come before it. */
static size_t choices(Search *s, size_t least, Choice *found) {
    size_t n = 0, end = SIZE_MAX, kept = 0;
    for (uint32_t i = 0; i < s->l->plan->n; i++) {
        if (s->placed[i])
            continue;
        Choice c = {lowest(s, i, least), size_of(s, i), i};
        s->work -= (long)(s->l->n_placed + 1);
        if (c.offset + c.bytes >= s->best)
            return 0;
        end = c.offset + c.bytes < end ? c.offset + c.bytes : end;
        found[n++] = c;
    }
    for (size_t i = 0; i < n; i++)
        if (found[i].offset < end || found[i].bytes == 0)
            found[kept++] = found[i];
    qsort(found, kept, sizeof *found, by_offset);
    return kept;
}

static bool hopeless(const Search *s, size_t least) {
    for (size_t t = 0; t < s->n_steps; t++)
        if ((int64_t)least + s->rest[t] >= (int64_t)s->best)
            return true;
    return false;
}

static void count(Search *s, uint32_t item, bool placed) {
    const PlanItem *it = &s->l->plan->items[item];
    for (int t = it->first; t <= it->last; t++)
        s->rest[t] += (placed ? -1 : 1) * (int64_t)size_of(s, item);
    s->placed[item] = placed;
}

static void keep(Search *s) {
    s->best = s->l->total;
    for (size_t i = 0; i < s->l->plan->n; i++)
        s->offsets[i] = s->l->plan->items[i].offset;
}

static void descend(Search *s, size_t depth, size_t least) {
    Choice *found = s->choices + depth * MOST_ITEMS;
    Layout *l = s->l;
    if (depth == l->plan->n) {
        keep(s);
        return;
    }
    size_t n = hopeless(s, least) ? 0 : choices(s, least, found), total = l->total;
    for (size_t i = 0; i < n && s->work > 0 && s->best > s->bound; i++) {
        uint32_t item = found[i].item;
        if (found[i].offset + found[i].bytes >= s->best)
            continue;
        l->plan->items[item].offset = found[i].offset;
        layout_add(l, item); /* at the end: offsets grow */
        count(s, item, true);
        descend(s, depth + 1, found[i].offset);
        count(s, item, false);
        l->n_placed--;
        l->total = total;
    }
}

size_t layout_search(Arena *a, Layout *l, size_t bound, size_t total, size_t *offsets) {
    const Plan *plan = l->plan;
    int end = 0;
    if (plan->n > MOST_ITEMS)
        return total;
    for (size_t i = 0; i < plan->n; i++)
        end = plan->items[i].last > end ? plan->items[i].last : end;
    Search s = {.l = l,
                .bound = bound,
                .best = total,
                .offsets = offsets,
                .n_steps = (size_t)end + 1,
                .work = WORK};
    size_t *saved = plan_savings(a, plan, s.n_steps);
    s.rest = NEW_ARRAY(a, int64_t, s.n_steps);
    s.placed = NEW_ARRAY(a, bool, plan->n);
    s.choices = NEW_ARRAY(a, Choice, (plan->n + 1) * MOST_ITEMS);
    for (size_t t = 0; t < s.n_steps; t++)
        s.rest[t] -= (int64_t)saved[t];
    for (uint32_t i = 0; i < plan->n; i++)
        count(&s, i, false);
    l->n_placed = l->total = 0;
    descend(&s, 0, 0);
    return s.best;
}
