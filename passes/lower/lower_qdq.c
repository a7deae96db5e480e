/* True-quant to QDQ: each operator computes in float between DequantizeLinear and QuantizeLinear,
 * in the arrangement that onnxruntime recognises: a DequantizeLinear on every operand (constants
 * included), one QuantizeLinear on every result, zero points always written out, and equal
 * parameters sharing one constant. */
#include "passes/lower/lower_spelling.h"
#include "passes/emulate.h"

/* y -> Relu -> z on one grid, where the Relu does not change integers: no conversion between them.
 * That is exact, and the only form that onnxruntime fuses. Where the Relu does cut, one stands
 * between, so that at least the operator before it is fused; that is exact too, as cutting commutes
 * with rounding. TensorRT fuses operator and Relu before a Q whatever it cuts. */
static bool stays_float(Lower *l, const Value *y) {
    Node *user = uses_only_node(l->uses, y);
    if (!user || user->graph != y->graph || !user->def || user->def->quant.kind != QUANT_CLAMP ||
        user->in[0] != y)
        return false;
    const Quant *q = lower_quant(l, y), *z = lower_quant(l, user->out[0]);
    return q && z && quant_equal(q, z) && (clamp_is_noop(user, q) || l->c->target->takes_relu);
}

/* Movers of what ONNX's conversions cannot state move the integers themselves. */
static bool moves_emulated(const Lower *l, const Node *n) {
    const Quant *q = n->def && n->n_in ? lower_quant(l, n->in[0]) : NULL;
    return q && (n->def->quant.kind == QUANT_MOVE || n->def->quant.kind == QUANT_ORDER) &&
           emulates_quantize(&l->b, q) && same_quant(n);
}

/* Makes no other numbers than it reads, be it fewer. */
static bool hands_on(const Node *n) {
    QuantClass k = n->def ? n->def->quant.kind : QUANT_NEVER;
    return node_moves(n) || k == QUANT_CLAMP || k == QUANT_JOIN;
}

/* What the lowered node reads as data has all been integers. */
static bool reads_integers(const Lower *l, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *x = n->in[i];
        if (x && quant_rule_is_data(&n->def->quant, i) && !onnx_dequantize_of(x) &&
            !(x->id < l->n && l->exact[x->id]))
            return false;
    }
    return true;
}

/* A node that hands on the numbers it reads cuts them off at one that stands on their grid too. */
static bool cuts_on_grid(const Lower *l, const Node *n) {
    return n->def->quant.kind != QUANT_CLAMP || n->def->quant.cuts_at_zero ||
           clamp_is_noop(n, lower_quant(l, n->out[0]));
}

/* Rows of a table are looked up before they are dequantized: the table is large, the rows are few.
 */
static bool looks_up_integers(const Lower *l, const Node *n) {
    return n->def && n->def->quant.move.looks_up && value_is_const(n->in[0]) &&
           lower_quant(l, n->in[0]) && lower_quant(l, n->out[0]) && !l->c->target->no_integers;
}

/* Everything that reads y stands in its graph and would read it as float. */
static bool is_read_as_float(const Lower *l, const Value *y) {
    const Use *uses;
    size_t n = uses_of(l->uses, y, &uses);
    for (size_t i = 0; i < n; i++)
        if (!uses[i].node || uses[i].node->graph != y->graph || has_bodies(uses[i].node) ||
            lower_sums_integers(l, uses[i].node) || is_reinterpret(uses[i].node))
            return false;
    return true;
}

/* In ONNX y had no Q of its own, and still needs none: it is what was dequantized and lies on its
 * grid, or reaches a Q of the same grid through nodes that commute with rounding. */
static bool stays_plain(Lower *l, bool on_grid, const Value *y) {
    if (!spelled_plain(y, "float") || !is_read_as_float(l, y))
        return false;
    if (on_grid)
        return l->exact[y->id] = true;
    const Quant *q = lower_quant(l, y);
    for (const Value *v = y;;) {
        Node *user = uses_only_node(l->uses, v);
        QuantClass k = user && user->def ? user->def->quant.kind : QUANT_NEVER;
        if (!user || user->graph != y->graph || user->in[0] != v || user->n_out != 1 ||
            !(k == QUANT_CLAMP || node_moves(user)) || !quant_is_per_tensor(q) ||
            !lower_quant(l, user->out[0]) || !quant_equal(q, lower_quant(l, user->out[0])))
            return false;
        v = user->out[0];
        if (!spelled_plain(v, "float"))
            return !spelled_plain(v, "integers");
    }
}

/* Of a result of part of a range the Clip of the integers cuts what this Relu would. onnxruntime
 * looks for that in a QuantizeLinear alone, and would not fuse the operator before: the Relu goes.
 */
static bool drop_clamp(Lower *l, Node *n) {
    if (!n->def || n->def->quant.kind != QUANT_CLAMP || !l->c->target->drops_relu)
        return false;
    Value *x = n->in[0], *y = n->out[0];
    const Quant *q = lower_quant(l, y);
    if (!q || !lower_quant(l, x) || !same_quant(n) || l->floats[x->id] != x ||
        !lower_clips_behind(l, q, y) || !clamp_is_noop(n, q))
        return false;
    Quant *whole = quant_copy(l->b.a, onnx_quant(&l->b, q));
    whole->has_range = false;
    if (clamp_is_noop(n, whole))
        return false;
    Node *before = x->def;
    node_take_result(before, (size_t)x->index, y);
    node_absorb(before, n, l->b.pass);
    node_remove(n);
    lower_float_result(l, before, (size_t)y->index);
    return true;
}

static void lower_node(Lower *l, Node *n) {
    if (lower_dynamic(l, n) || lower_accumulator(l, n) || drop_clamp(l, n))
        return;
    if ((moves_emulated(l, n) || looks_up_integers(l, n)) && !lower_mover(l, n))
        return;
    bool ints = n->n_out && n->out[0] && spelled_plain(n->out[0], "integers") &&
                (node_moves(n) || (n->def && n->def->quant.kind == QUANT_JOIN)) && same_quant(n) &&
                !l->c->target->no_integers;
    if (ints && !lower_mover(l, n))
        return;
    bool same = hands_on(n) && same_quant(n);
    bool on_grid = same && cuts_on_grid(l, n);
    for (size_t i = 0; i < n->n_in; i++)
        n->in[i] = n->in[i] ? lower_float(l, n->in[i], n) : NULL;
    l->within = same && reads_integers(l, n);
    on_grid = on_grid && l->within;
    for (size_t i = 0; i < n->n_out; i++) {
        Value *y = n->out[i];
        if (!lower_quant(l, y))
            continue;
        if (stays_float(l, y) || stays_plain(l, on_grid, y)) {
            l->types[y->id] = real_type(y->type);
            l->floats[y->id] = y;
        } else {
            lower_float_result(l, n, i);
        }
    }
    l->within = false;
}

bool pass_lower_qdq(Module *m, PassContext *c) {
    if (!legal_prepare(m, c))
        return false;
    Lower l = {.b = quant_build_new(m, c, "lower-qdq"), .c = c, .node = lower_node};
    uint32_t first = m->n_nodes;
    lower_module(&l, m);
    lower_form_finish(&l, m, first);
    if (c->keep_float_weights && !l.kept_float)
        diag_warning(c->d, LOC_NONE,
                     "-keep-float-weights has no effect: the model has no float numbers that a "
                     "QuantizeLinear alone makes its integers of");
    guard_fusions(&l.b, m, c->target);
    return true;
}
