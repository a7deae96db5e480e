/* See exec/place.h. */
#include "exec/place.h"

/* The overlays of an item, as a list: `next` by overlay and role. */
typedef struct Overlays {
    int *first; /* by item: 2 * overlay + (the item is the one over), or -1 */
    int *next;  /* by that number */
} Overlays;

size_t plan_aligned(size_t bytes, size_t align) {
    return (bytes + align - 1) / align * align;
}

static Overlays *overlays_of(Arena *a, const Plan *plan) {
    Overlays *o = NEW(a, Overlays);
    o->first = NEW_ARRAY(a, int, plan->n);
    o->next = NEW_ARRAY(a, int, 2 * plan->n_overlays);
    for (size_t i = 0; i < plan->n; i++)
        o->first[i] = -1;
    for (size_t i = 0; i < plan->n_overlays; i++)
        for (int over = 0; over < 2; over++) {
            uint32_t item = over ? plan->overlays[i].over : plan->overlays[i].under;
            o->next[2 * i + (size_t)over] = o->first[item];
            o->first[item] = 2 * (int)i + over;
        }
    return o;
}

Layout layout_new(Arena *a, const Plan *plan) {
    return (Layout){.plan = plan,
                    .placed = NEW_ARRAY(a, uint32_t, plan->n),
                    .overlays = overlays_of(a, plan),
                    .gaps = NEW_ARRAY(a, Gap, 2 * plan->n)};
}

/* The overlay between two items, of which `which` lies over the other if *over. */
static const PlanOverlay *overlay_of(const Layout *l, uint32_t which, uint32_t other, bool *over) {
    for (int i = l->overlays->first[which]; i >= 0; i = l->overlays->next[i]) {
        const PlanOverlay *o = &l->plan->overlays[i / 2];
        *over = i % 2;
        if ((*over ? o->under : o->over) == other)
            return o;
    }
    return NULL;
}

int64_t plan_lead(const PlanOverlay *o, size_t align) {
    int64_t step = (int64_t)align;
    return o->lead > 0 ? (o->lead + step - 1) / step * step : -(-o->lead / step * step);
}

/* Keeps the gaps in order of where they begin; they come nearly so. */
static void add_gap(Layout *l, size_t *n, int64_t low, int64_t high) {
    size_t k = (*n)++;
    if (low >= high) {
        --*n;
        return;
    }
    for (; k > 0 && l->gaps[k - 1].low > low; k--)
        l->gaps[k] = l->gaps[k - 1];
    l->gaps[k] = (Gap){low, high};
}

/* Where `which` may not begin for the sake of `other`, which is placed. */
static void keep_apart(Layout *l, uint32_t which, uint32_t other, size_t *n) {
    const PlanItem *item = &l->plan->items[which], *placed = &l->plan->items[other];
    int64_t at = (int64_t)placed->offset;
    int64_t low = at - (int64_t)plan_aligned(item->bytes, l->plan->align);
    int64_t high = at + (int64_t)plan_aligned(placed->bytes, l->plan->align);
    bool over;
    const PlanOverlay *o = overlay_of(l, which, other, &over);
    if (!o) {
        add_gap(l, n, low, high);
    } else if (o->exact) {
        add_gap(l, n, low, at);
        add_gap(l, n, at, high);
    } else if (over) {
        int64_t before = at - plan_lead(o, l->plan->align);
        add_gap(l, n, before > low ? before : low, high);
    } else {
        int64_t after = at + plan_lead(o, l->plan->align);
        add_gap(l, n, low, after < high ? after : high);
    }
}

size_t layout_gaps(Layout *l, uint32_t which) {
    PlanItem *item = &l->plan->items[which];
    size_t n = 0;
    for (size_t i = 0; i < l->n_placed; i++) {
        const PlanItem *other = &l->plan->items[l->placed[i]];
        if (item->first <= other->last && other->first <= item->last)
            keep_apart(l, which, l->placed[i], &n);
    }
    return n;
}

void layout_add(Layout *l, uint32_t which) {
    const PlanItem *item = &l->plan->items[which];
    size_t k = l->n_placed++, end = item->offset + plan_aligned(item->bytes, l->plan->align);
    for (; k > 0 && l->plan->items[l->placed[k - 1]].offset > item->offset; k--)
        l->placed[k] = l->placed[k - 1];
    l->placed[k] = which;
    l->total = end > l->total ? end : l->total;
}

/* The smallest room that fits, lowest first; else above everything. */
static void place(Layout *l, uint32_t which) {
    size_t n = layout_gaps(l, which);
    int64_t at = 0, best = -1, least = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        if (l->gaps[i].low >= at && l->gaps[i].low - at < least) {
            best = at;
            least = l->gaps[i].low - at;
        }
        at = l->gaps[i].high > at ? l->gaps[i].high : at;
    }
    l->plan->items[which].offset = (size_t)(best < 0 ? at : best);
    layout_add(l, which);
}

size_t layout_by(Layout *l, const uint32_t *order) {
    l->n_placed = l->total = 0;
    for (size_t i = 0; i < l->plan->n; i++)
        place(l, order[i]);
    return l->total;
}

size_t layout_by_time(Layout *l, const uint32_t *order) {
    const PlanItem *items = l->plan->items;
    l->n_placed = l->total = 0;
    for (size_t i = 0; i < l->plan->n; i++) {
        size_t kept = 0;
        for (size_t k = 0; k < l->n_placed; k++)
            if (items[l->placed[k]].last >= items[order[i]].first)
                l->placed[kept++] = l->placed[k];
        l->n_placed = kept;
        place(l, order[i]);
    }
    return l->total;
}
