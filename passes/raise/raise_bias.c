/* The bias of an integer multiply-accumulate: int32 on the grid of the accumulator. */
#include <math.h>

#include "ir/minifloat.h"
#include "ir/ops/mac.h"
#include "passes/const_quant.h"
#include "passes/params.h"
#include "passes/raise/raise.h"

/* Whatever the storage: the same integers mean the same. */
static bool on_grid(const Quant *have, const Quant *want) {
    if (!quant_zp_all_zero(have) || have->n_axes > 1 ||
        (have->n_scale != want->n_scale && have->n_scale != 1 && want->n_scale != 1))
        return false;
    size_t n = have->n_scale > want->n_scale ? have->n_scale : want->n_scale;
    for (size_t i = 0; i < n; i++)
        if (quant_scale(have, i) != quant_scale(want, i))
            return false;
    return true;
}

/* The real number that element i of a constant stands for. */
static double real(const Tensor *t, const Quant *q, size_t i) {
    if (!q)
        return tensor_float(t, i);
    size_t at = quant_index(q, t->rank, t->dims, i);
    return (double)(tensor_int(t, i) - quant_zp(q, at)) * (double)quant_scale(q, at);
}

/* The constant, times f, on the accumulator's grid; one number is spread over the channels. */
static Tensor *rounded(Raise *r, const Tensor *t, const Quant *from, const Quant *to, double f,
                       bool *saturated) {
    int64_t channels = (int64_t)to->n_scale;
    int rank = t->rank;
    int64_t *dims = NEW_ARRAY(r->b.a, int64_t, (size_t)rank + 1);
    memcpy(dims, t->dims, (size_t)rank * sizeof *dims);
    if (to->n_axes && t->count == 1) {
        rank = rank ? rank : 1;
        dims[rank - 1] = channels;
    }
    uint8_t *bytes;
    Tensor *out = tensor_new(r->b.a, ELEM_INT32, rank, dims, &bytes);
    for (size_t i = 0; i < out->count; i++) {
        double v = f * real(t, from, t->count == 1 ? 0 : i);
        float s = quant_scale(to, i % to->n_scale);
        *saturated |= fabs(v / (double)s) > (double)INT32_MAX;
        elem_store_int(ELEM_INT32, bytes, i, params_bias(v, s));
    }
    return out;
}

/* `numbers` are what the bias stood for, where they differ from what it stands for now, or NULL. */
static Value *restated(Raise *r, Value *bias, Tensor *data, Type type, const char *suffix,
                       Tensor *numbers) {
    Graph *g = value_is_const(bias) ? bias->graph : r->m->graph;
    Value *v = graph_add_const(g, derived_name(&r->b, bias->name, suffix), type, data);
    bool own_grid = type_is_quantized(bias->type);
    bias = raise_plain(r, bias); /* the name is the first one's */
    value_from(v, bias, r->b.pass);
    v->loc = bias->loc;
    RaisedConst *made = raise_note_const(r, bias, v);
    made->own_grid = own_grid;
    made->numbers = numbers;
    return v;
}

static Value *requantized(Raise *r, Value *bias, Tensor *data, const Quant *to, Tensor *numbers) {
    return restated(r, bias, data, type_quantized(tensor_type(r->b.a, data), to), "_int32",
                    numbers);
}

static bool is_half(ElemType e) {
    return elem_is_float(e) && elem_bits(e) == 16;
}

/* What a sum of float16 or bfloat16 adds, times f; NULL beyond that type's range. onnxruntime
 * dequantizes to such a type only with a scale of it, which is too coarse for the accumulator's: it
 * stays such a constant. */
static Value *half_bias(Raise *r, Value *bias, const Tensor *t, const Quant *from, ElemType e,
                        double f) {
    uint8_t *bytes;
    Tensor *data = tensor_new(r->b.a, e, t->rank, t->dims, &bytes);
    for (size_t i = 0; i < data->count; i++) {
        uint64_t bits;
        if (!float_encode(e, f * real(t, from, i), &bits))
            return NULL;
        memcpy(bytes + i * 2, &(uint16_t){(uint16_t)bits}, 2);
    }
    return restated(r, bias, data, tensor_type(r->b.a, data), "_real", NULL);
}

static bool fits(const Tensor *t, const Quant *to) {
    return !to->n_axes || t->count == 1 ||
           (t->rank > 0 && t->dims[t->rank - 1] == (int64_t)to->n_scale);
}

/* Whether the sums are wider than int32, so that a float bias can be added to them as it is. */
static bool takes_float(const Quant *x, const Quant *w) {
    int a = elem_bits(x->storage), b = elem_bits(w->storage);
    return (a > 8 || b > 8) && a <= 16 && b <= 16;
}

