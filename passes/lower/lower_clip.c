/* Ranges narrower than their storage, to which QuantizeLinear does not saturate.
 *
 * Of bytes a Clip of the integers follows the QuantizeLinear (QCDQ): that is exact, and runtimes
 * see operator and QuantizeLinear side by side, which is what they fuse. Elsewhere numbers are
 * clipped before. */
#include "passes/emulate.h"
#include "passes/lower/lower.h"

bool lower_clips_behind(Lower *l, const Quant *q, const Value *y) {
    const Quant *made = onnx_quant(&l->b, q);
    return quant_narrowed(made) && made->n_axes == 0 && elem_bits(made->storage) == 8 && !l->qop &&
           module_opset(l->b.m, STR("")) >= 12 && !l->c->target->no_integers &&
           !uses_is_output(l->uses, y);
}

void lower_clip_behind(Lower *l, Node *quantize, const Quant *q, Str base) {
    Value *y = quantize->out[0];
    q = onnx_quant(&l->b, q);
    Str wide = derived_name(&l->b, base, "_wide");
    Value *lo = build_int(&l->b, base, "_min", q->storage, quant_lo(q)),
          *hi = build_int(&l->b, base, "_max", q->storage, quant_hi(q));
    Node *n = build_node(&l->b, quantize, "Clip",
                         arena_strf(l->b.a, STR_FMT "_Clip", STR_ARG(base)), OPERANDS(y, lo, hi));
    node_follow(quantize, 0, n, wide, integer_type(y->type, q, false));
    op_resolve(n, l->b.d);
}

static Value *clip_node(Lower *l, Value *x, Node *before, const char *op, Value *lo, Value *hi,
                        Str base) {
    Str name = arena_strf(l->b.a, STR_FMT "_%s", STR_ARG(base), op);
    Node *n = build_node_for(&l->b, x, op, name, OPERANDS(x, lo, hi));
    n->loc = before->loc;
    return build_before(&l->b, before, n, name, "_Output", real_type(x->type));
}

/* One bound of the range as a real number, for every entry of the parameters. */
static Value *range_bound(Lower *l, const Quant *q, Type t, const char *suffix, int64_t bound,
                          Str base) {
    int64_t dims[MAX_RANK];
    size_t count;
    int rank = entries_shape(q, t, dims, &count);
    float *v = NEW_ARRAY(l->b.a, float, count);
    for (size_t i = 0; i < count; i++) {
        size_t k = quant_index(q, rank, dims, i);
        v[i] = (float)(bound - quant_zp(q, k)) * quant_scale(q, k);
    }
    return build_floats(&l->b, base, suffix, t.elem, rank, dims, v);
}

/* A range narrower than the storage cuts off before the rounding: its bounds are on the grid. Clip
 * takes one bound for all, Max and Min take one for each entry of the parameters. */
Value *lower_clip_before(Lower *l, Value *x, const Quant *q, Node *quantize, Str base) {
    q = onnx_quant(&l->b, q);
    if (!quant_narrowed(q))
        return x;
    int64_t opset = module_opset(l->b.m, STR(""));
    Type t = real_type(x->type);
    if (!q->n_axes && opset < 11) {
        Value *y = clip_node(l, x, quantize, "Clip", NULL, NULL, base);
        node_set_float(y->def, "min", (float)(q->lo - quant_zp(q, 0)) * quant_scale(q, 0));
        node_set_float(y->def, "max", (float)(q->hi - quant_zp(q, 0)) * quant_scale(q, 0));
        op_resolve(y->def, l->b.d);
        return y;
    }
    Value *lo = range_bound(l, q, t, "_min", q->lo, base);
    Value *hi = range_bound(l, q, t, "_max", q->hi, base);
    if (!q->n_axes)
        return clip_node(l, x, quantize, "Clip", lo, hi, base);
    Value *y = clip_node(l, x, quantize, "Max", lo, NULL, base);
    return clip_node(l, y, quantize, "Min", hi, NULL, base);
}
