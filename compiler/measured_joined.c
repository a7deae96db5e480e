/* See compiler/measured_joined.h. */
#include "compiler/measured_joined.h"

#include "ir/ops/op.h"

static const double MUCH = 6; /* dB: twice the noise */

/* A value on the way from the output to what it joins. */
typedef struct Way {
    int rank;         /* of the output */
    int at[MAX_RANK]; /* which axis of the value is each axis of the output; -1: none */
    Stretch stretch[JOINS_DEEP];
    int n_stretches;
} Way;

/* The same elements in the same order, perhaps of another type. */
static bool is_the_same(const Node *n) {
    return node_is(n, "Identity") || node_is(n, "Cast") || node_is(n, "QuantizeLinear") ||
           node_is(n, "DequantizeLinear");
}

/* Axis i of what the Transpose gives is axis perm[i] of its operand. */
static void turn(const Node *n, Way *w) {
    const Attr *perm = node_attr(n, "perm");
    int last = n->out[0]->type.rank - 1;
    bool listed = perm && perm->kind == ATTR_INTS && (int)perm->n > last;
    for (int i = 0; i < w->rank; i++)
        if (w->at[i] >= 0)
            w->at[i] = listed ? (int)perm->v.i[w->at[i]] : last - w->at[i];
}

/* The axes before the first whose length a Reshape changes are what they were. */
static void reshape(Type from, Type to, Way *w) {
    int same = 0;
    while (same < from.rank && same < to.rank && from.dims[same].value >= 0 &&
           from.dims[same].value == to.dims[same].value)
        same++;
    for (int i = 0; i < w->rank; i++)
        if (w->at[i] >= same)
            w->at[i] = -1;
}

/* The axis of the output that a Concat joins along; -1: none is, or lengths are not known. */
static int joined_axis(const Node *n, const Way *w) {
    int rank = n->out[0]->type.rank, i = 0;
    int64_t axis = node_int(n, "axis", 0);
    axis += axis < 0 ? rank : 0;
    while (i < w->rank && w->at[i] != axis)
        i++;
    bool known = i < w->rank && n->n_in > 1 && n->n_in <= JOINED_MOST;
    for (size_t k = 0; known && k < n->n_in; k++)
        known = n->in[k] && n->in[k]->type.rank == rank && n->in[k]->type.dims[axis].value >= 0;
    return known ? i : -1;
}

static void follow(Parts *p, const Value *v, Way w);

/* As it is called before it is quantized or dequantized to be joined. */
static Str user_name(const Value *v) {
    while (v->def && v->def->n_in && v->def->in[0] &&
           (node_is(v->def, "QuantizeLinear") || node_is(v->def, "DequantizeLinear")))
        v = v->def->in[0];
    return v->name;
}

static void join(Parts *p, const Node *n, Way w) {
    int axis = joined_axis(n, &w);
    if (axis < 0 || w.n_stretches == JOINS_DEEP)
        return;
    const Quant *q = n->out[0]->type.quant;
    Stretch *own = &w.stretch[w.n_stretches++];
    *own = (Stretch){.axis = axis};
    for (int i = 0; i < w.n_stretches - 1; i++) /* in a part of the same axis, it begins there */
        if (w.stretch[i].axis == axis)
            own->to = w.stretch[i].from;
    for (size_t i = 0; i < n->n_in; i++) {
        own->from = own->to;
        own->to += n->in[i]->type.dims[w.at[axis]].value;
        Part part = {.name = user_name(n->in[i]),
                     .n_stretches = w.n_stretches,
                     .one_scale = q && quant_is_integers(q) && quant_is_per_tensor(q)};
        memcpy(part.stretch, w.stretch, sizeof part.stretch);
        ARENA_PUSH(n->graph->module->arena, p->at, p->n, p->cap, part);
        follow(p, n->in[i], w);
    }
}

static void follow(Parts *p, const Value *v, Way w) {
    for (const Node *n = v->def; n && n->n_in && n->in[0]; n = n->in[0]->def) {
        Type from = n->in[0]->type, to = n->out[0]->type;
        if (from.kind != TYPE_TENSOR || from.rank < 1 || to.kind != TYPE_TENSOR || to.rank < 1)
            return;
        if (node_is(n, "Concat")) {
            join(p, n, w);
            return;
        }
        if (node_is(n, "Transpose"))
            turn(n, &w);
        else if (node_is(n, "Reshape") || node_is(n, "Flatten"))
            reshape(from, to, &w);
        else if (!is_the_same(n))
            return;
    }
}

Parts parts_of(const Value *y) {
    Parts p = {0};
    Way w = {.rank = y->type.kind == TYPE_TENSOR ? y->type.rank : -1};
    if (w.rank < 1 || w.rank > MAX_RANK)
        return p;
    for (int i = 0; i < w.rank; i++)
        w.at[i] = i;
    follow(&p, y, w);
    return p;
}

static bool is_inside(const Part *p, Type now, size_t at) {
    for (int i = 0; i < p->n_stretches; i++) {
        const Stretch *w = &p->stretch[i];
        size_t inner = 1;
        for (int k = w->axis + 1; k < now.rank; k++)
            inner *= (size_t)now.dims[k].value;
        int64_t place = (int64_t)(at / inner) % now.dims[w->axis].value;
        if (place < w->from || place >= w->to)
            return false;
    }
    return true;
}

void parts_add(Parts *p, Type now, const size_t *at, const double *x, const double *y, size_t n) {
    for (size_t k = 0; k < p->n; k++)
        for (size_t i = 0; i < n; i++)
            if (is_inside(&p->at[k], now, at[i]))
                error_add(&p->at[k].sums, x + i, y + i, 1);
}

const Part *parts_worst(const Parts *p, double whole) {
    const Part *worst = NULL;
    double least = whole - MUCH;
    for (size_t i = 0; i < p->n; i++) {
        const ErrorSums *s = &p->at[i].sums;
        if (s->xx > 0 && error_sqnr(s) < least) {
            least = error_sqnr(s);
            worst = &p->at[i];
        }
    }
    return worst;
}
