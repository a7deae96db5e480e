/* Operators that depend on the order of numbers alone read the integers: ArgMax of what a
 * DequantizeLinear makes is ArgMax of what it reads, as scales are above 0 and float32 tells all
 * integers of up to 16 bits apart. A float Softmax between them keeps the largest where it is, as
 * far as scales go at which e^x differs. IsNaN and IsInf are false of all that integers stand for,
 * and Where that asks them takes its third operand (the safe softmax of torch). Conversions that
 * nobody else needs go. */
#include "passes/edit.h"
#include "passes/quant_build.h"

#include <float.h>
#include <math.h>

typedef struct Order {
    PassContext *c;
    Node **freed; /* whose results have one reader less */
    size_t n_freed, cap_freed;
    Module *m;
    QuantBuild b;
    const Uses *uses;
} Order;

/* What x was dequantized from, if its order is that of the integers. */
static Value *integers_of(const Value *x, float least) {
    const Node *d = x ? x->def : NULL;
    if (!d || !is_own_dequantize(d) || !d->in[0]->type.quant)
        return NULL;
    const Quant *q = d->in[0]->type.quant;
    if (q->kind != QUANT_PARAMS || !quant_is_per_tensor(q) || elem_bits(q->storage) > 16)
        return NULL;
    float scale = quant_scale(q, 0);
    return scale >= least && scale <= FLT_MAX / 0x1p20f ? d->in[0] : NULL;
}

static void freed(Order *o, Node *n) {
    for (size_t i = 0; i < o->n_freed; i++)
        if (o->freed[i] == n)
            return;
    ARENA_PUSH(o->m->arena, o->freed, o->n_freed, o->cap_freed, n);
}

static void read_integers(Order *o, Node *n) {
    enum { APART = 16 }; /* e^(2^-16) is far from 1 in float32 */
    OpCtx c = op_ctx(n, o->c->d);
    int axis, along;
    Value *x = n->n_in ? n->in[0] : NULL;
    if (!x || !n->def->ranks(&c, &axis))
        return;
    Value *ints = integers_of(x, FLT_MIN);
    Node *between = x->def;
    if (!ints && between && between->def && between->def->keeps_largest) {
        OpCtx b = op_ctx(between, o->c->d);
        if (n->def->ranks_largest && between->def->keeps_largest(&b, &along) && along == axis)
            ints = integers_of(between->in[0], 1.0f / (1 << APART));
        if (ints)
            freed(o, between);
    }
    if (!ints)
        return;
    freed(o, ints == between->in[0] ? between : between->in[0]->def);
    node_becomes(n, "order-integers");
    n->in[0] = ints;
}

/* ---- what is false of integers ---- */

/* What x was dequantized from, if all of it is finite, in float16 as well. */
static Value *finite_integers_of(const Value *x) {
    const Node *d = x ? x->def : NULL;
    if (!d || !is_own_dequantize(d) || !d->in[0]->type.quant)
        return NULL;
    const Quant *q = d->in[0]->type.quant;
    int bits = elem_bits(q->storage);
    double most = x->type.elem == ELEM_FLOAT     ? (double)FLT_MAX
                  : x->type.elem == ELEM_FLOAT16 ? 65504.0
                                                 : 0.0;
    if (q->kind != QUANT_PARAMS || q->wide_zp || bits > 32)
        return NULL;
    for (size_t i = 0; i < q->n_scale; i++)
        if (!((double)quant_scale(q, i) * ldexp(1.0, bits) <= most))
            return NULL;
    return d->in[0];
}

/* Whether the result of a Where is as large as its operands without the condition. */
static bool large_enough(const Node *where) {
    Type t = where->out[0]->type;
    for (size_t i = 1; i < 3; i++)
        if (type_same_shape(where->in[i]->type, t))
            return true;
    return false;
}

static void answer_where(Order *o, const Value *asked) {
    const Use *use;
    size_t n = uses_of(o->uses, asked, &use);
    const uint8_t no = 0;
    Value *never = NULL;
    for (size_t i = 0; i < n; i++) {
        Node *where = use[i].node;
        if (!where || !where->def || !where->def->quant.selects || use[i].index != 0 ||
            where->graph != asked->graph || !large_enough(where))
            continue;
        if (!never)
            never = build_const(&o->b, asked->name, "_never", ELEM_BOOL, 0, NULL, &no);
        where->in[0] = never;
    }
}

static void answer(Order *o, Node *n) {
    Value *ints = finite_integers_of(n->n_in ? n->in[0] : NULL);
    if (!ints)
        return;
    freed(o, n);
    freed(o, n->in[0]->def);
    node_becomes(n, "order-integers");
    n->in[0] = ints;
    answer_where(o, n->out[0]);
}

static void order_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g) {
        if (n->def && n->def->ranks)
            read_integers(ctx, n);
        if (n->def && n->def->false_of_integers)
            answer(ctx, n);
    }
}

bool pass_order_integers(Module *m, PassContext *c) {
    Order o = {.c = c, .m = m, .b = quant_build_new(m, c, "order-integers"), .uses = uses_new(m)};
    const Use *use;
    module_each_graph(m, order_graph, &o);
    for (size_t i = 0; i < o.n_freed; i++) /* a Softmax before what it reads */
        if (uses_of(uses_new(m), o.freed[i]->out[0], &use) == 0)
            node_remove(o.freed[i]);
    return true;
}
