/* See exec/order.h. The calls are taken in windows that begin and end where few buffers are alive;
 * the one in which most bytes are alive is put into a better order, and so on until it resists. */
#include <string.h>

#include "exec/exec.h"
#include "exec/memory.h"
#include "exec/order.h"
#include "exec/place.h"
#include "exec/schedule.h"

enum { MOST_SEARCHES = 16 };

/* Calls that stay together: one, or all from an IF or LOOP to its END. */
typedef struct Unit {
    size_t first, n; /* calls */
} Unit;

typedef struct Orderer {
    Arena *arena;
    Program *program;
    Unit *units;
    int n_units;
    int *first, *last; /* by buffer: the units that use it; -1: before all; n_units: after all; */
                       /* last -1: none does */
    int *alive;        /* by unit: how many buffers are alive before it and in it or later, */
    size_t *bytes;     /* and how many bytes */
    int *item;         /* by buffer: what it is in the window at hand, -1 for nothing */
} Orderer;

/* ---- units and what they use ---- */

static void find_units(Orderer *o) {
    const Program *p = o->program;
    int depth = 0;
    o->units = NEW_ARRAY(o->arena, Unit, p->n_calls);
    for (size_t c = 0; c < p->n_calls; c++) {
        if (depth == 0)
            o->units[o->n_units++] = (Unit){c, 0};
        o->units[o->n_units - 1].n++;
        depth += p->calls[c].kind == CALL_IF || p->calls[c].kind == CALL_LOOP;
        depth -= p->calls[c].kind == CALL_END;
    }
}

/* Memory that others may read: not constants, and not scratch, which is a call's own. */
static int shared_root(const Program *p, int buffer) {
    if (buffer < 0)
        return -1;
    const Buffer *b = &p->buffers[program_root(p, buffer)];
    return b->kind == BUF_CONST || b->scratch ? -1 : program_root(p, buffer);
}

static size_t size_of(const Program *p, int buffer) {
    const Buffer *b = &p->buffers[buffer];
    return b->kind == BUF_ARENA ? plan_aligned(memory_bytes(b), BUFFER_ALIGN) : 0;
}

static void use(Orderer *o, int buffer, int unit) {
    int root = shared_root(o->program, buffer);
    if (root < 0)
        return;
    if (o->last[root] < 0)
        o->first[root] = unit;
    o->last[root] = unit;
}

/* An input in the arena is there before the first unit. */
static void use_before(Orderer *o, int buffer) {
    int root = shared_root(o->program, buffer);
    if (root < 0 || o->program->buffers[root].kind != BUF_ARENA)
        return;
    o->first[root] = -1;
    o->last[root] = 0;
}

static void find_uses(Orderer *o) {
    const Program *p = o->program;
    const Graph *g = p->module->graph;
    for (size_t i = 0; i < p->n_buffers; i++)
        o->first[i] = o->last[i] = o->item[i] = -1;
    for (size_t i = 0; i < p->n_inputs; i++)
        use_before(o, p->inputs[i]);
    for (int u = 0; u < o->n_units; u++)
        for (size_t c = 0; c < o->units[u].n; c++) {
            const Call *call = &p->calls[o->units[u].first + c];
            for (int i = 0; i < call->n_args; i++)
                use(o, call->args[i], u);
        }
    for (size_t i = 0; i < g->n_out; i++) /* can be read when all is done */
        use(o, p->value_buffer[g->out[i]->id], o->n_units);
    for (size_t i = 0; i < p->n_outputs; i++)
        use(o, p->outputs[i], o->n_units);
    for (size_t i = 0; i < p->n_buffers; i++)
        if (o->last[i] >= 0 && size_of(p, (int)i)) {
            o->alive[o->first[i] + 1]++;
            o->alive[o->last[i] + 1]--;
            o->bytes[o->first[i] + 1] += size_of(p, (int)i);
            o->bytes[o->last[i] + 1] -= size_of(p, (int)i);
        }
    for (int u = 0; u <= o->n_units; u++) {
        o->alive[u + 1] += o->alive[u];
        o->bytes[u + 1] += o->bytes[u];
    }
}

