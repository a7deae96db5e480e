/* QONNX's quantizers to types (Pappalardo et al., "QONNX: Representing Arbitrary-Precision
 * Quantized Neural Networks", 2022):
 *
 *   Quant(x, s, z, b)   s * (round(clip(x / s + z, lo, hi)) - z), integers of b bits
 *   BipolarQuant(x, s)  s where x >= 0, else -s
 *
 * Quant is what Q and DQ are, on a type of b bits: bit for bit where z is 0; else their zero point
 * stands inside the rounding, and where x / s is halfway between integers, or within a float's
 * rounding of that, they may yield neighbours, as where more than 16 bits are computed, which qxc
 * divides in double: a warning says so. Bounds are integers, so that it
 * does not matter that QONNX clips first. BipolarQuant is no rounding; Where says it, and what it
 * yields lies on the grid of the integers -1, 0, 1. Trunc and other roundings are in
 * raise_rounding.c, MultiThreshold in raise_thresholds.c; raise-quant does the rest. What no type
 * can say (fractions of bits, parameters computed at run time) is an error. */
#include "passes/raise/raise_qonnx.h"

#include <math.h>
#include <strings.h>

#include "passes/edit.h"
#include "passes/quant_build.h"

/* ---- the parameters ---- */

/* QKeras has integers for zero points and bit widths. */
static const Tensor *as_floats(Arena *a, const Tensor *t) {
    uint8_t *bytes;
    Tensor *floats = tensor_new(a, ELEM_FLOAT, t->rank, t->dims, &bytes);
    for (size_t i = 0; i < t->count; i++)
        ((float *)(void *)bytes)[i] = (float)tensor_int(t, i);
    return floats;
}

const char *qonnx_const(const Node *n, size_t i, const char *why, const Tensor **out) {
    const Tensor *t = node_input(n, i) ? value_data(n->in[i]) : NULL;
    *out = t;
    bool ints = t && elem_is_int(t->elem);
    if (!t || !t->data || !t->count || !(ints || elem_is_float(t->elem)))
        return why;
    if (ints)
        *out = as_floats(n->graph->module->arena, t);
    return NULL;
}

const char *qonnx_check_scale(const Tensor *s) {
    for (size_t i = 0; i < s->count; i++) {
        float v = (float)tensor_float(s, i);
        if (!isnormal(v) || v < 0)
            return "a scale is not a positive number";
    }
    return NULL;
}

bool qonnx_integer(const Tensor *t, int64_t lo, int64_t hi, int64_t *out) {
    double v = tensor_float(t, 0);
    for (size_t i = 1; i < t->count; i++)
        if (tensor_float(t, i) != v)
            return false;
    *out = v >= (double)lo && v <= (double)hi ? (int64_t)v : lo - 1;
    return *out >= lo && (double)*out == v;
}

/* Scales of shape [1,C,1,1] or [C,1,1] vary along the axes where they have more than one entry;
 * such an axis of x is as long, as x is not spread itself. */
static const char *set_axes(Quant *q, const Tensor *s, Type x) {
    int rank = x.kind == TYPE_TENSOR ? x.rank : -1;
    if (rank >= 0 && s->rank > rank)
        return "its scale has more dimensions than its operand";
    if (s->count == 1)
        return NULL;
    if (rank < 0)
        return "the rank of its operand is not known";
    for (int i = 0; i < s->rank; i++) {
        int at = i + rank - s->rank;
        if (s->dims[i] == 1)
            continue;
        if (x.dims[at].value >= 0 && x.dims[at].value != s->dims[i])
            return "its scale has another shape than its operand";
        if (q->n_axes == MAX_RANK)
            return "its scale varies along more than 8 axes";
        q->axis[q->n_axes] = at;
        q->block[q->n_axes++] = 1;
    }
    return NULL;
}

