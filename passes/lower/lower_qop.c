/* True-quant to QOperators. In this order of preference a node on quantized values
 *   disappears       (Relu and Clip that change no integer),
 *   runs on integers (movers, MaxPool, Clip with bounds on the grid),
 *   becomes its QOperator (QLinearConv, com.microsoft::QGemm, ...), or
 *   computes in float between DequantizeLinear and QuantizeLinear, with a remark why.
 * Values keep their names and say what their integers mean (`int8 ~ !q`). */
#include "passes/lower/lower_spelling.h"
#include "ir/ops/qop.h"
#include "passes/edit.h"
#include "passes/lower/lower_widen.h"
#include "target/ort_kernels.h"
#include "passes/params.h"

/* ---- QOperators ---- */

/* onnxruntime's own operators want scalars; ONNX's take [1] as well, as other tools write it. */
static QuantParams as_file_has(Lower *l, const Value *v, const Node *to, QuantParams p) {
    QuantParams own = spelled_params(l, v, to, p);
    bool scalars = str_is(to->domain, "com.microsoft");
    if (scalars && value_rank(p.scale) == 0 && value_rank(own.scale) != 0)
        own.scale = p.scale;
    if (scalars && value_rank(p.zp) == 0 && value_rank(own.zp) != 0)
        own.zp = p.zp;
    return own;
}

static void put_params(Lower *l, Node *to, int scale, int zp, const Value *v) {
    if (scale < 0)
        return;
    QuantParams p = quant_constants(&l->b, lower_quant(l, v), v->type, base_name(v->name));
    p = as_file_has(l, v, to, p);
    to->in[scale] = p.scale;
    to->in[zp] = p.zp;
}

static void trim_operands(Node *n) {
    while (n->n_in && !n->in[n->n_in - 1])
        n->n_in--;
}

static void replace_node(Node *old, Node *with) {
    with->doc = old->doc;
    with->meta = old->meta;
    const Origin *o = with->from.n == 1 ? with->from.from : NULL;
    if (o && str_eq(o->op, with->op) && str_eq(o->name, with->name) && o->name.n)
        with->from = (Provenance){0}; /* it is what it was before raising */
    node_insert_before(old, with);
    node_remove(old);
}

static void copy_attrs(Lower *l, const Node *from, Node *to) {
    to->n_attrs = from->n_attrs;
    to->attrs = arena_copy(l->b.a, from->attrs, from->n_attrs * sizeof *from->attrs);
}

static void use_microsoft(Lower *l, const char *domain) {
    if (*domain && module_opset(l->b.m, str_from(domain)) == 0)
        module_set_opset(l->b.m, str_from(domain), 1);
}

static Node *clip_integers(Lower *l, Node *n, Value *x, int64_t lo, int64_t hi) {
    Str base = base_name(n->out[0]->name);
    ElemType e = onnx_quant(&l->b, lower_quant(l, n->out[0]))->storage;
    Value *min = build_int(&l->b, base, "_min", e, lo),
          *max = build_int(&l->b, base, "_max", e, hi);
    return build_node(&l->b, n, "Clip", lower_quant_name(l, n), OPERANDS(x, min, max));
}

/* QOperators saturate to the whole range of their type: where less of it is used, `to`, which takes
 * n's place, is followed by a Clip on the integers. */
static void clip_result(Lower *l, Node *n, Node *to) {
    Value *y = n->out[0];
    const Quant *q = lower_quant(l, y);
    if (!q || !quant_narrowed(q)) {
        node_take_result(to, 0, y);
        lower_result(l, to, 0);
        return;
    }
    Value *wide = node_add_output(to, 0, derived_name(&l->b, base_name(y->name), "_wide"),
                                  integer_type(y->type, onnx_quant(&l->b, q), false));
    Node *clip = clip_integers(l, n, wide, quant_lo(q), quant_hi(q));
    node_take_result(clip, 0, y);
    lower_result(l, clip, 0);
    node_insert_after(n, clip);
    op_resolve(clip, l->b.d);
}