/* ---- windows ---- */

typedef struct Window {
    int first, n;  /* units */
    size_t others; /* bytes alive all the time that nothing here uses */
    size_t peak;
} Window;

/* The steps of a window being made from units. */
typedef struct Making {
    Orderer *o;
    const Window *w;
    ScheduleItem *items;
    StepSet *wrote, *read; /* by item: by whom so far */
    int *roots;            /* by item: the buffer */
    size_t n;
} Making;

static int item_of(Making *m, int root) {
    Orderer *o = m->o;
    if (o->item[root] >= 0)
        return o->item[root];
    m->roots[m->n] = root;
    m->items[m->n] = (ScheduleItem){.bytes = size_of(o->program, root),
                                    .before = o->first[root] < m->w->first,
                                    .after = o->last[root] >= m->w->first + m->w->n};
    return o->item[root] = (int)m->n++;
}

/* What is written comes after all that wrote or read it before; what is read after what wrote it.
 */
static void add_argument(Making *m, ScheduleStep *s, int step, int item, bool written) {
    step_set_join(&s->needs, &m->wrote[item]);
    if (written)
        step_set_join(&s->needs, &m->read[item]);
    step_set_add(written ? &m->wrote[item] : &m->read[item], step);
    step_set_add(&m->items[item].users, step);
}

static void add_call(Making *m, ScheduleStep *s, int *items, int step, const Call *call) {
    const Program *p = m->o->program;
    for (int i = 0; i < call->n_args; i++) {
        int root = shared_root(p, call->args[i]);
        bool written = call_writes(call, i);
        if (root < 0) {
            bool scratch = call->args[i] >= 0 && p->buffers[call->args[i]].scratch;
            s->own += scratch ? size_of(p, call->args[i]) : 0;
            continue;
        }
        int item = item_of(m, root);
        size_t k = 0;
        while (k < s->n_items && items[k] != item)
            k++;
        items[k] = item;
        s->n_items += k == s->n_items;
        add_argument(m, s, step, item, written);
    }
}

static void add_savings(Making *m, ScheduleStep *s, const Call *call) {
    const Program *p = m->o->program;
    ScheduleSaving *savings = NEW_ARRAY(m->o->arena, ScheduleSaving, CALL_MAX_OVERLAYS);
    s->savings = savings;
    for (int i = 0; i < call->n_overlays; i++) {
        const Overlay *o = &call->overlays[i];
        PlanOverlay as = {.exact = o->exact, .lead = o->lead};
        int under, over;
        if (memory_overlay(p, call, o, &under, &over))
            savings[s->n_savings++] = (ScheduleSaving){
                item_of(m, under), item_of(m, over),
                plan_saving(size_of(p, under), size_of(p, over), &as, BUFFER_ALIGN)};
    }
}

static size_t args_of(const Program *p, const Unit *u) {
    size_t n = 0;
    for (size_t c = 0; c < u->n; c++)
        n += (size_t)p->calls[u->first + c].n_args;
    return n;
}

static ScheduleStep step_of(Making *m, int step) {
    const Program *p = m->o->program;
    const Unit *u = &m->o->units[m->w->first + step];
    int *items = NEW_ARRAY(m->o->arena, int, args_of(p, u) + 1);
    ScheduleStep s = {.items = items};
    for (size_t c = 0; c < u->n; c++)
        add_call(m, &s, items, step, &p->calls[u->first + c]);
    if (u->n == 1)
        add_savings(m, &s, &p->calls[u->first]);
    step_set_remove(&s.needs, step);
    return s;
}

