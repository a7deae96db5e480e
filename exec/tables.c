/* See exec/tables.h. A call and those before it are taken together from the last one back, always
 * the one that runs last of those whose results are read, so that what all of them depend on is met
 * as a state with one tensor left. */
#include "exec/tables.h"
#include "exec/each.h"
#include "ir/ops/overlay.h"

enum { MOST_CALLS = 64, MOST_LEAVES = 16, VALUES = 256 };

typedef struct Writers {
    int first, last, n; /* calls that write a buffer, or hand it out as control flow does */
    int reads;          /* arguments, and outputs */
} Writers;

typedef struct Tables {
    Arena *a;
    Program *p;
    Writers *of; /* by root buffer */
    int *region; /* by call: how many calls of control flow stand before it */
} Tables;

/* Calls that together make one function. */
typedef struct Group {
    int call[MOST_CALLS], n_calls; /* descending */
    int leaf[MOST_LEAVES], n_leaves;
    int reads[MOST_LEAVES]; /* of the leaf by these calls */
    int best;               /* so many of the calls depend on one tensor of 8 bits; 0: none */
    int source;             /* an argument that is this tensor */
} Group;

static int root(const Tables *t, int buffer) {
    return program_root(t->p, buffer);
}

static bool writes(const Call *c, int arg) {
    return c->kind != CALL_KERNEL || call_writes(c, arg);
}

static void look_at(Tables *t, int i) {
    const Call *c = &t->p->calls[i];
    t->region[i] = i ? t->region[i - 1] + (t->p->calls[i - 1].kind != CALL_KERNEL) : 0;
    t->region[i] += c->kind != CALL_KERNEL;
    for (int j = 0; j < c->n_args; j++) {
        if (c->args[j] < 0)
            continue;
        Writers *w = &t->of[root(t, c->args[j])];
        w->reads += c->kind != CALL_KERNEL || !writes(c, j);
        if (!writes(c, j))
            continue;
        w->first = w->n++ ? w->first : i;
        w->last = i;
    }
}

static Tables look(Arena *a, Program *p) {
    Tables t = {a, p, NEW_ARRAY(a, Writers, p->n_buffers), NEW_ARRAY(a, int, p->n_calls)};
    for (size_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i] >= 0)
            t.of[root(&t, p->outputs[i])].reads++;
    for (size_t i = 0; i < p->n_calls; i++)
        look_at(&t, (int)i);
    return t;
}

/* ---- which calls ---- */

static bool add_leaf(const Tables *t, Group *g, int buffer) {
    int leaf = root(t, buffer), i = 0;
    if (t->p->buffers[leaf].kind == BUF_CONST)
        return true;
    while (i < g->n_leaves && g->leaf[i] != leaf)
        i++;
    if (i == MOST_LEAVES)
        return false;
    if (i == g->n_leaves) {
        g->leaf[g->n_leaves++] = leaf;
        g->reads[i] = 0;
    }
    g->reads[i]++;
    return true;
}

static bool add_call(const Tables *t, Group *g, int call) {
    const Call *c = &t->p->calls[call];
    if (g->n_calls == MOST_CALLS)
        return false;
    g->call[g->n_calls++] = call;
    for (int i = 0; i < c->kernel->n_each; i++)
        if (!add_leaf(t, g, c->args[i]))
            return false;
    return true;
}

/* The tensor is as it was before the first of the calls until the last one has run. */
static bool stays(const Tables *t, const Group *g, int leaf) {
    const Writers *w = &t->of[leaf];
    return !w->n || w->last < g->call[g->n_calls - 1] || w->first > g->call[0];
}

static bool is_8_bits(const Buffer *b) {
    return b->elem == ELEM_INT8 || b->elem == ELEM_UINT8;
}

/* An argument of one of the calls that is this tensor. */
static int argument(const Tables *t, const Group *g, int leaf) {
    for (int k = 0; k < g->n_calls; k++) {
        const Call *c = &t->p->calls[g->call[k]];
        for (int i = 0; i < c->kernel->n_each; i++)
            if (root(t, c->args[i]) == leaf)
                return c->args[i];
    }
    return -1;
}

static void note_best(const Tables *t, Group *g) {
    if (g->n_leaves != 1 || !stays(t, g, g->leaf[0]))
        return;
    int source = argument(t, g, g->leaf[0]);
    if (!is_8_bits(&t->p->buffers[source]))
        return;
    g->best = g->n_calls;
    g->source = source;
}

/* The leaf that is made last, by a call that can be taken in; -1: none. */
static int next_leaf(const Tables *t, const Group *g, int64_t n) {
    int next = -1, last = -1;
    for (int i = 0; i < g->n_leaves; i++)
        if (t->of[g->leaf[i]].n && t->of[g->leaf[i]].last > last) {
            next = i;
            last = t->of[g->leaf[i]].last;
        }
    if (next < 0)
        return -1;
    const Writers *w = &t->of[g->leaf[next]];
    bool ours = w->n == 1 && w->reads == g->reads[next] && last < g->call[g->n_calls - 1] &&
                t->region[last] == t->region[g->call[0]];
    return ours && call_each(t->p, &t->p->calls[last]) == n ? next : -1;
}

