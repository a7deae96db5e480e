/* Mean: the sum of any number of operands, divided by their number. From opset 8 they broadcast. Of
 * integers it is rounded once; Sum of several is computed in the same way. */
#include "ir/ops/overlay.h"
#include "kernels/requant_host.h"

/* ---- integers ---- */

static bool add_term(Binder *b, const Node *n, size_t i, int64_t m, int sum) {
    const Value *x = n->in[i];
    ElemType e = bind_elem(x);
    Broadcast s = bind_broadcast(x->type, n->out[0]->type, n->out[0]->type);
    qk_addend_q_params p = {.rank = s.rank, .xz = quant_zero(op_quant(x)), .more = i > 0, .m = m};
    memcpy(p.dim, s.dim, sizeof p.dim);
    memcpy(p.xs, s.as, sizeof p.xs);
    return bind_call(b, n, bind_kernel(b, "addend_q", 1, &e), &p, sizeof p, 2,
                     (int[]){bind_value(b, x), sum});
}

bool bind_sum_integers(Binder *b, const Node *n, int64_t divisor) {
    const Value *y = n->out[0];
    const Quant *q = op_quant(y);
    if (!bind_one_storage(n))
        return bind_in_double(b, n);
    ElemType e = bind_elem(y);
    float *scale = NEW_ARRAY(binder_arena(b), float, n->n_in);
    int64_t *m = NEW_ARRAY(binder_arena(b), int64_t, n->n_in);
    for (size_t i = 0; i < n->n_in; i++)
        scale[i] = quant_scale(op_quant(n->in[i]), 0);
    qk_round_sum_q_params p = {.n = bind_count(y), RESULT_PARAMS(q)};
    requant_terms(scale, n->n_in, n->n_in, (double)quant_scale(q, 0) * (double)divisor,
                  elem_bits(e), m, &p.shift);
    int sum = bind_temp(b, ELEM_INT64, (size_t)p.n);
    for (size_t i = 0; i < n->n_in; i++)
        if (!add_term(b, n, i, m[i], sum))
            return false;
    if (!bind_call(b, n, bind_kernel(b, "round_sum_q", 1, &e), &p, sizeof p, 2,
                   (int[]){sum, bind_value(b, y)}))
        return false;
    bind_over_each(b, 0, p.n, ELEM_INT64, e);
    return true;
}

/* ---- Mean ---- */

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    const Value *y = n->out[0];
    if (bind_any_quant(n))
        return bind_sum_integers(b, n, (int64_t)n->n_in);
    Type so_far = n->in[0]->type;
    ElemType e = bind_real(b);
    int sum = bind_value(b, n->in[0]);
    if (!bind_floats_only(b, n))
        return false;
    for (size_t i = 1; i < n->n_in; i++) {
        int to = bind_temp(b, ELEM_FLOAT, (size_t)bind_count(y));
        if (!bind_binary(b, n, "add", e, bind_broadcast(so_far, n->in[i]->type, y->type),
                         (int[]){sum, bind_value(b, n->in[i]), to}))
            return false;
        sum = to;
        so_far = y->type;
    }
    double count = (double)n->n_in;
    return bind_binary(b, n, "div", e, bind_broadcast(so_far, type_tensor(e, 0, NULL), y->type),
                       (int[]){sum, bind_reals(b, 1, &count, "count"), bind_value(b, y)});
}

const OpDef op_Mean = {
    .domain = "",
    .name = "Mean",
    .infer = op_broadcast,
    .quant = {.kind = QUANT_COMPUTE,
              .data = 1u << 31,
              .scaled.homogeneous = true,
              .same_storage = true},
    .passes_on = op_is_alone,
    .bind = bind,
};
