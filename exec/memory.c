/* See exec/memory.h. */
#include "exec/memory.h"
#include "exec/exec.h"
#include "exec/plan.h"

int memory_root(const Program *p, int buffer) {
    if (buffer < 0)
        return -1;
    int root = program_root(p, buffer);
    return p->buffers[root].kind == BUF_ARENA ? root : -1;
}

/* A tensor without elements has an address too. */
size_t memory_bytes(const Buffer *b) {
    return b->bytes || b->scratch ? b->bytes : 1;
}

/* ---- lives ---- */

static void touch(Buffer *b, int call) {
    if (b->first < 0)
        b->first = call;
    b->last = call;
}

/* The first and the last of the calls that take turns with this one: itself where none does. */
static int begin_of_turns(const Program *p, size_t call) {
    const Bands *bands = p->calls[call].bands;
    return (int)(bands ? bands->first : call);
}

static int end_of_turns(const Program *p, size_t call) {
    const Bands *bands = p->calls[call].bands;
    return (int)(bands ? bands->first + bands->n - 1 : call);
}

/* What calls in bands share is alive in each of them; scratch is each one's own. */
static void touch_by(const Program *p, Buffer *b, size_t call) {
    touch(b, b->scratch ? (int)call : begin_of_turns(p, call));
    touch(b, b->scratch ? (int)call : end_of_turns(p, call));
}

/* The loops of a program: by call the LOOP of the innermost one that it is in, -1 for none; by LOOP
 * the one around it, and its NEXT. */
typedef struct Loops {
    int *in, *around, *next;
    bool any;
} Loops;

static Loops find_loops(Arena *a, const Program *p) {
    Loops l = {.in = NEW_ARRAY(a, int, p->n_calls),
               .around = NEW_ARRAY(a, int, p->n_calls),
               .next = NEW_ARRAY(a, int, p->n_calls)};
    int inner = -1;
    for (size_t c = 0; c < p->n_calls; c++) {
        if (p->calls[c].kind == CALL_LOOP) { /* which reads its count each time */
            l.around[c] = inner;
            inner = (int)c;
            l.any = true;
        }
        l.in[c] = inner;
        if (p->calls[c].kind == CALL_NEXT) {
            l.next[inner] = (int)c;
            inner = l.around[inner];
        }
    }
    return l;
}

/* What is alive at both sides of a loop's end, or written in it for later, is alive all through it:
 * each iteration meets what the one before left. */
static void extend_over_loops(Arena *a, Program *p) {
    Loops l = find_loops(a, p);
    for (size_t i = 0; l.any && i < p->n_buffers; i++) {
        Buffer *b = &p->buffers[i];
        if (b->first < 0)
            continue;
        for (int at = l.in [b->last]; at >= 0 && b->first < at; at = l.around[at])
            b->last = l.next[at];
        for (int at = l.in [b->first]; at >= 0 && b->last > l.next[at]; at = l.around[at])
            b->first = at;
    }
}

/* Those in the arena: the caller writes inputs before the first call, and reads outputs after the
 * last. */
static void touch_ports(Program *p, const int *ports, size_t n, int call) {
    for (size_t i = 0; i < n; i++) {
        int root = memory_root(p, ports[i]);
        if (root >= 0 && p->n_calls)
            touch(&p->buffers[root], call);
    }
}

static void find_lives(Arena *a, Program *p) {
    for (size_t i = 0; i < p->n_buffers; i++)
        p->buffers[i].first = p->buffers[i].last = -1;
    touch_ports(p, p->inputs, p->n_inputs, 0);
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args; i++) {
            int root = memory_root(p, p->calls[c].args[i]);
            if (root >= 0)
                touch_by(p, &p->buffers[root], c);
        }
    touch_ports(p, p->outputs, p->n_outputs, (int)p->n_calls - 1);
    /* What a packed output was packed from can still be read when all is done (runner_value). */
    const Graph *g = p->module->graph;
    for (size_t i = 0; i < g->n_out && p->n_calls; i++) {
        int root = memory_root(p, p->value_buffer[g->out[i]->id]);
        if (root >= 0)
            touch(&p->buffers[root], (int)p->n_calls - 1);
    }
    extend_over_loops(a, p);
}

/* ---- overlays ---- */

/* Whether accesses of both types to one memory cannot be taken for independent by a compiler: they
 * may not be moved past each other. Those of bytes are never. */
static bool types_overlap(ElemType x, ElemType y) {
    return x == y || elem_bits(x) == 8 || elem_bits(y) == 8;
}

