/* See compiler/measured_joined.h. */
#include "compiler/measured_joined.h"

#include "ir/ops/op.h"

#include <math.h>

static const double MUCH = 6; /* dB: twice the noise */

/* Which axis of the value that is looked at is each axis of the output; -1: none. */
typedef struct Axes {
    int rank; /* of the output */
    int at[MAX_RANK];
} Axes;

/* The same elements in the same order, perhaps of another type. */
static bool is_the_same(const Node *n) {
    return node_is(n, "Identity") || node_is(n, "Cast") || node_is(n, "QuantizeLinear") ||
           node_is(n, "DequantizeLinear");
}

/* Axis i of what the Transpose gives is axis perm[i] of its operand. */
static void turn(const Node *n, Axes *a) {
    const Attr *perm = node_attr(n, "perm");
    int last = n->out[0]->type.rank - 1;
    bool listed = perm && perm->kind == ATTR_INTS && (int)perm->n > last;
    for (int i = 0; i < a->rank; i++)
        if (a->at[i] >= 0)
            a->at[i] = listed ? (int)perm->v.i[a->at[i]] : last - a->at[i];
}

/* The axes before the first whose length a Reshape changes are what they were. */
static void reshape(Type from, Type to, Axes *a) {
    int same = 0;
    while (same < from.rank && same < to.rank && from.dims[same].value >= 0 &&
           from.dims[same].value == to.dims[same].value)
        same++;
    for (int i = 0; i < a->rank; i++)
        if (a->at[i] >= same)
            a->at[i] = -1;
}

static void join(const Node *n, const Axes *a, Joins *all) {
    int rank = n->out[0]->type.rank;
    int64_t axis = node_int(n, "axis", 0);
    Joined j = {0};
    axis += axis < 0 ? rank : 0;
    while (j.axis < a->rank && a->at[j.axis] != axis)
        j.axis++;
    if (j.axis == a->rank || n->n_in < 2 || n->n_in > JOINED_MOST || all->n == JOINS_MOST)
        return;
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *x = n->in[i];
        int64_t length = x && x->type.rank == rank ? x->type.dims[axis].value : -1;
        if (length < 0)
            return;
        j.length += length;
        j.name[j.n] = x->name;
        j.end[j.n++] = j.length;
    }
    all->at[all->n++] = j;
    all->one_scale |= type_is_quantized(n->out[0]->type);
}

Joins joins_of(const Value *y) {
    Joins all = {0};
    Axes a = {.rank = y->type.kind == TYPE_TENSOR ? y->type.rank : -1};
    if (a.rank < 1 || a.rank > MAX_RANK)
        return all;
    for (int i = 0; i < a.rank; i++)
        a.at[i] = i;
    for (const Node *n = y->def; n && n->n_in && n->in[0]; n = n->in[0]->def) {
        Type from = n->in[0]->type, to = n->out[0]->type;
        if (from.kind != TYPE_TENSOR || from.rank < 1 || to.kind != TYPE_TENSOR || to.rank < 1)
            break;
        if (node_is(n, "Concat"))
            join(n, &a, &all);
        else if (node_is(n, "Transpose"))
            turn(n, &a);
        else if (node_is(n, "Reshape") || node_is(n, "Flatten"))
            reshape(from, to, &a);
        else if (!is_the_same(n))
            break;
    }
    return all;
}

static void joined_add(Joined *j, Type now, const size_t *at, const double *x, const double *y,
                       size_t n) {
    size_t inner = 1;
    if (now.rank <= j->axis || now.dims[j->axis].value != j->length)
        return;
    for (int i = j->axis + 1; i < now.rank; i++)
        inner *= (size_t)now.dims[i].value;
    for (size_t i = 0; i < n; i++) {
        int64_t place = (int64_t)(at[i] / inner) % j->length;
        size_t part = 0;
        while (place >= j->end[part])
            part++;
        error_add(&j->sums[part], x + i, y + i, 1);
    }
}

void joins_add(Joins *j, Type now, const size_t *at, const double *x, const double *y, size_t n) {
    for (size_t i = 0; i < j->n; i++)
        joined_add(&j->at[i], now, at, x, y, n);
}

Str joins_worst(const Joins *j, double whole, double *sqnr) {
    Str worst = STR_NONE;
    *sqnr = whole - MUCH;
    for (size_t i = 0; i < j->n; i++)
        for (size_t k = 0; k < j->at[i].n; k++) {
            const ErrorSums *s = &j->at[i].sums[k];
            if (s->xx > 0 && error_sqnr(s) < *sqnr) {
                *sqnr = error_sqnr(s);
                worst = j->at[i].name[k];
            }
        }
    return worst;
}