/* Sets the bytes of others as well. */
static Schedule schedule_of(Orderer *o, Window *w) {
    size_t most = 1;
    for (int i = 0; i < w->n; i++)
        most += args_of(o->program, &o->units[w->first + i]);
    Making m = {.o = o,
                .w = w,
                .items = NEW_ARRAY(o->arena, ScheduleItem, most),
                .wrote = NEW_ARRAY(o->arena, StepSet, most),
                .read = NEW_ARRAY(o->arena, StepSet, most),
                .roots = NEW_ARRAY(o->arena, int, most)};
    ScheduleStep *steps = NEW_ARRAY(o->arena, ScheduleStep, (size_t)w->n);
    for (int i = 0; i < w->n; i++)
        steps[i] = step_of(&m, i);
    w->others = o->bytes[w->first];
    for (size_t i = 0; i < m.n; i++) {
        w->others -= m.items[i].before ? m.items[i].bytes : 0;
        o->item[m.roots[i]] = -1;
    }
    return (Schedule){m.items, m.n, steps, w->n};
}

/* The last unit before which the fewest buffers are alive, among those that a window may end at. */
static int end_of_window(const Orderer *o, int first) {
    int best = first + 1;
    for (int u = first + 1; u <= o->n_units && u - first <= SCHEDULE_MAX; u++)
        if (o->alive[u] <= o->alive[best])
            best = u;
    return best;
}

/* ---- the whole ---- */

static void reorder(Orderer *o, const Window *w, const int *order) {
    Unit *units = NEW_ARRAY(o->arena, Unit, (size_t)w->n);
    memcpy(units, o->units + w->first, (size_t)w->n * sizeof *units);
    for (int i = 0; i < w->n; i++)
        o->units[w->first + i] = units[order[i]];
}

static Window *worst_of(Window *windows, size_t n) {
    Window *worst = &windows[0];
    for (size_t i = 1; i < n; i++)
        if (windows[i].peak > worst->peak)
            worst = &windows[i];
    return worst;
}

/* Whether anything could be improved. No order can have less than `floor`. */
static bool improve(Orderer *o, Window *windows, size_t n, size_t floor) {
    Scheduler *r = NULL;
    int order[SCHEDULE_MAX], found = 0;
    for (; found < MOST_SEARCHES; found++) {
        Window *w = worst_of(windows, n);
        if (w->peak <= floor)
            break;
        Schedule s = schedule_of(o, w);
        r = r ? r : scheduler_new(o->arena);
        if (!schedule_search(r, &s, w->peak - w->others, order))
            break;
        w->peak = w->others + schedule_peak(&s, order);
        reorder(o, w, order);
    }
    return found > 0;
}

static void apply(Orderer *o) {
    Program *p = o->program;
    Call *calls = NEW_ARRAY(o->arena, Call, p->n_calls);
    size_t n = 0;
    for (int u = 0; u < o->n_units; u++)
        for (size_t c = 0; c < o->units[u].n; c++)
            calls[n++] = p->calls[o->units[u].first + c];
    p->calls = calls;
    p->cap_calls = n;
}

void program_order(Arena *a, Program *p) {
    if (p->n_calls == 0)
        return;
    size_t n = 0, floor = 0, n_units = p->n_calls + 2;
    Orderer o = {.arena = a,
                 .program = p,
                 .first = NEW_ARRAY(a, int, p->n_buffers),
                 .last = NEW_ARRAY(a, int, p->n_buffers),
                 .item = NEW_ARRAY(a, int, p->n_buffers),
                 .alive = NEW_ARRAY(a, int, n_units),
                 .bytes = NEW_ARRAY(a, size_t, n_units)};
    find_units(&o);
    find_uses(&o);
    Window *windows = NEW_ARRAY(a, Window, (size_t)o.n_units);
    for (int first = 0, end; first < o.n_units; first = end) {
        end = end_of_window(&o, first);
        Window *w = &windows[n++];
        *w = (Window){.first = first, .n = end - first};
        Schedule s = schedule_of(&o, w);
        w->peak = w->others + schedule_peak(&s, NULL);
        size_t least = schedule_floor(&s);
        floor = least > floor ? least : floor;
    }
    if (improve(&o, windows, n, floor))
        apply(&o);
}