static void lower_qoperator(Lower *l, Node *n) {
    const QopForm *f = &n->def->qop;
    QopLayout at;
    qop_layout(f, n->n_in, &at, l->b.a);
    Node *to = build_node(&l->b, n, f->op, lower_quant_name(l, n), NULL, at.n_operands);
    to->domain = *f->domain ? str_from(f->domain) : STR_NONE;
    for (size_t i = 0; i < n->n_in; i++) {
        if (!n->in[i])
            continue;
        to->in[at.data[i]] = lower_ints(l, n->in[i]);
        put_params(l, to, at.scale[i], at.zp[i], n->in[i]);
    }
    Value *y = n->out[0];
    if (lower_quant(l, y))
        put_params(l, to, at.y_scale, at.y_zp, y);
    trim_operands(to);
    copy_attrs(l, n, to);
    if (f->lower_attrs)
        f->lower_attrs(n, to);
    clip_result(l, n, to);
    replace_node(n, to);
    use_microsoft(l, f->domain);
    op_resolve(to, l->b.d);
}

/* ---- MatMul with a float result ---- */

static bool is_integer_to_float(const Lower *l, const Node *n) {
    if (!node_is(n, "MatMul") || !target_has_microsoft(l->c->target) || op_quant(n->out[0]))
        return false;
    const Quant *a = op_quant(n->in[0]), *b = op_quant(n->in[1]);
    bool axis = b && (b->n_axes == 0 || (b->n_axes == 1 && b->block[0] <= 1 &&
                                         b->axis[0] == n->in[1]->type.rank - 1));
    return a && axis && quant_is_per_tensor(a) && elem_bits(a->storage) == 8 &&
           elem_bits(b->storage) == 8 && a->expressed == ELEM_FLOAT &&
           !ort_refuses(n, "com.microsoft", "MatMulIntegerToFloat",
                        (ElemType[]){a->storage, b->storage}, 2);
}

/* Both scales come before both zero points. */
static void lower_integer_to_float(Lower *l, Node *n) {
    Node *to = build_node(&l->b, n, "MatMulIntegerToFloat", lower_quant_name(l, n), NULL, 6);
    to->domain = STR("com.microsoft");
    for (int i = 0; i < 2; i++) {
        to->in[i] = lower_ints(l, n->in[i]);
        put_params(l, to, 2 + i, 4 + i, n->in[i]);
    }
    node_take_result(to, 0, n->out[0]);
    replace_node(n, to);
    use_microsoft(l, "com.microsoft");
    op_resolve(to, l->b.d);
}

/* ---- movers ---- */

/* A Pad without a value pads with real 0, which on integers is the zero point. */
static bool fill_value(Lower *l, Node *n) {
    size_t at = fill_operand(n);
    if (!at)
        return true;
    const Quant *q = lower_quant(l, n->out[0]);
    if (!q || !quant_is_per_tensor(q) || n->n_in < at)
        return false;
    Value *v = node_input(n, at);
    if (v && lower_quant(l, v))
        return true;
    const Tensor *t = v ? value_data(v) : NULL;
    if (v && (!t || t->count != 1))
        return false;
    q = onnx_quant(&l->b, q);
    int64_t i = quant_of_real(q, 0, t ? (float)tensor_float(t, 0) : 0.0F);
    set_operand(n, at, build_int(&l->b, base_name(n->out[0]->name), "_pad", q->storage, i));
    return true;
}

const char *lower_mover(Lower *l, Node *n) {
    const char *why = integer_refusal(n, l->c->target);
    if (!why && !fill_value(l, n))
        why = "the value it pads with is not a constant";
    if (why)
        return why;
    drop_idle_fill(n);
    lower_on_integers(l, n);
    return NULL;
}

/* ---- Relu and Clip ---- */

