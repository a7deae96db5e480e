/* See exec/picks.h. */
#include "exec/picks.h"
#include "exec/partial.h"
#include "ir/ops/op.h"

typedef struct Named {
    Picks *p;
    const PickedBy *const *by; /* NULL: those whose names are known */
    Arena *arena;
} Named;

/* Bodies of several nodes may use the same names: with a body's goes that of the node of the main
 * graph that it stands in. */
static Str name_of(Arena *a, const Value *v) {
    const Node *in = v->graph->owner ? in_main_graph(v->graph->owner) : NULL;
    const Value *y = in && in->n_out ? in->out[0] : NULL;
    return y ? arena_strf(a, STR_FMT "\n" STR_FMT, STR_ARG(y->name), STR_ARG(v->name)) : v->name;
}

static void name_one(Named *x, const Value *v) {
    Picks *p = x->p;
    Str name = name_of(x->arena, v);
    size_t *at = map_get(p->names, name);
    if (!at && !x->by)
        return;
    if (!at) {
        at = NEW(x->arena, size_t);
        *at = p->n++;
        map_set(p->names, name, at);
    }
    p->at[v->id] = (int)*at;
}

static void name_counted(Value *v, void *ctx) {
    Named *x = ctx;
    if (!x->by || value_is_counted(v))
        name_one(x, v);
}

static Picks *all_unnamed(Module *m, Map *names, size_t n) {
    Picks *p = NEW(m->arena, Picks);
    *p = (Picks){.at = NEW_ARRAY(m->arena, int, m->n_values),
                 .names = names,
                 .n = n,
                 .n_values = m->n_values};
    for (uint32_t i = 0; i < m->n_values; i++)
        p->at[i] = -1;
    return p;
}

static void note(Value *v, void *ctx) {
    Picks *p = ctx;
    int at = p->at[v->id];
    if (at < 0)
        return;
    p->sums[at].known = true;
    p->counted[at] = p->counted[at] || value_is_counted(v);
}

static Picks *all_named(Picks *p, Module *m) {
    p->sums = NEW_ARRAY(m->arena, PickSum, p->n);
    p->counted = NEW_ARRAY(m->arena, bool, p->n);
    module_each_value(m, note, p);
    return p;
}

Picks *picks_new(Module *m) {
    Picks *p = all_unnamed(m, map_new(m->arena), 0);
    Named x = {p, choice_picks(m), m->arena};
    module_each_value(m, name_counted, &x);
    FOR_NODES(n, m->graph)
    for (const PickedBy *by = x.by[n->id]; by; by = by->next)
        name_one(&x, by->value);
    return all_named(p, m);
}

Picks *picks_like(Module *m, const Picks *other) {
    Picks *p = all_unnamed(m, other->names, other->n);
    Named x = {p, NULL, m->arena};
    module_each_value(m, name_counted, &x);
    return all_named(p, m);
}

void picks_start(Picks *p) {
    for (size_t i = 0; i < p->n; i++)
        p->sums[i] = (PickSum){.known = p->sums[i].known};
}

/* FNV-1a, by words. */
static uint64_t mixed(uint64_t sum, uint64_t x) {
    return (sum ^ x) * 0x100000001b3u;
}

static uint64_t sum_of(Type now, const void *data, size_t count, size_t times) {
    enum { AT_ONCE = 64 };
    double x[AT_ONCE];
    uint64_t sum = mixed(mixed(0xcbf29ce484222325u, times), count);
    const unsigned char *from = data;
    size_t size = (size_t)elem_bits(elem_unpacked(now.elem)) / 8;
    if (elem_is_float(type_real_elem(now)) || now.elem == ELEM_STRING)
        return sum;
    for (size_t i = 0; i < count; i += AT_ONCE) {
        size_t n = count - i < AT_ONCE ? count - i : AT_ONCE;
        type_reals(now, from + i * size, n, x);
        for (size_t k = 0; k < n; k++) {
            uint64_t word;
            memcpy(&word, &x[k], sizeof word);
            sum = mixed(sum, word ^ word >> 32);
        }
    }
    return sum;
}

void picks_see(Picks *p, const Value *v, Type now, const void *data) {
    size_t count;
    int at = v->id < p->n_values ? p->at[v->id] : -1;
    if (at < 0 || now.kind != TYPE_TENSOR || !type_count(now, &count))
        return;
    PickSum *s = &p->sums[at];
    s->sum += sum_of(now, data, count, s->times++);
}

bool picks_chose_alike(const Picks *p, const PickSum *other) {
    for (size_t i = 0; i < p->n; i++) {
        const PickSum *s = &p->sums[i];
        if (p->counted[i] && s->times && s->times == other[i].times && s->sum != other[i].sum)
            return false;
    }
    return true;
}

Others others_new(Module *m, const PickedBy *const *by, const Uses *uses) {
    return (Others){m, uses, by, NEW_ARRAY(m->arena, bool, m->n_nodes)};
}

void others_start(Others *o) {
    memset(o->nodes, 0, o->m->n_nodes * sizeof *o->nodes);
}

/* What one of both does not have is taken for the same. */
static bool differs(const Picks *p, const PickSum *other, const Value *v) {
    int at = v->id < p->n_values ? p->at[v->id] : -1;
    return at >= 0 && other[at].known &&
           (p->sums[at].times != other[at].times || p->sums[at].sum != other[at].sum);
}

void others_look(Others *o, const Node *n, const Picks *p, const PickSum *other) {
    bool found = false;
    for (const PickedBy *by = o->by[n->id]; by && !o->nodes[n->id] && !found; by = by->next)
        found = differs(p, other, by->value);
    if (!found)
        return;
    o->nodes[n->id] = true;
    for (; n; n = n->next)
        if (o->nodes[n->id])
            choice_mark_users(o->uses, n, o->nodes);
}

bool is_other(const Others *o, const Value *v) {
    return v->kind == VALUE_NODE && o->nodes[in_main_graph(v->def)->id];
}
