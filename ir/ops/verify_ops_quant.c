/* The laws of quantization that involve an operator. `c` is the node as its float operator sees it,
 * so that true-quant and QOperator nodes go the same way; where their parameters come from differs:
 * the type, or the scale and zero point operands. */
#include "ir/ops/qop.h"

#include <math.h>

typedef struct QuantLaws {
    const OpDef *op;
    OpCtx c;
    const QopView *view; /* QOperator form only */
    unsigned flags;
} QuantLaws;

static const char *quant_text(Arena *a, const Quant *q) {
    if (!q)
        return "unquantized";
    Buf b = buf_new(a);
    quant_print(&b, q);
    return buf_as_str(&b).s;
}

/* ---- parameters of operands and result ---- */

/* Axis of vector parameters of a QOperator's operand; they stand for channels. */
static int operand_axis(const QuantLaws *l, size_t i) {
    const QuantRule *r = &l->op->quant;
    bool weight = r->kind == QUANT_MAC && r->mac.weight > 0 && i == (size_t)r->mac.weight;
    return weight ? quant_weight_axis(r, &l->c) : -1;
}

static const Quant *operand_quant(const QuantLaws *l, size_t i) {
    const Value *v = op_in(&l->c, i);
    if (!v)
        return NULL;
    if (!l->view)
        return op_quant(v);
    if (!l->view->scale[i])
        return v->type.tilde ? v->type.quant : NULL;
    return qop_quant(l->c.arena, v->type.elem, l->view->scale[i], l->view->zp[i],
                     operand_axis(l, i));
}

static bool known(const Quant *q) {
    return q && quant_is_known(q);
}

static void copy_axes(Quant *to, const Quant *from) {
    to->n_axes = from->n_axes;
    memcpy(to->axis, from->axis, sizeof to->axis);
    memcpy(to->block, from->block, sizeof to->block);
}

/* `~` on the values of a QOperator node must say what its operands say. */
static const char *tilde_fault(const QuantLaws *l, const Value *v, const Value *scale,
                               const Value *zp, int axis) {
    if (!v || !v->type.tilde || !v->type.quant || !scale || v->type.quant->kind != QUANT_PARAMS)
        return NULL;
    const Quant *said = v->type.quant;
    const Quant *is = qop_quant(l->c.arena, v->type.elem, scale, zp, axis);
    if (!is)
        return NULL;
    Quant *plain = quant_copy(l->c.arena, said); /* operands know no range and no real type */
    plain->has_range = false;
    plain->expressed = is->expressed;
    plain->scale_type = is->scale_type;
    if (said->n_scale == 1) /* an operand of one scale does not tell an axis of length 1 */
        copy_axes(plain, is);
    if (quant_equal(plain, is))
        return NULL;
    return arena_strf(l->c.arena, "'%s' is said to be %s, but the operands say %s",
                      diag_name(l->c.d, v->name), quant_text(l->c.arena, said),
                      quant_text(l->c.arena, is))
        .s;
}

static bool check_tildes(const QuantLaws *l) {
    if (!l->view)
        return true;
    bool ok = true;
    const char *fault;
    const QopView *v = l->view;
    for (size_t i = 0; i < v->n_in; i++)
        if ((fault = tilde_fault(l, v->in[i], v->scale[i], v->zp[i], operand_axis(l, i))))
            ok = op_error_in(&l->c, i, "%s", fault);
    const Node *n = l->c.node;
    if (n->n_out > 0 && (fault = tilde_fault(l, n->out[0], v->y_scale, v->y_zp, -1)))
        ok = op_error_out(&l->c, 0, "%s", fault);
    return ok;
}

/* ---- movers ---- */

/* Quantization that a mover has to keep: also `int8 ~ q` of the QOperator form, never the fake form
 * (there an unequal grid only rounds once more). */