/* Whether the call reads the buffer by this argument only. */
static bool read_once(const Program *p, const Call *call, int arg) {
    int root = memory_root(p, call->args[arg]);
    for (int i = 0; i < call->n_args; i++)
        if (i != arg && memory_root(p, call->args[i]) == root)
            return false;
    return true;
}

bool memory_overlay(const Program *p, const Call *call, const Overlay *o, int *under, int *over) {
    const Call *last = call->bands ? &p->calls[call->bands->first + call->bands->n - 1] : call;
    int out = call_output(p, last);
    *under = memory_root(p, call->args[o->arg]);
    *over = out < 0 ? -1 : memory_root(p, last->args[out]);
    if (*under < 0 || *over < 0 || !read_once(p, call, o->arg))
        return false;
    const Buffer *x = &p->buffers[*under], *y = &p->buffers[*over];
    return types_overlap(x->elem, y->elem) && !(o->exact && memory_bytes(y) > memory_bytes(x));
}

/* ---- the whole ---- */

typedef struct Items {
    Plan plan;
    int *of; /* by buffer: its item */
} Items;

static Items items_of(Arena *a, const Program *p, bool scratch) {
    PlanItem *items = NEW_ARRAY(a, PlanItem, p->n_buffers);
    Items all = {.plan = {.items = items, .align = BUFFER_ALIGN},
                 .of = NEW_ARRAY(a, int, p->n_buffers)};
    for (size_t i = 0; i < p->n_buffers; i++)
        if (p->buffers[i].first >= 0 && (scratch || !p->buffers[i].scratch)) {
            const Buffer *b = &p->buffers[i];
            all.of[i] = (int)all.plan.n;
            items[all.plan.n++] = (PlanItem){memory_bytes(b), b->first, b->last, 0};
        }
    return all;
}

static void find_overlays(Arena *a, const Program *p, Items *all) {
    PlanOverlay *found = NEW_ARRAY(a, PlanOverlay, CALL_MAX_OVERLAYS * p->n_calls);
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        for (int i = 0; i < call->n_overlays; i++) {
            const Overlay *o = &call->overlays[i];
            int under, over;
            if (!memory_overlay(p, call, o, &under, &over) ||
                p->buffers[under].last != end_of_turns(p, c) ||
                p->buffers[over].first != begin_of_turns(p, c))
                continue;
            found[all->plan.n_overlays++] =
                (PlanOverlay){(uint32_t)all->of[under], (uint32_t)all->of[over], o->exact, o->lead};
        }
    }
    all->plan.overlays = found;
}

size_t *program_loads(Arena *a, Program *p) {
    find_lives(a, p);
    Items all = items_of(a, p, true);
    for (size_t c = 0; c < p->n_calls; c++) {
        const Growth *g = &p->calls[c].growth;
        if (g->step && p->buffers[g->buffer].first >= 0)
            all.plan.items[all.of[g->buffer]].bytes = g->least;
    }
    find_overlays(a, p, &all);
    return plan_loads(a, &all.plan, p->n_calls);
}

size_t program_alive(Arena *a, Program *p) {
    find_lives(a, p);
    Items all = items_of(a, p, false);
    find_overlays(a, p, &all);
    PlanOverlay *kept = NEW_ARRAY(a, PlanOverlay, all.plan.n_overlays);
    size_t n = 0;
    for (size_t i = 0; i < all.plan.n_overlays; i++) {
        if (all.plan.overlays[i].exact)
            kept[n++] = all.plan.overlays[i];
    }
    all.plan.overlays = kept;
    all.plan.n_overlays = n;
    return plan_bound(a, &all.plan);
}

/* ---- scratch in what is left ---- */

/* The items alive during a call, in order of their offsets. */
typedef struct Alive {
    const PlanItem *items;
    uint32_t *list;
    size_t n;
} Alive;

