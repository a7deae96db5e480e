/* Accumulators as values (int32q at the product of the scales), for ONNX:
 *
 *   MatMul of 8-bit integers          MatMulInteger
 *   Add of int32 on the same grid     Add, of int32
 *   DequantizeLinear of such a sum    Cast to float, Mul by the product of the scales
 *
 * which is what the recipe QDQ_OP_INT32_BIAS is in both forms. */
#include "passes/lower/lower_spelling.h"

/* ---- MatMul ---- */

static bool is_byte(const Quant *q) {
    return q && q->kind == QUANT_PARAMS && elem_bits(q->storage) == 8;
}

/* The result is the sum itself: int32 whose scales are the products. */
static bool yields_accumulator(const Lower *l, const Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    if (!r || r->kind != QUANT_MAC || r->mac.bias || n->n_in <= (size_t)r->mac.weight ||
        n->n_out != 1)
        return false;
    const Quant *x = lower_quant(l, n->in[0]), *w = lower_quant(l, n->in[r->mac.weight]);
    const Quant *y = lower_quant(l, n->out[0]);
    int rank = n->out[0] ? n->out[0]->type.rank : -1;
    if (!is_byte(x) || !is_byte(w) || !y || y->kind != QUANT_PARAMS || y->storage != ELEM_INT32 ||
        y->has_range || !quant_is_per_tensor(x) || !quant_zp_all_zero(y) ||
        y->n_scale != w->n_scale || y->n_axes != w->n_axes || w->n_axes > 1 ||
        (w->n_axes &&
         (w->axis[0] != n->in[r->mac.weight]->type.rank - 1 || y->axis[0] != rank - 1)))
        return false;
    for (size_t i = 0; i < w->n_scale; i++)
        if (quant_scale(y, i) != quant_scale(x, 0) * quant_scale(w, i))
            return false;
    return true;
}

/* One for all columns where they are equal. */
static Value *weight_zero_point(Lower *l, const Value *w, const Quant *q) {
    size_t n = q->n_zp ? q->n_zp : 1;
    uint8_t *bytes = arena_alloc(l->b.a, n);
    bool same = true;
    for (size_t i = 0; i < n; i++) {
        elem_store_int(q->storage, bytes, i, quant_zp(q, i));
        same = same && bytes[i] == bytes[0];
    }
    int64_t dims = (int64_t)n;
    return build_const(&l->b, base_name(w->name), "_zero_point", q->storage, !same, &dims, bytes);
}

static void lower_product(Lower *l, Node *n) {
    Value *x = n->in[0], *w = n->in[n->def->quant.mac.weight];
    Value *zp = weight_zero_point(l, w, lower_quant(l, w));
    Node *to = build_node(&l->b, n, "MatMulInteger", lower_quant_name(l, n),
                          OPERANDS(lower_ints(l, x), lower_ints(l, w), NULL, zp));
    to->doc = n->doc;
    to->meta = n->meta;
    QuantParams p = quant_constants(&l->b, lower_quant(l, x), x->type, base_name(x->name));
    to->in[2] = spelled_params(l, x, to, p).zp;
    build_in_place(&l->b, n, to);
    lower_result(l, to, 0);
}

bool lower_sums_integers(const Lower *l, const Node *n) {
    return yields_accumulator(l, n) || op_adds_integers(n);
}

bool lower_accumulator(Lower *l, Node *n) {
    if (yields_accumulator(l, n)) {
        lower_product(l, n);
        return true;
    }
    if (!op_adds_integers(n))
        return false;
    lower_on_integers(l, n);
    return true;
}

/* ---- to float ---- */

/* Integers that lower_product made, or their sum with others. */
static bool is_sum(const Value *v) {
    for (size_t i = 0; v->def && v->def->def && v->def->def->quant.adds && i < v->def->n_in; i++)
        if (v->def->in[i]->def && is_integer_product(v->def->in[i]->def))
            return true;
    return v->def && is_integer_product(v->def);
}

bool lower_accumulator_to_float(Lower *l, Node *n) {
    Value *x = lower_ints(l, n->in[0]), *y = n->out[0];
    const Quant *q = lower_quant(l, n->in[0]);
    if (q->storage != ELEM_INT32 || q->kind != QUANT_PARAMS || !quant_zp_all_zero(q) ||
        q->expressed != ELEM_FLOAT || !is_sum(x))
        return false;
    int64_t count = (int64_t)q->n_scale;
    Value *scale = build_floats(&l->b, base_name(y->name), "_scales", ELEM_FLOAT, q->n_axes != 0,
                                &count, q->scale);
    Node *cast = build_node(&l->b, n, "Cast", STR_NONE, OPERANDS(x));
    node_set_int(cast, "to", ELEM_FLOAT);
    Value *sums = build_before(&l->b, n, cast, base_name(y->name), "_cast", real_type(y->type));
    build_in_place(&l->b, n, build_node(&l->b, n, "Mul", n->name, OPERANDS(sums, scale)));
    return true;
}
