/* See compiler/measured_joined.h. */
#include "compiler/measured_joined.h"

#include "ir/ops/op.h"
#include "ir/ops/reshape.h"

static const double MUCH = 6; /* dB: twice the noise */

enum { JOINS_DEEP = 3, JOINED_MOST = 32 };

/* A value on the way from the output to what it joins. */
typedef struct Way {
    int rank;                /* of the output */
    int at[MAX_RANK];        /* which axis of the value is each axis of the output; -1: none */
    int64_t begin[MAX_RANK]; /* where the value stands along each of them */
    int depth;
} Way;

/* The same elements in the same order, perhaps of another type or shape, or in another order. */
static bool moves_all(const Node *n) {
    return node_is(n, "Identity") || node_is(n, "Cast") || node_is(n, "Transpose") ||
           node_conversion(n) != CONVERT_NONE ||
           (n->def && n->def->quant.move.axis == reshape_move_axis);
}

/* From the node's result to its operand. */
static void step_back(const Node *n, Way *w) {
    OpCtx c = op_ctx(n, n->graph->module->mute);
    int (*move)(const OpCtx *, int) = n->def ? n->def->quant.move.axis : NULL;
    int from[MAX_RANK], rank = n->in[0]->type.rank;
    for (int i = 0; i < MAX_RANK; i++)
        from[i] = move ? -1 : i;
    for (int i = 0; move && i < rank; i++) {
        int to = move(&c, i);
        if (to >= 0)
            from[to] = i;
    }
    for (int i = 0; i < w->rank; i++)
        w->at[i] = w->at[i] < 0 ? -1 : from[w->at[i]];
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
    while (v->def && v->def->n_in && v->def->in[0] && node_conversion(v->def) != CONVERT_NONE)
        v = v->def->in[0];
    return v->name;
}

static void join(Parts *p, const Node *n, Way w) {
    int axis = joined_axis(n, &w);
    if (axis < 0 || w.depth++ == JOINS_DEEP)
        return;
    const Quant *q = n->out[0]->type.quant;
    bool one_scale = q && quant_is_integers(q) && quant_is_per_tensor(q);
    for (size_t i = 0; i < n->n_in; i++) {
        int64_t end = w.begin[axis] + n->in[i]->type.dims[w.at[axis]].value;
        size_t at = p->n;
        ARENA_PUSH(n->graph->module->arena, p->at, p->n, p->cap,
                   ((Part){.name = user_name(n->in[i]),
                           .axis = axis,
                           .from = w.begin[axis],
                           .to = end,
                           .one_scale = one_scale}));
        follow(p, n->in[i], w);
        p->at[at].next = p->n;
        w.begin[axis] = end;
    }
}

static void follow(Parts *p, const Value *v, Way w) {
    const Node *n = v->def;
    for (; n && n->n_in && n->in[0] && moves_all(n); n = n->in[0]->def) {
        Type from = n->in[0]->type, to = n->out[0]->type;
        if (from.kind != TYPE_TENSOR || from.rank < 1 || from.rank > MAX_RANK || to.rank < 1)
            return;
        step_back(n, &w);
    }
    if (n && node_is(n, "Concat") && n->out[0]->type.rank >= 1)
        join(p, n, w);
}

Parts parts_of(const Value *y) {
    Parts p = {.rank = y->type.kind == TYPE_TENSOR ? y->type.rank : -1};
    Way w = {.rank = p.rank};
    if (w.rank < 1 || w.rank > MAX_RANK)
        return p;
    for (int i = 0; i < w.rank; i++)
        w.at[i] = i;
    follow(&p, y, w);
    return p;
}

void parts_add(Parts *p, Type now, const size_t *at, const double *x, const double *y, size_t n) {
    int64_t step[MAX_RANK], count = 1;
    if (!p->n || now.rank != p->rank)
        return;
    for (int i = now.rank - 1; i >= 0; i--) {
        step[i] = count;
        count *= now.dims[i].value;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < p->n;) {
            Part *part = &p->at[k];
            int64_t place = (int64_t)at[i] / step[part->axis] % now.dims[part->axis].value;
            bool inside = place >= part->from && place < part->to;
            if (inside)
                error_add(&part->sums, x + i, y + i, 1);
            k = inside ? k + 1 : part->next;
        }
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