/* Says that a float bias is rounded, and how far that moves results where it shows. */
static void tell_rounded(Raise *r, const Node *n, double steps) {
    if (steps > 0.5)
        diag(r->b.d, DIAG_REMARK, n->loc,
             "%s: float bias rounded to the grid of the accumulator, as onnxruntime does: results "
             "are up to %.3g steps off",
             node_text(n), steps);
    else if (!r->c->float_biases_stay)
        diag(r->b.d, DIAG_REMARK, n->loc,
             "%s: float bias rounded to the grid of the accumulator, as onnxruntime does",
             node_text(n));
}

/* The same of any bias, where `have` is its own grid, or NULL. */
static void tell_restated(Raise *r, const Node *n, const Value *bias, const Quant *have,
                          double steps) {
    if (!have) {
        tell_rounded(r, n, steps);
        return;
    }
    diag_note(r->b.d, n->loc,
              "%s: bias '%s' is on a grid of its own; restated at the scale of the accumulator",
              node_text(n), diag_name(r->b.d, bias->name));
    if (steps > 0.5)
        diag(r->b.d, DIAG_REMARK, n->loc,
             "%s: its bias is rounded to that: results are up to %.3g steps off", node_text(n),
             steps);
}

/* The bias as real numbers, where whole units of the sums would be too coarse for the result and
 * finer ones can be had; else NULL. `*steps` is how far the result will be off. */
static Value *finer_bias(Raise *r, const BiasUnits *u, Value *bias, const Value *w, double *steps) {
    if (!u->y || !quant_is_per_tensor(u->y))
        return NULL;
    int bits = mac_bias_bits(u, w);
    *steps = mac_bias_error(u, bits);
    if (!bits || !u->q)
        return bits ? bias : NULL;
    Tensor *real = const_dequantize(r->b.a, u->bias, u->q);
    return restated(r, bias, real, tensor_type(r->b.a, real), "_real", NULL);
}

Value *raise_bias(Raise *r, Node *n, Value *bias, const Value *x, const Value *w, const Quant *y,
                  const char **why) {
    const QuantRule *rule = &n->def->quant;
    double product = (double)node_float(n, rule->mac.weight_factor, 1.0F);
    double f = product != 0 ? (double)node_float(n, rule->mac.bias_factor, 1.0F) / product : 0;
    Value *ints = raise_source(bias);
    const Tensor *t = value_data(ints ? ints : bias);
    const Quant *have = ints ? ints->type.quant : NULL;
    if (!t && !ints) {
        *why = "its bias is computed";
        return NULL;
    }
    int rank = t ? t->rank : ints->type.rank;
    const Quant *want = const_sums_quant(r->b.a, x->type.quant, w->type.quant, rank);
    bool same = have && f == 1 && on_grid(have, want);
    if (same && !is_half(have->expressed) && have->storage == ELEM_INT32 &&
        (!t || have->n_axes == want->n_axes))
        return ints;
    if (!t || !t->data || !fits(t, want) || product == 0) {
        *why = t ? "its bias is not one number a channel" : "its bias is computed";
        return NULL;
    }
    bool saturated = false, half = is_half(x->type.quant->expressed);
    Tensor *data = rounded(r, t, have, want, same ? 1 : f, &saturated);
    if (same && !half) /* the same numbers, stated per tensor here and per channel there */
        return requantized(r, ints, data, want, NULL);
    if (half && !saturated && (have || f != 1)) {
        bias = half_bias(r, ints ? ints : bias, t, have, x->type.quant->expressed, f);
        *why = "its bias does not fit its type";
        if (bias && f != 1)
            node_set_float(n, rule->mac.bias_factor, (float)product);
    }
    if (half && !saturated)
        return bias;
    if (saturated && !have && f == 1 && takes_float(x->type.quant, w->type.quant))
        return bias;
    if (saturated) {
        *why = "its bias does not fit int32 at the accumulator's scale";
        return NULL;
    }
    BiasUnits units = {t, have, x->type.quant, w->type.quant, y, product, f};
    double steps = 0;
    Value *real = finer_bias(r, &units, ints ? ints : bias, w, &steps);
    if (real) {
        if (steps > 0.5)
            diag(r->b.d, DIAG_REMARK, n->loc,
                 "%s: its bias is rounded: results are up to %.3g steps off", node_text(n), steps);
        return real;
    }
    tell_restated(r, n, bias, have, steps);
    if (f != 1)
        node_set_float(n, rule->mac.bias_factor, (float)product);
    Tensor *numbers = have && f == 1 ? const_dequantize(r->b.a, t, have) : NULL;
    return requantized(r, ints ? ints : bias, data, want, numbers);
}