static void set_range(Quant *q, QonnxInts r) {
    int64_t bits = r.bits;
    bool is_signed = r.is_signed, narrow = r.narrow, constant = r.constant;
    static const ElemType types[][2] = {
        {ELEM_UINT2, ELEM_INT2},   {ELEM_UINT4, ELEM_INT4},   {ELEM_UINT8, ELEM_INT8},
        {ELEM_UINT16, ELEM_INT16}, {ELEM_UINT32, ELEM_INT32},
    };
    size_t i = constant ? 0 : 2;
    while (elem_bits(types[i][0]) < bits)
        i++;
    bool bit = constant && bits == 1 && !is_signed, wide = bits > 16 && bits < 32;
    q->storage = bit ? ELEM_UINT1 : types[i][is_signed || wide];
    q->lo = is_signed ? -((int64_t)1 << (bits - 1)) + narrow : 0;
    q->hi = is_signed ? ((int64_t)1 << (bits - 1)) - 1 : ((int64_t)1 << bits) - 1 - narrow;
    q->has_range = q->lo > elem_min(q->storage) || q->hi < elem_max(q->storage);
}

const char *qonnx_quant(Qonnx *o, const Tensor *s, Type x, QonnxInts ints, Quant **out) {
    float *scale = NEW_ARRAY(o->b.a, float, s->count);
    for (size_t i = 0; i < s->count; i++)
        scale[i] = (float)tensor_float(s, i);
    int64_t *zp = NEW_ARRAY(o->b.a, int64_t, 1);
    *zp = ints.zp;
    Quant *q = quant_per_axis(o->b.a, ELEM_INT8, 0, s->count, scale, NULL);
    q->n_axes = 0;
    q->zp = zp;
    q->n_zp = 1;
    set_range(q, ints);
    *out = q;
    return set_axes(q, s, x);
}

static const char *read_quant(Qonnx *o, const Node *n, Quant **out) {
    const Tensor *s, *z, *bits;
    QonnxInts ints = {.is_signed = node_int(n, "signed", true),
                      .narrow = node_int(n, "narrow", false),
                      .constant = edit_float_const(n->in[0]) != NULL};
    const char *why = qonnx_const(n, 1, "its scale is computed", &s);
    why = why ? why : qonnx_const(n, 2, "its zero point is computed", &z);
    why = why ? why : qonnx_const(n, 3, "its bit width is computed", &bits);
    why = why ? why : qonnx_check_scale(s);
    if (!why && !qonnx_integer(bits, 1, 32, &ints.bits))
        why = "its bit width is not one integer of 1 to 32";
    if (!why && ints.bits == 1 && ints.narrow)
        why = "one bit without its last integer leaves one integer";
    if (!why && !qonnx_integer(z, INT32_MIN, UINT32_MAX, &ints.zp))
        why = "its zero point is not one integer of the range";
    why = why ? why : qonnx_quant(o, s, n->in[0]->type, ints, out);
    if (!why && (ints.zp < (*out)->lo || ints.zp > (*out)->hi))
        why = "its zero point is not one integer of the range";
    return why;
}

/* ---- rewriting ---- */

Type qonnx_float(Type t) {
    return t.kind == TYPE_TENSOR ? type_tensor(ELEM_FLOAT, t.rank, t.dims)
                                 : type_tensor(ELEM_FLOAT, -1, NULL);
}

void qonnx_becomes_pair(Qonnx *o, Node *n, Value *x, const Quant *q) {
    Value *y = n->out[0];
    Str name =
        n->name.n ? arena_strf(o->b.a, STR_FMT "_QuantizeLinear", STR_ARG(n->name)) : n->name;
    Node *to = build_node(&o->b, n, "QuantizeLinear", name, OPERANDS(x));
    Value *ints =
        build_before(&o->b, n, to, y->name, "_quantized", type_quantized(qonnx_float(x->type), q));
    ints->loc = y->loc;
    node_becomes(n, o->b.pass);
    n->op = STR("DequantizeLinear");
    n->in[0] = ints;
    drop_params(n, o->b.d);
}

Value *qonnx_node(Qonnx *o, Node *n, const char *op, size_t n_in, Value **in, Type t) {
    return build_step(&o->b, n, op, in, n_in, t, n->out[0]->name);
}

static Value *negative(Qonnx *o, const Node *n, const Tensor *s) {
    float *v = NEW_ARRAY(o->b.a, float, s->count);
    for (size_t i = 0; i < s->count; i++)
        v[i] = -(float)tensor_float(s, i);
    return build_floats(&o->b, n->out[0]->name, "_minus", ELEM_FLOAT, s->rank, s->dims, v);
}