static const Quant *kept_quant(const Value *v) {
    if (!v || v->type.kind != TYPE_TENSOR || !v->type.quant)
        return NULL;
    return v->type.tilde && elem_is_float(v->type.elem) ? NULL : v->type.quant;
}

static bool check_mover(const QuantLaws *l) {
    const Value *x = op_in(&l->c, 0);
    const Quant *q = kept_quant(x);
    bool ok = true;
    for (size_t i = 0; x && i < l->c.n_out; i++) {
        const Value *y = l->c.node->out[i];
        if (!y || (i > 0 && !kept_quant(y)))
            continue; /* a second result may be indices or a mask */
        const Quant *out = kept_quant(y);
        if (!q && !out)
            continue;
        if ((!q && y->type.tilde) || (!out && op_type(&l->c, 0).tilde))
            continue; /* what plain integers stand for is not said everywhere */
        if (q && out && node_interpolates(l->c.node) && quant_is_per_tensor(q) &&
            quant_is_per_tensor(out))
            continue; /* a grid of its own */
        const Quant *want = op_moved_quant(&l->c, l->op, q);
        if (q && !want)
            ok = op_error_in(&l->c, 0,
                             "the quantized axis of '%s' does not survive; dequantize first",
                             diag_name(l->c.d, x->name));
        else if (!q || !out || !quant_equal(out, want))
            ok = op_error_out(&l->c, i, "moves data of '%s', so '%s' must be %s, not %s",
                              diag_name(l->c.d, x->name), diag_name(l->c.d, y->name),
                              quant_text(l->c.arena, want), quant_text(l->c.arena, out));
    }
    return ok;
}

/* ---- multiply and accumulate ---- */

static bool check_weight_axis(const QuantLaws *l, const Quant *w) {
    const QuantRule *r = &l->op->quant;
    int channel = quant_weight_axis(r, &l->c);
    for (int i = 0; w && i < w->n_axes; i++) {
        if (w->axis[i] == channel || w->block[i] > 1)
            continue;
        if (channel < 0)
            return op_error_in(&l->c, (size_t)r->mac.weight,
                               "weights cannot be quantized along axis %d here", w->axis[i]);
        return op_error_in(&l->c, (size_t)r->mac.weight,
                           "weights are quantized along axis %d, the output channels are axis %d",
                           w->axis[i], channel);
    }
    return true;
}

/* Only parameters along the output channels leave one scale for each accumulator. */
static bool one_accumulator(const QuantLaws *l, const Quant *x, const Quant *w) {
    return known(x) && known(w) && quant_is_per_tensor(x) && w->n_axes <= 1 &&
           (w->n_axes == 0 || w->block[0] <= 1) && check_weight_axis(l, w);
}

static bool check_bias(const QuantLaws *l, const Quant *x, const Quant *w) {
    const QuantRule *r = &l->op->quant;
    const Value *bias = r->mac.bias ? op_in(&l->c, (size_t)r->mac.bias) : NULL;
    const Quant *b = bias ? kept_quant(bias) : NULL;
    if (!known(b) || b->storage != ELEM_INT32 || !one_accumulator(l, x, w))
        return true;
    size_t n = b->n_scale > w->n_scale ? b->n_scale : w->n_scale;
    if (b->n_scale != w->n_scale && b->n_scale != 1 && w->n_scale != 1)
        return op_error_in(&l->c, (size_t)r->mac.bias, "the bias has %zu scales, the weights %zu",
                           b->n_scale, w->n_scale);
    for (size_t i = 0; i < n; i++) {
        float want = quant_scale(x, 0) * quant_scale(w, i), have = quant_scale(b, i);
        if (want == have)
            continue;
        Buf t = buf_new(l->c.arena);
        buf_f32(&t, have);
        buf_text(&t, ", the product of the input's and the weights' scales is ");
        buf_f32(&t, want);
        op_error_in(&l->c, (size_t)r->mac.bias, "scale %zu of bias '%s' is " STR_FMT, i,
                    diag_name(l->c.d, bias->name), STR_ARG(buf_as_str(&t)));
        if (b->kind != QUANT_ACC)
            diag_note(l->c.d, l->c.node->loc,
                      "edit scales where biases are float and follow them: in what -form=fake "
                      "makes of the text as it was");
        return false;
    }
    if (!quant_zp_all_zero(b))
        return op_error_in(&l->c, (size_t)r->mac.bias, "the zero point of bias '%s' must be 0",
                           diag_name(l->c.d, bias->name));
    return true;
}

