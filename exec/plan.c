/* See exec/plan.h. Placing in order of size is optimal on most networks; other orders win on some,
 * so several are tried, then swaps of neighbours, until the lower bound is met. */
#include <assert.h>
#include <stdlib.h>

#include "exec/exec.h"
#include "exec/plan.h"

enum { MAX_QUADRATIC = 4000, SWAP_WORK = 20000000 };

static size_t aligned(size_t bytes, size_t align) {
    return (bytes + align - 1) / align * align;
}

static bool overlap(const PlanItem *x, const PlanItem *y) {
    return x->first <= y->last && y->first <= x->last;
}

/* ---- one layout ---- */

/* Items in order of offset, alive at the same time as the one to place. */
typedef struct Layout {
    PlanItem *items;
    size_t align;
    uint32_t *placed; /* by offset */
    size_t n_placed, total;
} Layout;

/* The smallest gap that fits, lowest first; else above everything. */
static void place(Layout *l, uint32_t which) {
    PlanItem *item = &l->items[which];
    size_t need = aligned(item->bytes, l->align), at = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (size_t i = 0; i < l->n_placed; i++) {
        const PlanItem *other = &l->items[l->placed[i]];
        if (!overlap(item, other))
            continue;
        if (other->offset >= at + need && other->offset - at < best_gap) {
            best = at;
            best_gap = other->offset - at;
        }
        size_t end = other->offset + aligned(other->bytes, l->align);
        at = end > at ? end : at;
    }
    item->offset = best == SIZE_MAX ? at : best;
    size_t k = l->n_placed++;
    for (; k > 0 && l->items[l->placed[k - 1]].offset > item->offset; k--)
        l->placed[k] = l->placed[k - 1];
    l->placed[k] = which;
    if (item->offset + need > l->total)
        l->total = item->offset + need;
}

static size_t layout(Layout *l, const uint32_t *order, size_t n) {
    l->n_placed = l->total = 0;
    for (size_t i = 0; i < n; i++)
        place(l, order[i]);
    return l->total;
}

/* For very long programs: in order of time, dead items are forgotten, so that work grows with the
 * number of items alive and not with all. */
static size_t layout_stream(Layout *l, const uint32_t *order, size_t n) {
    l->n_placed = l->total = 0;
    for (size_t i = 0; i < n; i++) {
        size_t kept = 0;
        for (size_t k = 0; k < l->n_placed; k++)
            if (l->items[l->placed[k]].last >= l->items[order[i]].first)
                l->placed[kept++] = l->placed[k];
        l->n_placed = kept;
        place(l, order[i]);
    }
    return l->total;
}

/* ---- orders ---- */

typedef enum Order { BY_TIME, BY_SIZE, BY_AREA, BY_LIFE, N_ORDERS } Order;

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

static void sort_items(const PlanItem *items, size_t n, Order how, Key *keys, uint32_t *order) {
    for (size_t i = 0; i < n; i++) {
        uint64_t life = (uint64_t)(items[i].last - items[i].first + 1);
        uint64_t late = (uint64_t)(INT32_MAX - items[i].first);
        keys[i].item = (uint32_t)i;
        keys[i].key = how == BY_TIME   ? late
                      : how == BY_SIZE ? items[i].bytes
                      : how == BY_AREA ? items[i].bytes * life
                                       : life;
    }
    qsort(keys, n, sizeof *keys, by_key);
    for (size_t i = 0; i < n; i++)
        order[i] = keys[i].item;
}

size_t plan_bound(Arena *a, const PlanItem *items, size_t n, size_t align) {
    int end = 0;
    for (size_t i = 0; i < n; i++)
        end = items[i].last > end ? items[i].last : end;
    size_t *starts = NEW_ARRAY(a, size_t, (size_t)end + 2),
           *ends = NEW_ARRAY(a, size_t, (size_t)end + 2);
    for (size_t i = 0; i < n; i++) {
        starts[items[i].first] += aligned(items[i].bytes, align);
        ends[items[i].last + 1] += aligned(items[i].bytes, align);
    }
    size_t alive = 0, most = 0;
    for (int t = 0; t <= end; t++) {
        alive += starts[t];
        alive -= ends[t];
        most = alive > most ? alive : most;
    }
    return most;
}

/* Moves items of the best order to the front, one after the other, where that helps: an item that
 * ends at the top of the arena was placed too late. */
static size_t improve(Layout *l, uint32_t *order, size_t n, size_t best, size_t bound,
                      size_t *offsets) {
    size_t rounds = SWAP_WORK / (n * n + 1);
    for (size_t r = 0; r < rounds && best > bound; r++) {
        size_t top = n;
        layout(l, order, n);
        for (size_t i = 0; i < n && top == n; i++) {
            const PlanItem *item = &l->items[order[i]];
            if (item->offset + aligned(item->bytes, l->align) == l->total)
                top = i;
        }
        size_t to = top ? (r * 7 + 3) % top : 0;
        uint32_t moved = order[top];
        memmove(order + to + 1, order + to, (top - to) * sizeof *order);
        order[to] = moved;
        if (layout(l, order, n) < best) {
            best = l->total;
            for (size_t i = 0; i < n; i++)
                offsets[i] = l->items[i].offset;
        }
    }
    return best;
}