static size_t end_of(const PlanItem *item) {
    return item->offset + (item->bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
}

static void drop_dead(Alive *alive, int call) {
    size_t n = 0;
    for (size_t i = 0; i < alive->n; i++)
        if (alive->items[alive->list[i]].last >= call)
            alive->list[n++] = alive->list[i];
    alive->n = n;
}

static void add_alive(Alive *alive, uint32_t item) {
    size_t k = alive->n++;
    for (; k > 0 && alive->items[alive->list[k - 1]].offset > alive->items[item].offset; k--)
        alive->list[k] = alive->list[k - 1];
    alive->list[k] = item;
}

/* The largest range below `end` that no item but `own` takes. */
static size_t largest_room(const Alive *alive, uint32_t own, size_t end, size_t *begin) {
    size_t at = 0, best = 0;
    for (size_t i = 0; i <= alive->n; i++) {
        const PlanItem *item = i < alive->n ? &alive->items[alive->list[i]] : NULL;
        size_t next = item ? item->offset : end;
        if (item == &alive->items[own])
            continue;
        if (next > at && next - at > best) {
            best = next - at;
            *begin = at;
        }
        at = item && end_of(item) > at ? end_of(item) : at;
    }
    return best;
}

/* Parts have params of their own, in which it is said, too. */
static void set_scratch(Buffer *b, const Call *c, size_t bytes) {
    const Growth *g = &c->growth;
    size_t field = (size_t)((const char *)g->bytes - (const char *)c->params);
    b->count = b->bytes = bytes;
    *g->bytes = (int32_t)bytes;
    for (size_t i = 0; i < c->n_parts; i++)
        if (c->parts[i].params)
            *(int32_t *)(void *)((char *)(uintptr_t)c->parts[i].params + field) = (int32_t)bytes;
}

/* Halves what scratch has beyond the least, or beyond what it keeps; whether there was anything. */
static bool shrink_scratch(Program *p, const Items *all, bool bounded) {
    bool any = false;
    for (size_t c = 0; c < p->n_calls; c++) {
        const Growth *g = &p->calls[c].growth;
        Buffer *b = &p->buffers[g->buffer];
        size_t least = bounded ? g->least : g->kept;
        if (!g->step || b->bytes <= least)
            continue;
        set_scratch(b, &p->calls[c], least + (b->bytes - least) / 2 / g->step * g->step);
        all->plan.items[all->of[g->buffer]].bytes = memory_bytes(b);
        any = true;
    }
    return any;
}

static void shrink_to(Arena *a, Program *p, Items *all, size_t goal, bool bounded) {
    while (p->arena_bytes > goal && shrink_scratch(p, all, bounded))
        p->arena_bytes = plan_offsets(a, &all->plan);
}

static void grow(Program *p, const Call *call, const Alive *alive, uint32_t own, PlanItem *item) {
    const Growth *g = &call->growth;
    Buffer *b = &p->buffers[g->buffer];
    size_t begin = 0, room = largest_room(alive, own, p->arena_bytes, &begin);
    size_t most = room < g->most ? room : g->most;
    if (most < b->bytes + g->step)
        return;
    item->offset = begin;
    set_scratch(b, call, b->bytes + (most - b->bytes) / g->step * g->step);
}

/* Scratch lives during one call only: what it takes there is nobody else's. */
static void grow_scratch(Arena *a, Program *p, const Items *all) {
    const Plan *plan = &all->plan;
    uint32_t *next = NEW_ARRAY(a, uint32_t, plan->n), *first = NEW_ARRAY(a, uint32_t, p->n_calls);
    Alive alive = {.items = plan->items, .list = NEW_ARRAY(a, uint32_t, plan->n)};
    for (size_t i = 0; i < plan->n; i++) { /* lists of what begins with a call: 1 + item */
        next[i] = first[plan->items[i].first];
        first[plan->items[i].first] = (uint32_t)i + 1;
    }
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        drop_dead(&alive, (int)c);
        for (uint32_t i = first[c]; i; i = next[i - 1])
            add_alive(&alive, i - 1);
        if (call->growth.step) {
            uint32_t own = (uint32_t)all->of[call->growth.buffer];
            grow(p, call, &alive, own, &plan->items[own]);
        }
    }
}

static void place_apart(Program *p, Items *all) {
    for (size_t i = 0; i < all->plan.n; i++) {
        PlanItem *item = &all->plan.items[i];
        item->offset = p->arena_bytes;
        p->arena_bytes += (item->bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
    }
}

void program_plan(Arena *a, Program *p, bool keep_all, bool least, size_t enough) {
    size_t goal = enough && enough < p->arena_alive ? enough : p->arena_alive;
    find_lives(a, p);
    Items all = items_of(a, p, true);
    p->arena_bytes = 0;
    all.plan.quick = !least;
    if (keep_all) {
        place_apart(p, &all);
    } else {
        find_overlays(a, p, &all);
        p->arena_bytes = plan_offsets(a, &all.plan);
        shrink_to(a, p, &all, goal, false);
        if (enough)
            shrink_to(a, p, &all, enough, true);
        grow_scratch(a, p, &all);
    }
    for (size_t i = 0; i < p->n_buffers; i++)
        if (p->buffers[i].first >= 0)
            p->buffers[i].offset = all.plan.items[all.of[i]].offset;
    for (size_t i = 0; i < p->n_buffers; i++)
        if (p->buffers[i].alias >= 0)
            p->buffers[i].offset = p->buffers[program_root(p, (int)i)].offset;
}
