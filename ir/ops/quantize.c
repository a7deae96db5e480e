/* QuantizeLinear and DequantizeLinear.
 *
 * Two forms: ONNX's, with scale and zero point as operands, and ours with one operand, where the
 * quantized type of the result (or operand) says it all. ONNX: 13 added axis, 19 float8 and
 * saturate, 21 blocks, output_dtype and 4 and 16 bits, 23 precision and other scale types. */
#include "ir/ops/quantize.h"

static const AttrSpec attrs[] = {
    A_INT(LinearAttrs, axis, 1),         A_INT(LinearAttrs, block_size, 0),
    A_INT(LinearAttrs, output_dtype, 0), A_FLAG(LinearAttrs, saturate, 1),
    A_INT(LinearAttrs, precision, 0),    A_END,
};

static const AttrSpec dequantize_attrs[] = {
    A_INT(LinearAttrs, axis, 1),
    A_INT(LinearAttrs, block_size, 0),
    A_INT(LinearAttrs, output_dtype, 0),
    A_END,
};

enum { X = LINEAR_X, SCALE = LINEAR_SCALE, ZP = LINEAR_ZP };

bool linear_own_form(const Node *n) {
    return n->n_in == 1;
}

static Type out_type(const OpCtx *c) {
    return c->n_out && c->node->out[0] ? c->node->out[0]->type : TYPE_UNKNOWN;
}

/* ---- laws ---- */

static bool verify_block(const OpCtx *c, Type x, Type s, int axis) {
    const LinearAttrs *a = c->attrs;
    if (s.rank != x.rank)
        return op_error_in(c, SCALE, "with block_size the scale has the operand's rank %d, not %d",
                           x.rank, s.rank);
    for (int i = 0; i < x.rank; i++) {
        int64_t have = s.dims[i].value, dim = x.dims[i].value;
        int64_t want = i == axis && dim >= 0 ? dim_parts(dim, a->block_size) : dim;
        if (dim_differ(have, want))
            return op_error_in(c, SCALE, "dimension %d of the scale is %lld, must be %lld", i,
                               (long long)have, (long long)want);
    }
    return true;
}

static bool verify_operands(const OpCtx *c) {
    const LinearAttrs *a = c->attrs;
    Type x = op_type(c, X), s = op_type(c, SCALE), z = op_type(c, ZP);
    int axis;
    if (a->block_size < 0 || a->block_size > INT32_MAX)
        return op_error_attr(c, "block_size", "block_size must be from 0 to 2147483647");
    if (z.rank >= 0 && s.rank >= 0 && !type_same_shape(z, s) && type_is_static(z) &&
        type_is_static(s) &&
        !(z.rank + s.rank == 1)) /* [] beside [1] is common; verify_use.c counts */
        return op_error_in(c, ZP, "scale and zero point differ in shape: %s and %s",
                           type_text(c->arena, s), type_text(c->arena, z));
    if (x.rank < 0 || s.rank < 1 || (s.rank == 1 && s.dims[0].value == 1 && !a->block_size))
        return true;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    if (a->block_size)
        return verify_block(c, x, s, axis);
    if (s.rank != 1)
        return op_error_in(c, SCALE, "the scale must have rank 0 or 1, not %d", s.rank);
    if (dim_differ(s.dims[0].value, x.dims[axis].value))
        return op_error_in(c, SCALE, "%lld scales for an axis of length %lld",
                           (long long)s.dims[0].value, (long long)x.dims[axis].value);
    return true;
}

static bool quantize_verify(const OpCtx *c) {
    if (!linear_own_form(c->node))
        return verify_operands(c);
    Type y = out_type(c), x = op_type(c, X);
    if (!op_in(c, X))
        return op_error(c, "needs its operand");
    if (y.kind != TYPE_TENSOR || !type_is_quantized(y))
        return op_error_out(c, 0,
                            "without scale and zero point its result must have a quantized type");
    if (type_is_quantized(x))
        return op_error_in(c, X,
                           "its operand is quantized already; to change that use qxc::Requantize");
    return true;
}

static bool dequantize_verify(const OpCtx *c) {
    if (!linear_own_form(c->node))
        return verify_operands(c);
    Type x = op_type(c, X);
    if (!op_in(c, X) || c->n_out == 0 || !c->node->out[0])
        return op_error(c, "needs its operand and a result");
    if (x.kind == TYPE_TENSOR && !type_is_quantized(x))
        return op_error_in(c, X,
                           "without scale and zero point its operand must have a quantized type");
    if (type_is_quantized(out_type(c)))
        return op_error_out(c, 0, "its result cannot be quantized");
    return true;
}

static bool quantize_infer(OpCtx *c) {
    const LinearAttrs *a = c->attrs;
    Type x = op_type(c, X), z = op_type(c, ZP);
    if (linear_own_form(c->node))
        return op_same_type(c);
    ElemType e = z.kind == TYPE_TENSOR ? z.elem
                 : op_in(c, ZP)        ? ELEM_UNDEFINED
                 : a->output_dtype     ? (ElemType)a->output_dtype
                                       : ELEM_UINT8;
    if (a->output_dtype && z.kind == TYPE_TENSOR && (ElemType)a->output_dtype != z.elem)
        return op_error_in(c, ZP, "output_dtype is %s, the zero point %s",
                           elem_name((ElemType)a->output_dtype), elem_name(z.elem));
    if (x.kind == TYPE_TENSOR)
        c->out[0] = type_tensor(e, x.rank, x.dims);
    return true;
}

static bool dequantize_infer(OpCtx *c) {
    const LinearAttrs *a = c->attrs;
    Type x = op_type(c, X), s = op_type(c, SCALE);
    if (linear_own_form(c->node))
        return op_same_type(c);
    ElemType e = a->output_dtype         ? (ElemType)a->output_dtype
                 : s.kind == TYPE_TENSOR ? s.elem
                                         : ELEM_UNDEFINED;
    if (x.kind == TYPE_TENSOR)
        c->out[0] = type_tensor(e, x.rank, x.dims);
    return true;
}

const OpDef op_QuantizeLinear = {
    .domain = "",
    .name = "QuantizeLinear",
    .attrs_size = sizeof(LinearAttrs),
    .attrs = attrs,
    .verify = quantize_verify,
    .infer = quantize_infer,
    .slices = op_slices_same,
    .conversion = CONVERT_QUANTIZE,
    .stays = true,
    .own_form = linear_own_form,
    .bind = quantize_bind,
};

const OpDef op_DequantizeLinear = {
    .domain = "",
    .name = "DequantizeLinear",
    .attrs_size = sizeof(LinearAttrs),
    .attrs = dequantize_attrs,
    .verify = dequantize_verify,
    .infer = dequantize_infer,
    .slices = op_slices_same,
    .conversion = CONVERT_DEQUANTIZE,
    .stays = true,
    .own_form = linear_own_form,
    .bind = dequantize_bind,
};