size_t plan_offsets(Arena *a, PlanItem *items, size_t n, size_t align) {
    if (n == 0)
        return 0;
    Key *keys = NEW_ARRAY(a, Key, n);
    uint32_t *order = NEW_ARRAY(a, uint32_t, n), *best_order = NEW_ARRAY(a, uint32_t, n);
    size_t *offsets = NEW_ARRAY(a, size_t, n), best = SIZE_MAX,
           bound = plan_bound(a, items, n, align);
    Layout l = {.items = items, .align = align, .placed = NEW_ARRAY(a, uint32_t, n)};
    for (Order how = BY_TIME; how < N_ORDERS && best > bound; how++) {
        if (how != BY_TIME && n > MAX_QUADRATIC)
            break;
        sort_items(items, n, how, keys, order);
        size_t total = how == BY_TIME ? layout_stream(&l, order, n) : layout(&l, order, n);
        if (total >= best)
            continue;
        best = total;
        memcpy(best_order, order, n * sizeof *order);
        for (size_t i = 0; i < n; i++)
            offsets[i] = items[i].offset;
    }
    if (n <= MAX_QUADRATIC)
        best = improve(&l, best_order, n, best, bound, offsets);
    for (size_t i = 0; i < n; i++)
        items[i].offset = offsets[i];
    return best;
}

/* ---- programs ---- */

static void touch(Buffer *b, int call) {
    if (b->first < 0)
        b->first = call;
    b->last = call;
}

static bool in_arena(const Program *p, int buffer) {
    return buffer >= 0 && p->buffers[program_root(p, buffer)].kind == BUF_ARENA;
}

static void find_lives(Program *p) {
    for (size_t i = 0; i < p->n_buffers; i++)
        p->buffers[i].first = p->buffers[i].last = -1;
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args; i++)
            if (in_arena(p, p->calls[c].args[i]))
                touch(&p->buffers[program_root(p, p->calls[c].args[i])], (int)c);
    /* What a packed output was packed from can still be read when all is done (runner_value). */
    const Graph *g = p->module->graph;
    for (size_t i = 0; i < g->n_out && p->n_calls; i++)
        if (in_arena(p, p->value_buffer[g->out[i]->id]))
            touch(&p->buffers[program_root(p, p->value_buffer[g->out[i]->id])],
                  (int)p->n_calls - 1);
}

static int find_group(const int *group, int i) {
    while (group[i] != i)
        i = group[i];
    return i;
}

/* Lets the output of a call take the place of an argument that nobody reads later. Groups share one
 * offset; a group's buffer (the first one) carries the life and size of all. */
static void share_in_place(const Program *p, PlanItem *life, int *group) {
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        int out = call_output(p, call), in = call->in_place;
        if (in < 0 || out < 0 || !in_arena(p, call->args[in]) || !in_arena(p, call->args[out]))
            continue;
        int from = find_group(group, program_root(p, call->args[in]));
        int to = program_root(p, call->args[out]);
        bool once = true; /* read as one argument only */
        for (int i = 0; i < call->n_args; i++)
            once &= i == in || !in_arena(p, call->args[i]) ||
                    find_group(group, program_root(p, call->args[i])) != from;
        if (!once || group[to] != to || life[from].last != (int)c || life[to].first != (int)c ||
            life[to].bytes > life[from].bytes)
            continue;
        group[to] = from;
        life[from].last = life[to].last;
    }
}

void program_plan(Arena *a, Program *p, bool keep_all) {
    size_t n = p->n_buffers, n_items = 0;
    int *group = NEW_ARRAY(a, int, n);
    PlanItem *life = NEW_ARRAY(a, PlanItem, n), *items = NEW_ARRAY(a, PlanItem, n);
    int *item_of = NEW_ARRAY(a, int, n);
    find_lives(p);
    for (size_t i = 0; i < n; i++) {
        const Buffer *b = &p->buffers[i];
        group[i] = (int)i;
        size_t bytes = b->bytes ? b->bytes : 1; /* one without elements has an address too */
        life[i] = (PlanItem){bytes, b->first, b->last, 0};
        if (keep_all && b->first >= 0) {
            life[i].first = 0;
            life[i].last = (int)p->n_calls;
        }
    }
    if (!keep_all)
        share_in_place(p, life, group);
    for (size_t i = 0; i < n; i++)
        if (p->buffers[i].first >= 0 && group[i] == (int)i) {
            item_of[i] = (int)n_items;
            items[n_items++] = life[i];
        }
    p->arena_bytes = plan_offsets(a, items, n_items, BUFFER_ALIGN);
    p->arena_bound = plan_bound(a, items, n_items, BUFFER_ALIGN);
    for (size_t i = 0; i < n; i++)
        if (p->buffers[i].first >= 0)
            p->buffers[i].offset = items[item_of[find_group(group, (int)i)]].offset;
    for (size_t i = 0; i < n; i++)
        if (p->buffers[i].alias >= 0)
            p->buffers[i].offset = p->buffers[program_root(p, (int)i)].offset;
}