static Value *bipolar_const(Qonnx *o, const Node *n, const Quant *q) {
    const Tensor *t = edit_float_const(n->in[0]);
    float *v = NEW_ARRAY(o->b.a, float, t->count);
    for (size_t i = 0; i < t->count; i++)
        v[i] = copysignf(q->scale[q->n_axes ? quant_index(q, t->rank, t->dims, i) : 0],
                         tensor_float(t, i) < 0 ? -1.0F : 1.0F);
    Value *c = build_floats(&o->b, n->in[0]->name, "_bipolar", ELEM_FLOAT, t->rank, t->dims, v);
    value_from(c, n->in[0], o->b.pass);
    return c;
}

static Value *bipolar_where(Qonnx *o, Node *n, const Tensor *s) {
    Type t = qonnx_float(n->in[0]->type), mask = t;
    mask.elem = ELEM_BOOL;
    Value *bound = build_float(&o->b, n->out[0]->name, "_zero", 0);
    Value *less[] = {n->in[0], bound};
    Value *where[] = {qonnx_node(o, n, "Less", 2, less, mask), negative(o, n, s), n->in[1]};
    return qonnx_node(o, n, "Where", 3, where, t);
}

static const char *raise_bipolar(Qonnx *o, Node *n) {
    const Tensor *s;
    const char *why = qonnx_const(n, 1, "its scale is computed", &s);
    why = why ? why : qonnx_check_scale(s);
    if (why)
        return why;
    bool constant = edit_float_const(n->in[0]) != NULL;
    Quant *q;
    QonnxInts ints = {.bits = 2, .is_signed = true, .narrow = true, .constant = constant};
    why = qonnx_quant(o, s, n->in[0]->type, ints, &q);
    if (why)
        return why;
    q->n_zp = 0; /* none is stated */
    qonnx_becomes_pair(o, n, constant ? bipolar_const(o, n, q) : bipolar_where(o, n, s), q);
    return NULL;
}

static const char *raise_node(Qonnx *o, Node *n) {
    if (n->n_in < 1 || !n->in[0] || n->n_out != 1 || !n->out[0])
        return "it wants an operand and a result";
    if (str_is(n->op, "MultiThreshold"))
        return raise_thresholds(o, n);
    if (str_is(n->op, "BipolarQuant"))
        return raise_bipolar(o, n);
    if (str_is(n->op, "Trunc") || !rounds_to_even(n))
        return raise_rounding(o, n);
    Quant *q;
    const char *why = read_quant(o, n, &q);
    if (why)
        return why;
    if (q->zp[0] != 0)
        diag_warning(o->b.d, n->loc,
                     "%s: its zero point %lld stands inside the rounding: ties may become the "
                     "neighbouring integer",
                     node_text(n), (long long)q->zp[0]);
    else if (elem_bits(q->storage) == 32 && !edit_float_const(n->in[0]))
        diag_warning(
            o->b.d, n->loc,
            "%s: more than 16 bits are divided in double, not in float: ties of the latter "
            "may become the neighbouring integer",
            node_text(n));
    qonnx_becomes_pair(o, n, n->in[0], q);
    return NULL;
}

static void raise_graph(Graph *g, void *ctx) {
    Qonnx *o = ctx;
    FOR_NODES(n, g) {
        const char *why = node_is_qonnx(n) ? raise_node(o, n) : NULL;
        if (why)
            o->ok = diag_error(o->b.d, n->loc, "%s: %s", node_text(n), why);
    }
}

/* ---- the pass ---- */

static void note_domain(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    map_set(ctx, n->domain, n);
}

/* A runtime need not know the domains any more. */
static void drop_imports(Module *m) {
    Map *used = map_new(m->arena);
    module_each_graph(m, note_domain, used);
    size_t kept = 0;
    Node probe = {.op = STR("Quant")};
    for (size_t i = 0; i < m->n_imports; i++) {
        probe.domain = m->imports[i].domain;
        if (map_get(used, probe.domain) || !node_is_qonnx(&probe))
            m->imports[kept++] = m->imports[i];
    }
    m->n_imports = kept;
}

bool pass_raise_qonnx(Module *m, PassContext *c) {
    Qonnx o = {.b = quant_build_new(m, c, "raise-qonnx"), .uses = uses_new(m), .ok = true};
    module_each_graph(m, raise_graph, &o);
    drop_imports(m);
    return o.ok;
}
