#include "passes/network.h"
#include "passes/marks.h"

#include <stddef.h>

enum {
    BUDGET = 256,  /* nodes to look at above one Softmax */
    SCALES = 8,    /* resolutions that are told apart */
    LONG_STEP = 8, /* of a convolution over a waveform: its kernel at least */
};

typedef struct Look {
    Module *m;
    NetworkSigns s;
    bool *computed; /* by value id: an input has a part in it */
    bool *near;     /* ... and no layer stands between */
    int64_t scale[SCALES];
    int left; /* of the budget */
} Look;

/* ---- rows ---- */

static const char *const names[] = {
#define NETWORK(id, name, words, sign) name,
#include "passes/network.def"
    "",
};

static const char *const in_words[] = {
#define NETWORK(id, name, words, sign) words,
#include "passes/network.def"
    "",
};

const char *network_name(NetworkKind k) {
    return names[k];
}

const char *network_words(NetworkKind k) {
    return in_words[k];
}

NetworkKind network_find(const char *name) {
    NetworkKind k = 0;
    while (k < N_NETWORKS && strcmp(names[k], name) != 0)
        k++;
    return k;
}

static const struct Sign {
    const char *domain, *op;
    size_t offset;
} signs[] = {
#define SIGN(domain, op, what) {domain, op, offsetof(NetworkSigns, what)},
#include "passes/network.def"
};

typedef enum Role {
    ROLE_WEIGHS,   /* by rows that sum up to 1 */
    ROLE_COMPARES, /* numbers that stand in an order */
    ROLE_COUNTS,   /* yields positions */
    ROLE_CUTS,     /* off a triangle */
    ROLE_JOINS,    /* tensors along an axis */
    ROLE_LOOKS_UP, /* rows of a table */
} Role;

static bool has_role(const Node *n, Role role) {
    static const struct {
        const char *op;
        Role role;
    } roles[] = {
#define ROLE(op, role) {op, ROLE_##role},
#include "passes/network.def"
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (roles[i].role == role && node_is(n, roles[i].op))
            return true;
    return false;
}

static size_t *sign_at(NetworkSigns *s, size_t offset) {
    return (size_t *)((char *)s + offset);
}

/* ---- layers ---- */

static bool is_computed(const Look *l, const Value *v) {
    return v && l->computed[v->id];
}

static bool is_product(const Node *n) {
    return n->def && n->def->quant.kind == QUANT_MAC;
}

static const Value *weight_of(const Node *n) {
    return node_input(n, (size_t)n->def->quant.mac.weight);
}

/* A product by what no input has a part in. */
static bool is_layer(const Look *l, const Node *n) {
    return is_product(n) && weight_of(n) && !is_computed(l, weight_of(n));
}

/* ---- masks ---- */

/* Of square planes, the first one: one number above the diagonal and another on it and below. */
static bool is_triangle(const Tensor *t) {
    if (!t || t->rank < 2 || t->dims[t->rank - 1] != t->dims[t->rank - 2] ||
        t->dims[t->rank - 1] < 2 || t->strings || !t->data || !t->count)
        return false;
    size_t n = (size_t)t->dims[t->rank - 1];
    double above = tensor_float(t, 1), below = tensor_float(t, n);
    bool apart = above < below || above > below;
    for (size_t i = 0; apart && i < n * n; i++) {
        double x = tensor_float(t, i), want = i % n > i / n ? above : below;
        apart = !(x < want) && !(x > want);
    }
    return apart;
}

static bool comes_of_range(const Value *v) {
    for (int steps = 0; v && v->def && steps < LONG_STEP; steps++) {
        if (has_role(v->def, ROLE_COUNTS))
            return true;
        v = node_input(v->def, 0);
    }
    return false;
}

/* Positions that are held against positions, or what cuts off a triangle. */
static bool makes_triangle(const Node *n) {
    return has_role(n, ROLE_CUTS) ||
           (has_role(n, ROLE_COMPARES) && comes_of_range(node_input(n, 0)) &&
            comes_of_range(node_input(n, 1)));
}

/* ---- attention ---- */

typedef struct Scores {
    bool products; /* of two computed values */
    bool causal;
} Scores;

/* What a Softmax reads, back to the products above it. */
static void look_above(Look *l, const Value *v, Scores *found) {
    const Node *n = v->def;
    if (l->left-- <= 0)
        return;
    found->causal = found->causal || is_triangle(v->data) || (n && makes_triangle(n));
    if (!n || has_role(n, ROLE_WEIGHS))
        return;
    if (is_product(n)) {
        found->products =
            found->products || (is_computed(l, node_input(n, 0)) && is_computed(l, weight_of(n)));
        return;
    }
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i])
            look_above(l, n->in[i], found);
}

static void look_at_softmax(Look *l, const Node *n) {
    Scores found = {0};
    l->left = BUDGET;
    if (node_input(n, 0))
        look_above(l, n->in[0], &found);
    l->s.attention += found.products;
    l->s.causal += found.products && found.causal;
}

/* Keys of earlier tokens: an input that is joined to, and goes out. */
static void look_for_past(Look *l, const Graph *g) {
    for (size_t i = 0; i < g->n_out; i++) {
        const Node *n = g->out[i]->def;
        bool joins = n && has_role(n, ROLE_JOINS) && value_rank(g->out[i]) >= 3;
        for (size_t k = 0; joins && k < n->n_in; k++)
            l->s.causal += n->in[k] && n->in[k]->kind == VALUE_INPUT && !n->in[k]->data;
    }
}