/* Largest |q - zp| that a value of this type can have. */
static double reach(const Quant *q) {
    double zp = (double)quant_zp(q, 0);
    int64_t lo = quant_lo(q), hi = quant_hi(q);
    return fmax(fabs((double)lo - zp), fabs((double)hi - zp));
}

/* sum |w| of the worst output channel, with |bias|: what the accumulator may have to hold. */
static double worst_sum(const Tensor *w, const Quant *q, int channel, double x, const Tensor *b) {
    size_t inner = dims_step(w->rank, w->dims, channel), n = (size_t)w->dims[channel];
    size_t outer = w->count / (n * inner); /* the caller has excluded empty weights */
    double worst = 0;
    for (size_t c = 0; c < n; c++) {
        double sum = 0, bias = b && c < b->count ? fabs((double)tensor_int(b, c)) : 0;
        for (size_t o = 0; o < outer; o++)
            for (size_t i = 0; i < inner; i++)
                sum += fabs((double)(tensor_int(w, (o * n + c) * inner + i) - quant_zp(q, c)));
        worst = fmax(worst, sum * x + bias);
    }
    return worst;
}

/* 0, or the middle of an unsigned type, which kernels turn into 0. */
static bool zp_costs(const Quant *w) {
    int64_t middle = elem_is_signed(w->storage) ? 0 : (int64_t)1 << (elem_bits(w->storage) - 1);
    for (size_t i = 0; i < (w->n_zp ? w->n_zp : 1); i++)
        if (quant_zp(w, i) != 0 && quant_zp(w, i) != middle)
            return true;
    return false;
}

static void warn_overflow(const QuantLaws *l, const Quant *x, const Quant *w) {
    const QuantRule *r = &l->op->quant;
    const Tensor *data = op_const(&l->c, (size_t)r->mac.weight);
    int channel = quant_weight_axis(r, &l->c);
    if (!data || !data->data || !elem_is_int(data->elem) || channel < 0 || channel >= data->rank ||
        elem_bits(x->storage) > 8 || elem_bits(w->storage) > 8 || data->count == 0)
        return; /* 16-bit operands accumulate in 64 bits */
    const Tensor *bias = r->mac.bias ? op_const(&l->c, (size_t)r->mac.bias) : NULL;
    if (bias && (!bias->data || !elem_is_int(bias->elem)))
        bias = NULL;
    double k = (double)data->count / (double)data->dims[channel];
    if (!bias && k * reach(x) * 256 <= INT32_MAX)
        return;
    double worst = worst_sum(data, w, channel, reach(x), bias);
    if (worst > INT32_MAX)
        diag_warning(l->c.d, l->c.node->loc, "%s: the accumulator may reach %.0f, more than int32",
                     diag_name(l->c.d, l->c.node->op), worst);
}

static bool check_mac(const QuantLaws *l) {
    const QuantRule *r = &l->op->quant;
    const Quant *x = operand_quant(l, 0), *w = operand_quant(l, (size_t)r->mac.weight);
    if (w && !check_weight_axis(l, w))
        return false;
    bool ok = check_bias(l, x, w);
    if (ok && (l->flags & VERIFY_WARN) && !l->view && one_accumulator(l, x, w)) {
        /* Of a QOperator it is told once it has become types. */
        const Value *v = op_in(&l->c, (size_t)r->mac.weight);
        if (zp_costs(w) && value_data(v))
            diag_warning(
                l->c.d, op_in_loc(&l->c, (size_t)r->mac.weight),
                "%s: the zero point of weights '%s' is not 0: each sum takes another one, over "
                "its operand, and kernels that rely on 0 do not serve",
                diag_name(l->c.d, l->c.node->op), diag_name(l->c.d, v->name));
        warn_overflow(l, x, w);
    }
    return ok;
}

