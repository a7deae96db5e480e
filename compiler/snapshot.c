#include "compiler/snapshot.h"

#include "support/buf.h"
#include "support/map.h"

typedef enum What {
    NODES_NEW,
    NODES_GONE,
    NODES_CHANGED,
    VALUES_NEW,
    VALUES_GONE,
    VALUES_TYPED,
    CONSTANTS_CHANGED,
    N_WHAT
} What;

typedef struct Seen { /* a node or a value */
    uint64_t form;    /* a node's operator, operands and attributes; a value's name and type */
    uint64_t numbers; /* of a constant: which ones */
    bool value, again;
} Seen;

struct Snapshot {
    Arena *arena;
    Map *seen; /* by address: a module's parts stay where they are as long as it lives */
    size_t count[N_WHAT];
};

/* FNV-1a. */
static void add(uint64_t *hash, const void *data, size_t n) {
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        *hash = (*hash ^ p[i]) * 0x100000001B3u;
}

static void add_str(uint64_t *hash, Str s) {
    add(hash, &s.n, sizeof s.n);
    add(hash, s.s, s.n);
}

static void add_attr(uint64_t *hash, const Attr *a) {
    add_str(hash, a->name);
    add(hash, &a->kind, sizeof a->kind);
    add(hash, &a->n, sizeof a->n);
    if (a->kind == ATTR_INT || a->kind == ATTR_INTS)
        add(hash, a->v.i, a->n * sizeof *a->v.i);
    else if (a->kind == ATTR_FLOAT || a->kind == ATTR_FLOATS)
        add(hash, a->v.f, a->n * sizeof *a->v.f);
    else if (a->kind == ATTR_STRING || a->kind == ATTR_STRINGS)
        for (size_t i = 0; i < a->n; i++)
            add_str(hash, a->v.s[i]);
}

static uint64_t form_of_node(const Node *n) {
    uint64_t hash = 0xCBF29CE484222325u;
    add_str(&hash, n->domain);
    add_str(&hash, n->op);
    add(&hash, n->in, n->n_in * sizeof *n->in);
    add(&hash, n->out, n->n_out * sizeof *n->out);
    for (size_t i = 0; i < n->n_attrs; i++)
        add_attr(&hash, &n->attrs[i]);
    return hash;
}

static void add_shape(uint64_t *hash, Type t) {
    add(hash, &t.rank, sizeof t.rank);
    for (int i = 0; i < t.rank; i++) {
        add(hash, &t.dims[i].value, sizeof t.dims[i].value);
        add_str(hash, t.dims[i].param);
    }
}

static void add_grid(uint64_t *hash, const Quant *q) {
    add(hash, &q->grid, sizeof q->grid);
    if (q->grid != GRID_INTEGERS)
        return;
    add(hash, &q->has_range, sizeof q->has_range);
    if (q->has_range) {
        add(hash, &q->lo, sizeof q->lo);
        add(hash, &q->hi, sizeof q->hi);
    }
}

static uint64_t form_of_value(const Value *v) {
    uint64_t hash = 0xCBF29CE484222325u;
    const Quant *q = v->type.quant;
    add_str(&hash, v->name);
    add(&hash, &v->type.kind, sizeof v->type.kind);
    add(&hash, &v->type.elem, sizeof v->type.elem);
    add(&hash, &v->type.tilde, sizeof v->type.tilde);
    add_shape(&hash, v->type);
    if (q) {
        add(&hash, &q->kind, sizeof q->kind);
        add_grid(&hash, q);
        add(&hash, &q->storage, sizeof q->storage);
        add(&hash, q->scale, q->n_scale * sizeof *q->scale);
        add(&hash, q->zp, q->n_zp * sizeof *q->zp);
        add(&hash, q->axis, (size_t)q->n_axes * sizeof *q->axis);
        add(&hash, q->block, (size_t)q->n_axes * sizeof *q->block);
    }
    return hash;
}

static void keep(Snapshot *s, const void *at, Seen seen) {
    map_set_at(s->seen, at, arena_copy(s->arena, &seen, sizeof seen));
}

static void keep_nodes(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    keep(ctx, n, (Seen){.form = form_of_node(n)});
}

static uint64_t numbers_of(const Value *v) {
    return (uint64_t)(uintptr_t)v->data;
}

static void keep_value(Value *v, void *ctx) {
    keep(ctx, v, (Seen){.form = form_of_value(v), .numbers = numbers_of(v), .value = true});
}

Snapshot *snapshot_take(Module *m) {
    Arena *a = arena_scratch(m->arena);
    Snapshot *s = NEW(a, Snapshot);
    *s = (Snapshot){.arena = a, .seen = map_new(a)};
    module_each_graph(m, keep_nodes, s);
    module_each_value(m, keep_value, s);
    return s;
}

static void compare_nodes(Graph *g, void *ctx) {
    Snapshot *s = ctx;
    FOR_NODES(n, g) {
        Seen *was = map_get_at(s->seen, n);
        s->count[NODES_NEW] += !was;
        s->count[NODES_CHANGED] += was && was->form != form_of_node(n);
        if (was)
            was->again = true;
    }
}

static void compare_value(Value *v, void *ctx) {
    Snapshot *s = ctx;
    Seen *was = map_get_at(s->seen, v);
    s->count[VALUES_NEW] += !was;
    s->count[VALUES_TYPED] += was && was->form != form_of_value(v);
    s->count[CONSTANTS_CHANGED] += was && was->numbers != numbers_of(v);
    if (was)
        was->again = true;
}

const char *snapshot_changes(Snapshot *s, Module *m) {
    static const char *const words[N_WHAT] = {[NODES_NEW] = "new nodes",
                                              [NODES_GONE] = "nodes gone",
                                              [NODES_CHANGED] = "changed nodes",
                                              [VALUES_NEW] = "new values",
                                              [VALUES_GONE] = "values gone",
                                              [VALUES_TYPED] = "values of another name or type",
                                              [CONSTANTS_CHANGED] = "constants with other numbers"};
    size_t all = 0;
    module_each_graph(m, compare_nodes, s);
    module_each_value(m, compare_value, s);
    for (size_t i = 0; i < map_size(s->seen); i++) {
        const Seen *was = map_value(s->seen, i);
        s->count[was->value ? VALUES_GONE : NODES_GONE] += !was->again;
    }
    for (What w = 0; w < N_WHAT; w++)
        all += s->count[w];
    Buf b = buf_new(m->arena);
    if (!all)
        return "nothing changed";
    buf_fmt(&b, "%zu change%s", all, plural((int64_t)all));
    const char *between = ": ";
    for (What w = 0; w < N_WHAT; w++)
        if (s->count[w]) {
            buf_fmt(&b, "%s%zu %s", between, s->count[w], words[w]);
            between = ", ";
        }
    return buf_as_str(&b).s;
}

void snapshot_free(Snapshot *s) {
    if (s)
        arena_free(s->arena);
}