/* ---- inputs ---- */

static bool is_convolution(const Node *n) {
    return n->def->family == FAMILY_CONVOLUTION;
}

static void look_at_layer(Look *l, const Node *n) {
    const Value *w = weight_of(n), *x = node_input(n, 0);
    *(is_convolution(n) ? &l->s.convolutions : &l->s.matrices) += 1;
    if (!is_convolution(n) || !x || !l->near[x->id] || value_rank(w) < 3)
        return;
    const Attr *strides = node_attr(n, "strides");
    bool steps = strides && attr_holds(strides, ATTR_INTS) && strides->v.i[0] > 1;
    l->s.image += value_rank(w) == 4;
    l->s.waveform += value_rank(w) == 3 && w->type.dims[1].value == 1 &&
                     w->type.dims[2].value >= LONG_STEP && steps;
}

static void look_at_table(Look *l, const Node *n) {
    const Value *table = node_input(n, 0), *rows = node_input(n, 1);
    l->s.tokens += has_role(n, ROLE_LOOKS_UP) && table && value_rank(table) == 2 &&
                   !is_computed(l, table) && elem_is_float(type_real_elem(table->type)) &&
                   is_computed(l, rows) && node_int(n, "axis", 0) == 0;
}

static void note_results(Look *l, const Node *n) {
    bool near = any_marked(n->in, n->n_in, l->near) && !is_layer(l, n);
    network_mark_computed(n, l->computed);
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            l->near[n->out[i]->id] = near;
}

static void look_at_graph(Graph *g, void *ctx) {
    Look *l = ctx;
    network_mark_inputs(g, l->computed);
    if (g == l->m->graph)
        network_mark_inputs(g, l->near);
    FOR_NODES(n, g) {
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (node_is_in(n, signs[i].domain, signs[i].op))
                *sign_at(&l->s, signs[i].offset) += 1;
        l->s.causal += node_int(n, "is_causal", 0) == 1 || node_int(n, "unidirectional", 0) == 1;
        if (has_role(n, ROLE_WEIGHS))
            look_at_softmax(l, n);
        else if (is_layer(l, n))
            look_at_layer(l, n);
        else
            look_at_table(l, n);
        note_results(l, n);
    }
}

/* ---- outputs ---- */

/* [..., A, 4] beside [..., A, C]. */
static bool goes_with_boxes(const Value *boxes, const Value *other) {
    int r = value_rank(boxes), k = value_rank(other);
    return boxes != other && r >= 2 && boxes->type.dims[r - 1].value == 4 && k >= r - 1 && k >= 1 &&
           dim_equal(boxes->type.dims[r - 2], other->type.dims[r - 2]) &&
           boxes->type.dims[r - 2].value != 1;
}

static void look_for_boxes(Look *l, const Graph *g) {
    for (size_t i = 0; i < g->n_out; i++) {
        bool any = false;
        for (size_t k = 0; k < g->n_out; k++)
            any = any || goes_with_boxes(g->out[i], g->out[k]);
        l->s.boxes += any;
    }
}

static void look_at_scales(Look *l) {
    const bool *last = network_part(l->m, PART_LAST);
    FOR_NODES(n, l->m->graph) {
        bool plane = last[n->id] && is_convolution(n) && value_rank(n->out[0]) == 4;
        int64_t width = plane ? n->out[0]->type.dims[3].value : -1;
        size_t k = 0;
        while (k < l->s.scales && l->scale[k] != width)
            k++;
        if (width > 1 && k == l->s.scales && k < SCALES)
            l->scale[l->s.scales++] = width;
    }
}

/* ---- the kind ---- */

NetworkKind network_kind(Module *m, NetworkSigns *out) {
    Look l = {.m = m,
              .computed = NEW_ARRAY(m->arena, bool, m->n_values + 1),
              .near = NEW_ARRAY(m->arena, bool, m->n_values + 1)};
    module_each_graph(m, look_at_graph, &l);
    if (l.s.attention)
        look_for_past(&l, m->graph);
    look_for_boxes(&l, m->graph);
    look_at_scales(&l);
    if (out)
        *out = l.s;
    const NetworkSigns *s = &l.s;
    const bool holds[] = {
#define NETWORK(id, name, words, sign) (sign) != 0,
#include "passes/network.def"
    };
    NetworkKind k = 0;
    while (k < N_NETWORKS && !holds[k])
        k++;
    return k;
}

/* "spectr(um|a)" of 1 is "spectrum". */
static void put_fact(Buf *b, size_t n, const char *words) {
    const char *open = strchr(words, '('), *bar = strchr(open, '|'), *close = strchr(bar, ')');
    const char *ending = n == 1 ? open + 1 : bar + 1, *end = n == 1 ? bar : close;
    buf_fmt(b, "%s%zu %.*s%.*s%s", b->n ? ", " : "", n, (int)(open - words), words,
            (int)(end - ending), ending, close + 1);
}

Str network_reasons(Arena *a, const NetworkSigns *s) {
    Buf b = buf_new(a);
#define FACT(member, words)                                                                        \
    if (s->member)                                                                                 \
        put_fact(&b, s->member, words);
#include "passes/network.def"
    return buf_as_str(&b);
}
