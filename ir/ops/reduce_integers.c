/* The sums, products and logarithms of reduce.c on integers. */
#include "ir/ops/reduce.h"
#include "ir/ops/rounding.h"
#include "kernels/requant_host.h"

/* Whether the kernels on integers serve operand and result. */
static bool takes_integers(const Node *n) {
    ElemType e = bind_elem(n->in[REDUCE_DATA]);
    return quant_plain(op_quant(n->in[REDUCE_DATA])) && quant_plain(op_quant(n->out[0])) &&
           bind_elem(n->out[0]) == e && elem_bits(e) <= 16;
}

/* m = sx / (sy * count), in float as for QLinearGlobalAveragePool. */
bool reduce_sum_integers(Binder *b, const Node *n, const Reduction *r, bool mean) {
    const Quant *x = op_quant(n->in[REDUCE_DATA]), *y = op_quant(n->out[0]);
    ElemType e = bind_elem(n->in[REDUCE_DATA]);
    if (!takes_integers(n) || (mean && r->count == 0)) /* there is no mean, but a sum: 0 */
        return bind_in_double(b, n);
    qk_reducesum_q_params p = {.xz = quant_zero(x), RESULT_PARAMS(y)};
    COPY_REDUCTION(p, *r);
    float sx = quant_scale(x, 0), sy = quant_scale(y, 0), count = mean ? (float)r->count : 1.0f;
    Multiplier m = {sx / (sy * count), (double)sx / ((double)sy * (mean ? (double)r->count : 1.0))};
    SumRounding rounding = bind_average_rounding(b);
    bind_multiplier(b, n, rounding, m, &p.c, &p.k);
    return bind_rounded(b, n, rounding, bind_kernel(b, "reducesum_q", 1, &e), &p, sizeof p, 2,
                        (int[]){bind_value(b, n->in[REDUCE_DATA]), bind_value(b, n->out[0])});
}

/* Of absolute values, squares, and the root of those: m is sx / sy, sx^2 / sy, (sx / sy)^2. */
bool reduce_norm_integers(Binder *b, const Node *n, const Reduction *r, int what) {
    const Quant *x = op_quant(n->in[REDUCE_DATA]), *y = op_quant(n->out[0]);
    ElemType e = bind_elem(n->in[REDUCE_DATA]);
    if (!takes_integers(n))
        return bind_in_double(b, n);
    qk_reducenorm_q_params p = {.what = what, .xz = quant_zero(x), RESULT_PARAMS(y)};
    COPY_REDUCTION(p, *r);
    double sx = (double)quant_scale(x, 0), sy = (double)quant_scale(y, 0), ratio = sx / sy;
    requant_real(what == REDUCE_ABSOLUTE ? ratio
                 : what == REDUCE_SQUARE ? sx * ratio
                                         : ratio * ratio,
                 &p.m, &p.shift);
    return bind_first(b, n, bind_kernel(b, "reducenorm_q", 1, &e), &p, sizeof p);
}

bool reduce_product_integers(Binder *b, const Node *n, const Reduction *r) {
    const Quant *x = op_quant(n->in[REDUCE_DATA]), *y = op_quant(n->out[0]);
    ElemType e = bind_elem(n->in[REDUCE_DATA]);
    int32_t m, shift;
    if (!takes_integers(n) ||
        !requant_power_of(quant_scale(x, 0), r->count, quant_scale(y, 0), &m, &shift))
        return bind_in_double(b, n);
    qk_reduceprod_q_params p = {.xz = quant_zero(x), RESULT_PARAMS(y), .m = m, .shift = shift};
    COPY_REDUCTION(p, *r);
    return bind_first(b, n, bind_kernel(b, "reduceprod_q", 1, &e), &p, sizeof p);
}

/* The logarithm of a sum, or of one of exponentials. */
bool reduce_log_integers(Binder *b, const Node *n, const Reduction *r, bool exponentials) {
    const Quant *x = op_quant(n->in[REDUCE_DATA]), *y = op_quant(n->out[0]);
    ElemType e = bind_elem(n->in[REDUCE_DATA]);
    if (!takes_integers(n) || r->count == 0)
        return bind_in_double(b, n);
    qk_reducelog_q_params p = {.what = exponentials,
                               .xz = quant_zero(x),
                               RESULT_PARAMS(y),
                               .nan = (int32_t)elem_min(y->storage)};
    COPY_REDUCTION(p, *r);
    requant_log(quant_scale(x, 0), quant_scale(y, 0), &p.step, &p.log2, &p.unit, &p.shift);
    return bind_call(b, n, bind_kernel(b, "reducelog_q", 1, &e), &p, sizeof p, 3,
                     (int[]){bind_value(b, n->in[REDUCE_DATA]),
                             exponentials ? bind_exponentials(b, n->in[REDUCE_DATA]) : -1,
                             bind_value(b, n->out[0])});
}

/* Plain integers, as models compute with shapes. */
bool reduce_plain(Binder *b, const Node *n, const Reduction *r, int what, bool mean) {
    ElemType e = n->in[REDUCE_DATA]->type.elem;
    if (mean && r->count == 0)
        return bind_unsupported(b, n, "there is no mean of no integers");
    qk_reduce_i_params p = {.what = what, .divisor = mean ? (int32_t)r->count : 1};
    COPY_REDUCTION(p, *r);
    return bind_first(b, n, bind_kernel(b, "reduce_i", 1, &e), &p, sizeof p);
}