/* ---- all ---- */

/* An operator that reads a quantized type where its rule names none would read raw integers. */
static bool check_operands(const QuantLaws *l) {
    for (size_t i = 0; i < l->c.n_in; i++) {
        const Value *v = op_in(&l->c, i);
        bool bias = l->op->quant.mac.bias && i == (size_t)l->op->quant.mac.bias;
        bool weight = (l->op->quant.mac.weight && i == (size_t)l->op->quant.mac.weight) ||
                      (i < 32 && (l->op->quant.stores.operands >> i & 1));
        if (op_quant(v) && !quant_rule_is_data(&l->op->quant, i) && !bias && !weight &&
            l->op->quant.kind != QUANT_NEVER)
            return op_error_in(&l->c, i, "operand %zu ('%s') cannot be quantized", i,
                               diag_name(l->c.d, v->name));
    }
    return true;
}

static bool check_known(const QuantLaws *l) {
    const Node *n = l->c.node;
    for (size_t i = 0; (l->flags & VERIFY_KNOWN) && i < n->n_out; i++) {
        const Value *v = n->out[i];
        if (v && v->type.quant && v->type.quant->kind == QUANT_UNKNOWN)
            return diag_error(l->c.d, v->loc.source ? v->loc : n->loc,
                              "the quantization of '%s' is still unknown",
                              diag_name(l->c.d, v->name));
    }
    return true;
}

/* QuantizeLinear's result, DequantizeLinear's operand. */
static bool converts_to(const Node *n, bool in) {
    return n->n_in == 1 && node_conversion(n) == (in ? CONVERT_DEQUANTIZE : CONVERT_QUANTIZE);
}

/* Numbers of a small floating-point type are made and read by Q and DQ: no operator has a law or a
 * kernel for them. */
static bool check_small_floats(const Node *n, Diags *d) {
    for (size_t i = 0; i < n->n_in + n->n_out; i++) {
        bool in = i < n->n_in;
        const Value *v = in ? n->in[i] : n->out[i - n->n_in];
        if (!v || !v->type.quant || v->type.quant->grid == GRID_INTEGERS || converts_to(n, in))
            continue;
        return diag_error(d, in ? node_in_loc(n, i, d) : node_out_loc(n, i - n->n_in, d),
                          "%s: '%s' is %sq, which only QuantizeLinear makes and DequantizeLinear "
                          "reads: the operator computes on float between them",
                          diag_name(d, n->op), diag_name(d, v->name),
                          elem_name(v->type.quant->storage));
    }
    return true;
}

bool verify_node_quant(const Node *n, unsigned flags, Diags *d) {
    if (!check_small_floats(n, d))
        return false;
    QuantLaws l = {.op = n->def, .flags = flags};
    Type few[OP_FEW];
    QopView view;
    if (l.op) {
        l.c = op_ctx_few(n, few, d);
    } else if (n->typed && qop_of(n)) {
        if (!qop_view(n, &l.op, &view, d))
            return false;
        l.view = &view;
        l.c = qop_ctx(n, &view, d);
    } else {
        return true;
    }
    bool ok = check_known(&l) && check_tildes(&l) && check_operands(&l);
    switch (l.op->quant.kind) {
    case QUANT_MOVE:
    case QUANT_ORDER: return check_mover(&l) && ok;
    case QUANT_MAC: return check_mac(&l) && ok;
    default: return ok;
    }
}