static Group group_of(const Tables *t, int call, int64_t n) {
    Group g = {.source = -1};
    bool room = add_call(t, &g, call);
    for (int i = 0; room; room = add_call(t, &g, call)) {
        note_best(t, &g);
        i = next_leaf(t, &g, n);
        if (i < 0)
            break;
        call = t->of[g.leaf[i]].last;
        g.n_leaves--;
        g.leaf[i] = g.leaf[g.n_leaves];
        g.reads[i] = g.reads[g.n_leaves];
    }
    return g;
}

/* One call is worth a table where it computes with two numbers. */
static bool worth(const Tables *t, const Group *g) {
    const Call *c = &t->p->calls[g->call[0]];
    const Buffer *y = &t->p->buffers[c->args[c->n_args - 1]];
    return g->best > 1 || (g->best == 1 && c->kernel->n_each > 1 && is_8_bits(y));
}

/* ---- what they compute ---- */

/* The 256 results of the last call, in the order of the tensor's numbers. */
static const void *results(const Tables *t, const Group *g) {
    void **made = NEW_ARRAY(t->a, void *, t->p->n_buffers);
    uint8_t *x = NEW_ARRAY(t->a, uint8_t, VALUES);
    int64_t least = elem_min(t->p->buffers[g->source].elem);
    for (int i = 0; i < VALUES; i++)
        x[i] = (uint8_t)(i + least);
    made[root(t, g->source)] = x;
    for (int k = g->best; k-- > 0;) {
        const Call *c = &t->p->calls[g->call[k]];
        int last = c->n_args - 1;
        void *args[CALL_MAX_ARGS] = {NULL};
        for (int i = 0; i < c->kernel->n_each; i++)
            args[i] = made[root(t, c->args[i])];
        void *y = arena_alloc(t->a, elem_bytes(t->p->buffers[c->args[last]].elem, VALUES));
        call_each_on(t->a, t->p, c, VALUES, args, y);
        made[root(t, c->args[last])] = y;
    }
    return made[root(t, t->p->calls[g->call[0]].args[t->p->calls[g->call[0]].n_args - 1])];
}

static int add_table(Tables *t, ElemType e, const void *entries) {
    Buffer b = {.kind = BUF_CONST,
                .elem = e,
                .count = VALUES,
                .bytes = elem_bytes(e, VALUES),
                .alias = -1,
                .port = -1,
                .data = entries,
                .comment = "table"};
    ARENA_PUSH(t->a, t->p->buffers, t->p->n_buffers, t->p->cap_buffers, b);
    return (int)t->p->n_buffers - 1;
}

static void put_table(Tables *t, const Group *g, const KernelDef *kernel, int64_t n) {
    Call *c = &t->p->calls[g->call[0]];
    int y = c->args[c->n_args - 1];
    ElemType from = t->p->buffers[g->source].elem, to = t->p->buffers[y].elem;
    int args[] = {g->source, add_table(t, to, results(t, g)), y};
    qk_lut8_params p = {.n = n};
    Overlay over = {.exact = elem_bits(from) == elem_bits(to)};
    if (!over.exact)
        over.lead = lead_steps(n, elem_bits(from) / 8, elem_bits(to) / 8);
    *c = (Call){.kind = CALL_KERNEL,
                .kernel = kernel,
                .params = arena_copy(t->a, &p, sizeof p),
                .n_args = 3,
                .args = arena_copy(t->a, args, sizeof args),
                .n_overlays = 1,
                .overlays = {over},
                .node = c->node};
}

static const KernelDef *table_kernel(const Tables *t, int x, int y) {
    ElemType types[] = {t->p->buffers[x].elem, t->p->buffers[y].elem};
    return kernel_find(instance_name(t->a, "lut8", 2, types));
}

void program_make_tables(Arena *a, Program *p) {
    Tables t = look(a, p);
    bool *taken = NEW_ARRAY(a, bool, p->n_calls);
    for (size_t i = p->n_calls; i-- > 0;) {
        int64_t n = taken[i] ? 0 : call_each(p, &p->calls[i]);
        if (n < 2)
            continue;
        Group g = group_of(&t, (int)i, n);
        const Call *c = &p->calls[i];
        const KernelDef *kernel =
            worth(&t, &g) ? table_kernel(&t, g.source, c->args[c->n_args - 1]) : NULL;
        if (!kernel)
            continue;
        put_table(&t, &g, kernel, n);
        for (int k = 0; k < g.best; k++)
            taken[g.call[k]] = true;
    }
}
