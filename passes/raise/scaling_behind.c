/* What stands between quantizers that are spelled with floats: nodes with which a positive factor
 * commutes, and the way back through nodes to the integers that a float value holds. */
#include <math.h>

#include "passes/edit.h"
#include "passes/raise/raise_scaling.h"
#include "passes/target/legal.h"

/* What it puts among its operand's elements, if anything, is 0. */
static bool fills_zero(const Node *n) {
    size_t i = fill_operand(n);
    const Value *v = i ? node_input(n, i) : NULL;
    const Tensor *t = v ? edit_float_const(v) : NULL;
    return !v || (t && t->count == 1 && tensor_float(t, 0) == 0);
}

/* Of several results the others are places, which a positive factor does not change. */
static bool first_alone(const Node *n) {
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i] && n->out[i]->type.kind == TYPE_TENSOR && elem_is_float(n->out[i]->type.elem))
            return false;
    return n->n_out > 0 && n->out[0];
}

bool scaling_moves(const Node *n) {
    QuantClass k = n->def ? n->def->quant.kind : QUANT_NEVER;
    return (k == QUANT_MOVE || k == QUANT_ORDER) && first_alone(n) && rule_single_data(n) == 0 &&
           fills_zero(n);
}

bool scaling_commutes(const Node *n) {
    float lo, hi;
    if (!n->n_in || !n->in[0] || !n->def)
        return false;
    return n->def->quant.kind == QUANT_CLAMP
               ? clamp_bounds(n, &lo, &hi) && lo == 0 && hi == INFINITY
               : scaling_moves(n);
}

bool scaling_keeps(const Node *n) {
    return scaling_commutes(n) && !node_interpolates(n);
}

bool scaling_behind(const Value *v, ScalingThrough *through, ScalingEach *each, void *ctx) {
    for (;;) {
        const Node *n = v ? v->def : NULL;
        if (!n || n->out[0] != v)
            return false;
        if (is_own_dequantize(n))
            return each(ctx, n->in[0]);
        if (n->def && n->def->quant.kind == QUANT_JOIN && n->n_out == 1) {
            bool all = n->n_in > 0;
            for (size_t i = 0; all && i < n->n_in; i++)
                all = scaling_behind(n->in[i], through, each, ctx);
            return all;
        }
        if (!through(n))
            return false;
        v = n->in[0];
    }
}

typedef struct Integers {
    const Scaling *s;
    const Quant *q;
} Integers;

static bool is_plain(void *ctx, Value *ints) {
    Integers *all = ctx;
    const Quant *q = ints->type.quant;
    bool step = all->s->steps && map_get(all->s->steps, value_key(ints));
    bool same = !all->q || quant_equal(all->q, q);
    all->q = q;
    return same && quant_is_per_tensor(q) && (step || quant_scale(q, 0) == 1) &&
           quant_zp_all_zero(q);
}

const Quant *scaling_integers(const Scaling *s, const Value *v, ScalingThrough *through) {
    Integers all = {s, NULL};
    return scaling_behind(v, through, is_plain, &all) ? all.q : NULL;
}
