/* See exec/plan.h. Placing in order of size is optimal on most networks; other orders win on some,
 * so several are tried, then changes of the best, until the lower bound is met. */
#include <stdlib.h>
#include <string.h>

#include "exec/place.h"

enum { MAX_QUADRATIC = 4000, SWAP_WORK = 20000000, PATIENCE = 300 };

/* ---- orders ---- */

typedef enum Order { BY_TIME, FROM_THE_END, BY_SIZE, BY_AREA, BY_LIFE, N_ORDERS } Order;

typedef struct Key {
    uint64_t key; /* larger first */
    uint32_t item;
} Key;

static int by_key(const void *x, const void *y) {
    const Key *a = x, *b = y;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static void sort_items(const Plan *plan, Order how, Key *keys, uint32_t *order) {
    for (size_t i = 0; i < plan->n; i++) {
        const PlanItem *item = &plan->items[i];
        uint64_t life = (uint64_t)(item->last - item->first + 1);
        keys[i].item = (uint32_t)i;
        keys[i].key = how == BY_TIME        ? (uint64_t)(INT32_MAX - item->first)
                      : how == FROM_THE_END ? (uint64_t)item->last
                      : how == BY_SIZE      ? item->bytes
                      : how == BY_AREA      ? item->bytes * life
                                            : life;
    }
    qsort(keys, plan->n, sizeof *keys, by_key);
    for (size_t i = 0; i < plan->n; i++)
        order[i] = keys[i].item;
}

/* ---- bounds ---- */

size_t plan_saving(size_t under, size_t over, const PlanOverlay *o, size_t align) {
    int64_t lead = o->exact ? 0 : plan_lead(o, align);
    under = plan_aligned(under, align);
    over = plan_aligned(over, align);
    size_t kept = lead > 0 && lead < (int64_t)over ? over - (size_t)lead : lead > 0 ? 0 : over;
    return kept < under ? kept : under;
}

/* By step: the most that its overlays can save. An item saves no more than it has. Both are alive
 * together in one step, or in those that take turns. */
size_t *plan_savings(Arena *a, const Plan *plan, size_t steps) {
    size_t *saved = NEW_ARRAY(a, size_t, steps), *own = NEW_ARRAY(a, size_t, plan->n);
    for (size_t i = 0; i < plan->n_overlays; i++) {
        const PlanOverlay *o = &plan->overlays[i];
        const PlanItem *under = &plan->items[o->under], *over = &plan->items[o->over];
        size_t most = plan_aligned(over->bytes, plan->align);
        size_t less = plan_saving(under->bytes, over->bytes, o, plan->align);
        less = less < most - own[o->over] ? less : most - own[o->over];
        own[o->over] += less;
        for (int t = over->first; t <= under->last; t++)
            saved[t] += less;
    }
    return saved;
}

static size_t steps_of(const Plan *plan) {
    int end = -1;
    for (size_t i = 0; i < plan->n; i++)
        end = plan->items[i].last > end ? plan->items[i].last : end;
    return (size_t)(end + 1);
}

size_t *plan_loads(Arena *a, const Plan *plan, size_t steps) {
    size_t *starts = NEW_ARRAY(a, size_t, steps + 1), *ends = NEW_ARRAY(a, size_t, steps + 1);
    size_t *saved = plan_savings(a, plan, steps);
    for (size_t i = 0; i < plan->n; i++) {
        starts[plan->items[i].first] += plan_aligned(plan->items[i].bytes, plan->align);
        ends[plan->items[i].last + 1] += plan_aligned(plan->items[i].bytes, plan->align);
    }
    size_t alive = 0;
    for (size_t t = 0; t < steps; t++) {
        alive += starts[t];
        alive -= ends[t];
        starts[t] = alive - saved[t];
    }
    return starts;
}

size_t plan_bound(Arena *a, const Plan *plan) {
    size_t steps = steps_of(plan), most = 0;
    const size_t *loads = plan_loads(a, plan, steps);
    for (size_t t = 0; t < steps; t++)
        most = loads[t] > most ? loads[t] : most;
    return most;
}

/* ---- the search ---- */

typedef struct Best {
    size_t total, *offsets;
    uint32_t *order;
} Best;

static void keep(const Layout *l, const uint32_t *order, Best *best) {
    best->total = l->total;
    memcpy(best->order, order, l->plan->n * sizeof *order);
    for (size_t i = 0; i < l->plan->n; i++)
        best->offsets[i] = l->plan->items[i].offset;
}

/* Moves items of the best order to the front, one after the other, where that helps: an item that
 * ends at the top of the memory was placed too late. */
static void improve(Layout *l, uint32_t *order, size_t bound, Best *best) {
    size_t n = l->plan->n, rounds = SWAP_WORK / (n * n + 1), tired = 0;
    memcpy(order, best->order, n * sizeof *order);
    for (size_t r = 0; r < rounds && tired < PATIENCE && best->total > bound; r++) {
        size_t top = n;
        layout_by(l, order);
        for (size_t i = 0; i < n && top == n; i++) {
            const PlanItem *item = &l->plan->items[order[i]];
            if (item->offset + plan_aligned(item->bytes, l->plan->align) == l->total)
                top = i;
        }
        size_t to = top ? (r * 7 + 3) % top : 0;
        uint32_t moved = order[top];
        memmove(order + to + 1, order + to, (top - to) * sizeof *order);
        order[to] = moved;
        tired++;
        if (layout_by(l, order) < best->total) {
            keep(l, order, best);
            tired = 0;
        }
    }
}

size_t plan_offsets(Arena *a, const Plan *plan) {
    size_t n = plan->n, bound = n ? plan_bound(a, plan) : 0;
    if (n == 0)
        return 0;
    Key *keys = NEW_ARRAY(a, Key, n);
    uint32_t *order = NEW_ARRAY(a, uint32_t, n);
    Best best = {SIZE_MAX, NEW_ARRAY(a, size_t, n), NEW_ARRAY(a, uint32_t, n)};
    Layout l = layout_new(a, plan);
    for (Order how = BY_TIME; how < N_ORDERS && best.total > bound; how++) {
        if (how != BY_TIME && n > MAX_QUADRATIC)
            break;
        sort_items(plan, how, keys, order);
        if ((how == BY_TIME ? layout_by_time(&l, order) : layout_by(&l, order)) < best.total)
            keep(&l, order, &best);
    }
    if (n <= MAX_QUADRATIC && !plan->quick)
        improve(&l, order, bound, &best);
    if (best.total > bound && !plan->quick)
        best.total = layout_search(a, &l, bound, best.total, best.offsets);
    for (size_t i = 0; i < n; i++)
        plan->items[i].offset = best.offsets[i];
    return best.total;
}