/* The node changes no integer: its result is its operand, under the name that others know. */
static bool drop_clamp(Lower *l, Node *n) {
    Value *x = n->in[0], *y = n->out[0];
    Value *ints = lower_ints(l, x);
    if (uses_is_output(l->uses, y) && (uses_is_output(l->uses, x) || ints->kind != VALUE_NODE))
        return false; /* two interface names for one value */
    if (uses_is_output(l->uses, y) && ints->graph != n->graph)
        return false; /* a branch of If returns only what it computes itself */
    if (uses_is_output(l->uses, y) || (uses_only_node(l->uses, x) && ints->kind == VALUE_NODE)) {
        ints->name = y->name;
        ints->from = y->from;
        ints->declared = y->declared;
    }
    if (ints->def)
        node_absorb(ints->def, n, "lower-qop");
    l->ints[y->id] = ints;
    l->floats[y->id] = l->floats[x->id];
    node_remove(n);
    return true;
}

/* Clip on the integers, its bounds rounded to the grid. */
static const char *lower_clamp(Lower *l, Node *n) {
    const Quant *q = lower_quant(l, n->out[0]);
    float lo, hi;
    if (!q || !same_quant(n))
        return "its result has other parameters than its operand";
    if (clamp_is_noop(n, q) && drop_clamp(l, n))
        return NULL;
    if (!clamp_bounds(n, &lo, &hi) || !quant_is_per_tensor(q))
        return "its bounds are not constant";
    const char *why = other_refusal(n, "Clip", onnx_storage(&l->b, q->storage), l->c->target);
    if (why)
        return why;
    const Quant *ints = onnx_quant(&l->b, q);
    Node *to = clip_integers(l, n, lower_ints(l, n->in[0]), quant_of_real(ints, 0, lo),
                             quant_of_real(ints, 0, hi));
    node_take_result(to, 0, n->out[0]);
    lower_result(l, to, 0);
    replace_node(n, to);
    op_resolve(to, l->b.d);
    return NULL;
}

/* ---- one node ---- */

static const char *lower_compute(Lower *l, Node *n) {
    const char *why = qop_refusal(n, l->c->target, l->b.d);
    if (!why)
        lower_qoperator(l, n);
    return why;
}

static const char *lower_join(Lower *l, Node *n) {
    if (same_quant(n) && !integer_refusal(n, l->c->target)) {
        lower_on_integers(l, n);
        return NULL;
    }
    return lower_compute(l, n);
}

static const char *lower_mac(Lower *l, Node *n) {
    if (is_integer_to_float(l, n)) {
        lower_integer_to_float(l, n);
        return NULL;
    }
    if (!target_has_microsoft(l->c->target) && lower_gemm_as_conv(l, n))
        return NULL;
    return lower_compute(l, n);
}

static void lower_node(Lower *l, Node *n) {
    if (lower_dynamic(l, n) || lower_accumulator(l, n))
        return;
    const char *why = "qxc does not know this operator";
    switch (n->def ? n->def->quant.kind : QUANT_NEVER) {
    case QUANT_NEVER: why = n->def ? "it has no integer form" : why; break;
    case QUANT_MOVE:
    case QUANT_ORDER: why = lower_mover(l, n); break;
    case QUANT_CLAMP: why = lower_clamp(l, n); break;
    case QUANT_JOIN: why = lower_join(l, n); break;
    case QUANT_COMPUTE: why = lower_compute(l, n); break;
    case QUANT_MAC: why = lower_mac(l, n); break;
    }
    if (!why)
        return;
    pass_remark(l->c, n, "%s", why);
    lower_around(l, n);
}

bool pass_lower_qop(Module *m, PassContext *c) {
    lower_widen(m, c->d);
    if (!legal_prepare(m, c))
        return false;
    Lower l = {.b = quant_build_new(m, c, "lower-qop"), .c = c, .qop = true, .node = lower_node};
    uint32_t first = m->n_nodes;
    lower_module(&l, m);
    lower_form_finish(&l, m, first);
    lower_dynamic_bias(m);
    guard_fusions(&l.b, m, c->target);
    return true;
}
