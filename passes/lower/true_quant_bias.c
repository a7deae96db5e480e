/* See passes/lower/true_quant_bias.h. */
#include "passes/lower/true_quant_bias.h"
#include "ir/ops/mac.h"
#include "passes/const_quant.h"
#include "passes/edit.h"

#include <math.h>

/* Whether int32 at the product's scale holds the bias. Where it does not, a float bias is added to
 * the sum as it is: steps are fine there, be it of more than 8 bits or because somebody said so. */
static bool bias_holds(const Node *n, const Tensor *b, const Quant *q, size_t channels) {
    const Quant *x = n->in[0]->type.quant, *w = n->in[n->def->quant.mac.weight]->type.quant;
    if (elem_bits(x->storage) > 16 || elem_bits(w->storage) > 16)
        return false;
    for (size_t c = 0; c < channels; c++)
        if (fabs(tensor_float(b, b->count == 1 ? 0 : c)) >=
            (double)INT32_MAX * (double)quant_scale(q, c))
            return false;
    return true;
}

static Value *new_bias(QuantBuild *build, const Value *b, const char *suffix, Type type,
                       Tensor *data) {
    Value *v = build_from(build, b, suffix, type, data);
    v->loc = b->loc;
    return v;
}

/* The bias stays float. */
static void keep_bias(QuantBuild *build, Node *n, const Value *b, Tensor *real) {
    if (type_is_quantized(b->type))
        n->in[n->def->quant.mac.bias] = new_bias(build, b, "", tensor_type(build->a, real), real);
}

/* Whether whole units of the sum are too coarse for the result, and finer ones can be had
 * (mac_finer.c). Says so where they cannot. */
static bool needs_finer(Diags *d, const Node *n, const Value *b, const Tensor *real) {
    const Value *w = n->in[n->def->quant.mac.weight];
    const Quant *y = edit_tilde(n->out[0]);
    BiasUnits u = {real, NULL, n->in[0]->type.quant, w->type.quant, y, 1, 1};
    if (!y || !quant_is_per_tensor(y))
        return false;
    int bits = mac_bias_bits(&u, w);
    double steps = mac_bias_error(&u, bits);
    if (steps > 0.5)
        diag(
            d, DIAG_REMARK, n->loc,
            "%s: bias '%s' is rounded to the grid of the accumulator: results are up to %.3g steps "
            "off",
            node_text(n), diag_name(d, b->name), steps);
    return bits > 0;
}

static void tell_kept(Diags *d, const Node *n, const Value *b) {
    if (elem_bits(n->in[0]->type.quant->storage) <= 8)
        diag(d, DIAG_REMARK, n->loc,
             "%s: bias '%s' does not fit int32 at the scale of the accumulator and stays float",
             node_text(n), diag_name(d, b->name));
}

void bias_to_int(QuantBuild *build, PassContext *pass, Node *n) {
    Arena *a = build->a;
    Diags *d = pass->d;
    size_t at = (size_t)n->def->quant.mac.bias;
    if (!at || n->n_in <= at || !n->in[at] || pass->target->float_biases)
        return;
    Value *w = n->in[n->def->quant.mac.weight], *b = n->in[at];
    OpCtx c = op_ctx(n, d);
    int axis = quant_weight_axis(&n->def->quant, &c);
    size_t channels = axis >= 0 ? (size_t)w->type.dims[axis].value : b->data->count;
    Quant *q = quant_product(a, n->in[0]->type.quant, w->type.quant);
    bool own_grid = type_is_quantized(b->type);
    if (own_grid && quant_equal(b->type.quant, q))
        return;
    Tensor *real = own_grid ? const_dequantize(a, b->data, b->type.quant) : b->data;
    if (!bias_holds(n, real, q, channels)) {
        keep_bias(build, n, b, real);
        tell_kept(d, n, b);
        return;
    }
    if (needs_finer(d, n, b, real)) {
        keep_bias(build, n, b, real);
        return;
    }
    if (own_grid)
        diag_note(d, n->loc,
                  "%s: bias '%s' is on a grid of its own; restated at the scale of the accumulator",
                  node_text(n), diag_name(d, b->name));
    Tensor *data = const_bias(a, real, q, channels);
    Type type = type_quantized(type_fixed(a, ELEM_INT32, 1, data->dims), q);
    n->in[at] = new_bias(build, b, "_quantized", type, data);
    if (n->in[at]->type.quant != q)
        return;
    q->alias = n->in[at]->name;
    module_add_quant(build->m, q);
}
