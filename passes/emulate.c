#include "passes/emulate.h"

/* ---- what needs it ---- */

/* Blocks and 16 bits came to ONNX with opset 21. */
static bool too_new(const QuantBuild *b, const Quant *q) {
    return b->opset && b->opset < 21 && (elem_bits(q->storage) == 16 || quant_is_blocked(q));
}

/* Whether q - zp may leave int32. */
static bool has_wide_differences(const Quant *q) {
    return q->storage == ELEM_UINT32 || (q->storage == ELEM_INT32 && !quant_zp_all_zero(q));
}

bool emulates_quantize(const QuantBuild *b, const Quant *q) {
    if (!quant_is_integers(q))
        return false; /* no operator but Q rounds to them */
    return quant_is_wide(q) || elem_bits(q->storage) == 32 || q->expressed == ELEM_DOUBLE ||
           too_new(b, q);
}

bool emulates_dequantize(const QuantBuild *b, const Quant *q) {
    if (!quant_is_integers(q))
        return false;
    return quant_is_wide(q) || has_wide_differences(q) || q->expressed == ELEM_DOUBLE ||
           too_new(b, q);
}

/* The type to compute in: double where no integer kernel holds the sums, here as when it runs. */
static ElemType real_of(const Quant *q, bool differences) {
    return elem_bits(q->storage) == 32 && differences ? ELEM_DOUBLE : q->expressed;
}

/* ---- constants ---- */

/* Named after the `quant` line, as scales and zero points are. */
static Str params_name(const Quant *q, Str base) {
    return q->alias.n ? q->alias : base;
}

int entries_shape(const Quant *q, Type t, int64_t *dims, size_t *count) {
    *count = 1;
    if (q->n_axes == 0)
        return 0;
    for (int i = 0; i < t.rank; i++)
        dims[i] = 1;
    for (int i = 0; i < q->n_axes; i++) {
        dims[q->axis[i]] = t.dims[q->axis[i]].value;
        *count *= (size_t)t.dims[q->axis[i]].value;
    }
    return t.rank;
}

static Value *scales(QuantBuild *b, const Quant *q, Type t, ElemType real, Str base) {
    int64_t dims[MAX_RANK];
    size_t count;
    int rank = entries_shape(q, t, dims, &count);
    float *v = NEW_ARRAY(b->a, float, count);
    for (size_t i = 0; i < count; i++)
        v[i] = quant_scale(q, quant_index(q, rank, dims, i));
    return build_floats(b, params_name(q, base), "_scale", real, rank, dims, v);
}

static Value *zero_points(QuantBuild *b, const Quant *q, Type t, ElemType e, Str base) {
    int64_t dims[MAX_RANK];
    size_t count;
    int rank = entries_shape(q, t, dims, &count);
    uint8_t *bytes;
    Tensor *z = tensor_new(b->a, e, rank, dims, &bytes);
    for (size_t i = 0; i < count; i++) {
        int64_t zp = quant_zp(q, quant_index(q, rank, dims, i));
        double real = (double)zp;
        if (e == ELEM_DOUBLE)
            memcpy(bytes + i * sizeof real, &real, sizeof real);
        else
            elem_store_int(e, bytes, i, zp);
    }
    return graph_add_const(b->m->graph, derived_name(b, params_name(q, base), "_zero_point"),
                           tensor_type(b->a, z), z);
}

static Value *bound(QuantBuild *b, const Quant *q, const char *suffix, int64_t v, Str base) {
    double real = (double)v;
    return build_const(b, params_name(q, base), suffix, ELEM_DOUBLE, 0, NULL, &real);
}

/* ---- operators ---- */

/* `op` of `x` and up to two constants, before `n`. */
static Value *step(QuantBuild *b, Node *n, const char *op, Value *x, Value *y, Value *z, ElemType e,
                   Str base) {
    Type t = real_type(x->type);
    t.elem = e;
    return build_step(b, n, op, OPERANDS(x, y, z), t, base);
}

static void become(QuantBuild *b, Node *n, const char *op, Value *x, Value *y) {
    node_becomes(n, b->pass);
    n->domain = STR_NONE;
    n->op = str_from(op);
    n->n_in = 1;
    n->in[0] = x;
    if (y)
        node_add_input(n, y);
    op_resolve(n, b->d);
}

/* Clip of double has no kernel in onnxruntime before opset 12. */
static Value *clip(QuantBuild *b, Node *n, const Quant *q, Value *v, Str base) {
    Value *lo = bound(b, q, "_min", quant_lo(q), base),
          *hi = bound(b, q, "_max", quant_hi(q), base);
    if (module_opset(b->m, STR("")) >= 12)
        return step(b, n, "Clip", v, lo, hi, ELEM_DOUBLE, base);
    v = step(b, n, "Max", v, lo, NULL, ELEM_DOUBLE, base);
    return step(b, n, "Min", v, hi, NULL, ELEM_DOUBLE, base);
}

/* Sums and bounds are exact in double, whatever the storage. */
void emulate_quantize(QuantBuild *b, Node *n, const Quant *q, Type t, Str base) {
    ElemType storage = onnx_storage(b, q->storage);
    ElemType real = real_of(q, true);
    Value *v = n->in[0];
    if (real != q->expressed)
        v = step(b, n, "Cast", v, NULL, NULL, real, base);
    v = step(b, n, "Div", v, scales(b, q, t, real, base), NULL, real, base);
    v = step(b, n, "Round", v, NULL, NULL, real, base);
    if (real != ELEM_DOUBLE)
        v = step(b, n, "Cast", v, NULL, NULL, ELEM_DOUBLE, base);
    if (!quant_zp_all_zero(q))
        v = step(b, n, "Add", v, zero_points(b, q, t, ELEM_DOUBLE, base), NULL, ELEM_DOUBLE, base);
    v = clip(b, n, q, v, base);
    node_set_int(n, "to", storage);
    become(b, n, "Cast", v, NULL);
}

void emulate_dequantize(QuantBuild *b, Node *n, const Quant *q, Type t, Str base) {
    ElemType real = real_of(q, has_wide_differences(q)),
             e = elem_bits(q->storage) == 32 ? ELEM_INT64 : ELEM_INT32;
    Value *v = step(b, n, "Cast", n->in[0], NULL, NULL, e, base);
    if (!quant_zp_all_zero(q))
        v = step(b, n, "Sub", v, zero_points(b, q, t, e, base), NULL, e, base);
    v = step(b, n, "Cast", v, NULL, NULL, real, base);
    if (real == q->expressed) {
        become(b, n, "Mul", v, scales(b, q, t, real, base));
        return;
    }
    v = step(b, n, "Mul", v, scales(b, q, t, real, base), NULL, real, base);
    node_set_int(n, "to", q->expressed);
    become(b, n, "Cast", v, NULL);
}
