/* True-quant to QDQ: each operator computes in float between DequantizeLinear and QuantizeLinear,
 * in the arrangement that onnxruntime recognises: a DequantizeLinear on every operand (constants
 * included), one QuantizeLinear on every result, zero points always written out, and equal
 * parameters sharing one constant. */
#include "passes/emulate.h"
#include "passes/lower.h"

/* y -> Relu -> z on one grid, where the Relu does not change integers: no conversion between them.
 * That is exact, and the only form that onnxruntime fuses. Where the Relu does cut, one stands
 * between, so that at least the operator before it is fused; that is exact too. */
static bool stays_float(Lower *l, const Value *y) {
    Node *user = lower_only_user(l, y);
    if (!user || user->graph != y->graph || !user->def || user->def->quant.kind != QUANT_CLAMP ||
        user->in[0] != y)
        return false;
    const Quant *q = lower_quant(l, y), *z = lower_quant(l, user->out[0]);
    return q && z && quant_equal(q, z) && clamp_is_noop(user, q);
}

/* Movers of what ONNX's conversions cannot state move the integers themselves. */
static bool moves_emulated(const Lower *l, const Node *n) {
    const Quant *q = n->def && n->n_in ? lower_quant(l, n->in[0]) : NULL;
    return q && (n->def->quant.kind == QUANT_MOVE || n->def->quant.kind == QUANT_ORDER) &&
           emulates_quantize(&l->b, q) && same_quant(n) && !integer_refusal(n, l->c->target);
}

static void lower_node(Lower *l, Node *n) {
    if (moves_emulated(l, n)) {
        lower_on_integers(l, n);
        return;
    }
    for (size_t i = 0; i < n->n_in; i++)
        n->in[i] = n->in[i] ? lower_float(l, n->in[i], n) : NULL;
    for (size_t i = 0; i < n->n_out; i++) {
        Value *y = n->out[i];
        if (!lower_quant(l, y))
            continue;
        if (stays_float(l, y)) {
            l->types[y->id] = real_type(y->type);
            l->floats[y->id] = y;
        } else {
            lower_float_result(l, n, i);
        }
    }
}

bool pass_lower_qdq(Module *m, PassContext *c) {
    if (!legal_prepare(m, c))
        return false;
    Lower l = {.b = quant_build_new(m, c, "lower-qdq"), .c = c, .node = lower_node};
    lower_module(&l, m);
    guard_fusions(&l.b, m, c->target);
    return true;
}
