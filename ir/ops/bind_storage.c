/* Nodes whose operands and results differ in storage type, where kernels take one for all: what
 * differs is converted to the common type and back. The integers and zero points move by the same
 * amount, so they stand for the same numbers: nothing is rounded twice. */
#include "ir/ops/bind_node.h"

/* What kernels take. */
static const ElemType kernels_take[] = {ELEM_INT8, ELEM_UINT8, ELEM_INT16, ELEM_UINT16};
enum { N_TAKEN = sizeof kernels_take / sizeof *kernels_take };

/* By how much integers of `from` move so that `to`, which has as many bits or more, holds all. */
static int64_t moved_by(ElemType from, ElemType to) {
    if (elem_min(from) < elem_min(to))
        return elem_min(to) - elem_min(from);
    return elem_max(from) > elem_max(to) ? elem_max(to) - elem_max(from) : 0;
}

static bool is_weight(const Node *n, size_t i) {
    const QuantRule *r = &n->def->quant;
    return r->kind == QUANT_MAC && i == (size_t)r->mac.weight;
}

/* Operand i of those that kernels want in one type; they are all data, and of a product the weight.
 */
static bool counts(const Node *n, size_t i) {
    const QuantRule *r = &n->def->quant;
    return n->in[i] && (r->kind == QUANT_MAC ? is_weight(n, i) : quant_rule_is_data(r, i));
}

static bool fits(const Value *v) {
    return quant_plain(op_quant(v)) && elem_bits(bind_elem(v)) <= 16;
}

/* Elements that are converted where all are to be of type e; -1: it does not hold them. */
static int64_t cost(const Node *n, ElemType e) {
    int64_t sum = 0;
    for (size_t i = 0; i <= n->n_in; i++) {
        if (i < n->n_in && !counts(n, i))
            continue;
        const Value *v = i < n->n_in ? n->in[i] : n->out[0];
        if (elem_bits(bind_elem(v)) > elem_bits(e))
            return -1;
        if (bind_elem(v) != e && !value_data(v))
            sum += bind_count(v);
    }
    return sum;
}

/* The narrowest type for all, and of those the one for which least is converted. */
static ElemType common_type(const Node *n) {
    ElemType best = ELEM_UNDEFINED;
    int64_t least = -1;
    for (size_t i = 0; i < N_TAKEN; i++) {
        int64_t c = cost(n, kernels_take[i]);
        bool wider = least >= 0 && elem_bits(kernels_take[i]) > elem_bits(best);
        if (c < 0 || wider || (least >= 0 && c >= least))
            continue;
        best = kernels_take[i];
        least = c;
    }
    return best;
}

/* The type that operands and result of this node are to have; ELEM_UNDEFINED: they stay. */
static ElemType wanted(const Node *n) {
    const QuantRule *r = &n->def->quant;
    if (r->kind == QUANT_MAC) {
        const Value *w = node_input(n, (size_t)r->mac.weight);
        bool is_unsigned = w && fits(w) && !elem_is_signed(bind_elem(w));
        return r->mac.computed_signed && is_unsigned && !value_data(w)
                   ? (elem_bits(bind_elem(w)) == 8 ? ELEM_INT8 : ELEM_INT16)
                   : ELEM_UNDEFINED;
    }
    if (!r->same_storage || n->n_out != 1 || !n->out[0] || !fits(n->out[0]))
        return ELEM_UNDEFINED;
    bool differ = false;
    for (size_t i = 0; i < n->n_in; i++) {
        if (!counts(n, i))
            continue;
        if (!fits(n->in[i]))
            return ELEM_UNDEFINED;
        differ = differ || bind_elem(n->in[i]) != bind_elem(n->out[0]);
    }
    return differ ? common_type(n) : ELEM_UNDEFINED;
}

const Node *bind_original(const Binder *b, const Node *n) {
    return b->stands_for ? b->stands_for : n;
}

bool bind_is_stand_in(const Binder *b) {
    return b->stands_for;
}

bool storage_differs(const Node *n) {
    return n->n_out >= 1 && wanted(n) != ELEM_UNDEFINED;
}

/* A value of the same numbers in type e, made by `def`. */
static Value *stand_in(Binder *b, const Value *v, ElemType e, Node *def) {
    const Quant *q = op_quant(v);
    int64_t by = moved_by(bind_elem(v), e);
    Quant *moved = quant_copy(b->arena, q);
    int64_t *zp = NEW_ARRAY(b->arena, int64_t, 1);
    *zp = quant_zp(q, 0) + by;
    moved->storage = e;
    moved->zp = zp;
    moved->n_zp = 1;
    moved->has_range = true;
    moved->lo = quant_lo(q) + by;
    moved->hi = quant_hi(q) + by;
    Value *s = arena_copy(b->arena, v, sizeof *v);
    s->type = type_quantized(v->type, moved);
    s->id = binder_new_slot(b);
    s->def = def;
    s->data = NULL;
    return s;
}

/* y, which the call makes, is x of another storage type. What kernels write beyond the integers of
 * y's type is the least they know (of NaN), and so is that. */
static bool convert(Binder *b, const Node *n, const Value *x, const Value *y) {
    ElemType types[] = {bind_elem(x), bind_elem(y)}, narrow = op_quant(y)->storage;
    int from, to;
    bind_each(b, n, x, y, &from, &to);
    qk_requantize_params p = {.n = bind_count(x),
                              .m = 1,
                              .xz = quant_zero(op_quant(x)),
                              .yz = quant_zero(op_quant(y)),
                              .lo = (int32_t)elem_min(narrow),
                              .hi = (int32_t)elem_max(narrow)};
    b->program->converted[b->stands_for->id] += value_data(x) ? 0 : p.n;
    return bind_call(b, n, bind_kernel(b, "requantize", 2, types), &p, sizeof p, 2,
                     (int[]){from, to});
}

bool bind_in_one_storage(Binder *b, const Node *n) {
    ElemType e = wanted(n);
    Node *s = arena_copy(b->arena, n, sizeof *n);
    const Node *outer = b->stands_for;
    const Value *y = n->out[0];
    size_t first = b->program->n_buffers;
    bool ok = true;
    s->in = arena_copy(b->arena, n->in, n->n_in * sizeof *n->in);
    s->out = arena_copy(b->arena, n->out, n->n_out * sizeof *n->out);
    b->stands_for = outer ? outer : n;
    for (size_t i = 0; ok && i < n->n_in; i++) {
        if (!counts(n, i) || bind_elem(n->in[i]) == e)
            continue;
        s->in[i] = stand_in(b, n->in[i], e, s);
        ok = convert(b, s, n->in[i], s->in[i]);
    }
    bool back = n->def->quant.kind != QUANT_MAC && bind_elem(y) != e;
    if (back)
        s->out[0] = stand_in(b, y, e, s);
    OpCtx c = op_ctx(s, b->diags);
    ok = ok && n->def->bind(b, s, &c) && (!back || convert(b, n, s->out[0], y));
    b->stands_for = outer;
    binder_forget_stand_ins(b, first);
    return ok;
}
