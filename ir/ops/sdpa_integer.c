/* Attention of opset 23 on integers: exact products of queries and keys, powers of 2, sums of
 * values divided once (kernels/attention/sdpa_q.qk). */
#include "ir/ops/sdpa.h"
#include "kernels/requant_host.h"

#include <math.h>

const char *sdpa_refusal(const OpCtx *c, const Quant *x) {
    const SdpaAttrs *a = c->attrs;
    const Value *m = op_in(c, MASK);
    (void)x;
    for (size_t i = PRESENT_K; i < c->n_out; i++)
        if (c->node->out[i])
            return "it yields keys, values or scores beside its result";
    if (op_in(c, PAST_K))
        return "it has keys and values of the past";
    if (a->softcap != 0)
        return "it has a softcap";
    const Tensor *t = m ? value_data(m) : NULL;
    return !m || m->type.elem == ELEM_BOOL || (t && t->data && t->elem == ELEM_FLOAT)
               ? NULL
               : "its mask is neither truths nor a float constant";
}

/* Parameters of the integer kernel begin with the integers of the float one. */
_Static_assert(offsetof(qk_sdpa_q_params, qz) == offsetof(qk_sdpa_f32_params, scale),
               "copied as they are");

enum { MOST_POINT = 56, LEAST_POINT = 28, HIDDEN_BITS = 62, MEAN_BITS = 31 };

static int bits_of(double v) {
    int e;
    frexp(v, &e);
    return e;
}

/* What is added to scores, as the kernel counts them. */
static int added_integers(Binder *b, const Value *m, int point) {
    const Tensor *t = value_data(m);
    int64_t *added = NEW_ARRAY(binder_arena(b), int64_t, t->count + 1),
            none = -((int64_t)1 << HIDDEN_BITS);
    for (size_t i = 0; i < t->count; i++) {
        double v = ldexp(tensor_float(t, i) * M_LOG2E, point);
        added[i] = isinf(v) && v < 0 ? none : llrint(fmax(-0x1p61, fmin(v, 0x1p61)));
    }
    return bind_const(b, ELEM_INT64, t->count, added, "mask");
}

/* False where its numbers do not fit 64 bits. */
static bool scales_fit(const Node *n, const SdpaAttrs *a, const qk_sdpa_f32_params *of,
                       qk_sdpa_q_params *p) {
    const Quant *q = op_quant(n->in[Q]), *k = op_quant(n->in[K]), *v = op_quant(n->in[V]);
    int bits = elem_bits(bind_elem(n->in[Q])), keys = bits_of(of->keys);
    double scale = a->scale != 0 ? (double)a->scale : 1 / sqrt(of->size);
    double step = scale * M_LOG2E * (double)quant_scale(q, 0) * (double)quant_scale(k, 0);
    if (!isfinite(step))
        return false;
    int room = 60 - 2 * bits - bits_of(of->size) - bits_of(fabs(step));
    int32_t e = 0;
    p->point = room < MOST_POINT ? room : MOST_POINT;
    p->step = llrint(ldexp(step, p->point < LEAST_POINT ? 0 : p->point));
    p->cut = 31 + bits + 1 + keys > 62 ? 31 + bits + 1 + keys - 62 : 0;
    requant_scaled(quant_scale(v, 0), quant_scale(op_quant(n->out[Y]), 0), &p->n, &p->d, &e);
    p->s = MEAN_BITS - e > 63 ? 63 : MEAN_BITS - e;
    return p->point >= LEAST_POINT && p->cut < 16;
}

bool sdpa_bind_integers(Binder *b, const Node *n, const OpCtx *c) {
    const Quant *y = op_quant(n->out[Y]);
    const Value *m = op_in(c, MASK);
    ElemType e = bind_elem(n->out[Y]);
    const char *why = sdpa_refusal(c, NULL);
    qk_sdpa_f32_params of = sdpa_params(n, c);
    for (size_t i = Q; i <= V; i++)
        if (!quant_plain(op_quant(n->in[i])) || bind_elem(n->in[i]) != e)
            why = "no integer kernel takes its types";
    if (why || !quant_plain(y))
        return bind_unsupported(b, n, "%s", why ? why : "its result is float");
    qk_sdpa_q_params p = {.qz = quant_zero(op_quant(n->in[Q])),
                          .kz = quant_zero(op_quant(n->in[K])),
                          .vz = quant_zero(op_quant(n->in[V])),
                          RESULT_PARAMS(y)};
    int masks[2] = {-1, -1};
    if (!scales_fit(n, c->attrs, &of, &p))
        return bind_unsupported(b, n, "its scales are too far apart for integers");
    if (m) {
        sdpa_mask_strides(m->type, &of);
        masks[m->type.elem != ELEM_BOOL] =
            m->type.elem == ELEM_BOOL ? bind_value(b, m) : added_integers(b, m, p.point);
    }
    memcpy(&p, &of, offsetof(qk_sdpa_f32_params, scale));
    bind_macs(b, (int64_t)p.batch * p.heads * p.sq * p.keys * (p.size + p.v_size));
    if (!bind_call(b, n, bind_kernel(b, "sdpa_q", 1, &e), &p, sizeof p, 8,
                   (int[]){bind_value(b, n->in[Q]), bind_value(b, n->in[K]),
                           bind_value(b, n->in[V]), masks[0], masks[1],
                           bind_value(b, op_in(c, LENS)), bind_value(b, n->out[Y]),
                           bind_scratch(b, ELEM_INT64, (size_t)p.keys)}))
        return false;
    bind_within(b, op_in(c, LENS), false, (int32_t[]){p.keys + 1}, 1);
    return true;
}
