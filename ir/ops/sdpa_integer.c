/* Attention of opset 23 on integers: exact products of queries and keys, powers of 2, sums of
 * values divided once (kernels/attention/sdpa_q.qk). */
#include "ir/ops/sdpa.h"
#include "kernels/requant_host.h"

#include <math.h>

const char *sdpa_refusal(const OpCtx *c, const Quant *x) {
    const Value *m = op_in(c, MASK);
    (void)x;
    if (c->n_out > SCORES && c->node->out[SCORES])
        return "it yields scores beside its result";
    return !m || m->type.elem == ELEM_BOOL || type_real_elem(m->type) == ELEM_FLOAT
               ? NULL
               : "its mask is neither truths nor floats";
}

/* Parameters of the integer kernel begin with the integers of the float one. */
_Static_assert(offsetof(qk_sdpa_q_params, qz) == offsetof(qk_sdpa_f32_params, scale),
               "copied as they are");

enum { MOST_POINT = 56, LEAST_POINT = 28, HIDDEN_BITS = 62, MEAN_BITS = 31, TANH_BITS = 31 };
enum { MASK_POINT = 52 }; /* and the bits of a mask: a step that is cut is 2^8 all the same */
enum { MORE_BITS = 12 };  /* behind the point of a share of the result */

static int bits_of(double v) {
    int e;
    frexp(v, &e);
    return e;
}

/* A computed mask as the kernel counts scores. A step of it that is beyond what it can hold hides
 * as well. */
static int added_computed(Binder *b, const Node *n, const Value *m, int point) {
    const Quant *q = op_quant(m);
    ElemType e = bind_elem(m);
    double step = ldexp((double)quant_scale(q, 0) * M_LOG2E, point);
    qk_addend_q_params p = {.rank = 1, .dim = {bind_count(m)}, .xs = {1}, .xz = quant_zero(q)};
    p.m = llrint(fmin(step, ldexp(1, 60 - elem_bits(e))));
    int added = bind_temp(b, ELEM_INT64, (size_t)p.dim[0]);
    bind_call(b, n, bind_kernel(b, "addend_q", 1, &e), &p, sizeof p, 2,
              (int[]){bind_value(b, m), added});
    return added;
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

/* How sums of queries and these keys are counted: as scores, or with a softcap as what goes into
 * the curve. False where they do not fit 64 bits. */
static bool sums_fit(const Node *n, const SdpaAttrs *a, const qk_sdpa_f32_params *of,
                     const Value *keys, int *point, int64_t *step) {
    int bits = elem_bits(bind_elem(n->in[Q]));
    double scale = a->scale != 0 ? (double)a->scale : 1 / sqrt(of->size);
    double each = scale * M_LOG2E * (double)quant_scale(op_quant(n->in[Q]), 0) *
                  (double)quant_scale(op_quant(keys), 0);
    if (a->softcap != 0)
        each *= 2 / (double)a->softcap;
    if (!isfinite(each))
        return false;
    int room = 60 - 2 * bits - bits_of(of->size) - bits_of(fabs(each));
    *point = room < MOST_POINT ? room : MOST_POINT;
    *step = llrint(ldexp(each, *point < LEAST_POINT ? 0 : *point));
    return *point >= LEAST_POINT;
}

/* Scores in one unit: those of the past in that of the others. */
static bool scores_fit(const Node *n, const OpCtx *c, const qk_sdpa_f32_params *of,
                       qk_sdpa_q_params *p) {
    const SdpaAttrs *a = c->attrs;
    const Value *old = op_in(c, PAST_K);
    const Quant *mask = op_quant(op_in(c, MASK));
    int most = mask ? MASK_POINT - elem_bits(mask->storage) : MOST_POINT;
    if (!sums_fit(n, a, of, n->in[K], &p->curve, &p->step) ||
        (old && !sums_fit(n, a, of, old, &p->pcurve, &p->pstep)))
        return false;
    if (a->softcap == 0) {
        p->point = p->curve < most ? p->curve : most;
        p->point = old && p->pcurve < p->point ? p->pcurve : p->point;
        return true;
    }
    double top = (double)a->softcap * M_LOG2E;
    int room = 60 - bits_of(fabs(top));
    p->point = room < most ? room : most;
    p->cap = llrint(ldexp(top, p->point - TANH_BITS));
    return p->point >= LEAST_POINT && p->cap != 0;
}

/* What means of values are multiplied by. With those of the past, shares are rounded to 2^-more. */
static bool values_fit(const Node *n, const OpCtx *c, qk_sdpa_q_params *p) {
    const Value *old = op_in(c, PAST_V);
    float y = quant_scale(op_quant(n->out[Y]), 0);
    int32_t e = 0;
    int bits = elem_bits(bind_elem(n->in[Q])), cut = 31 + bits + 1 + bits_of(p->keys) - 62;
    p->cut = cut > 0 ? cut : 0;
    p->more = old ? MORE_BITS : 0;
    requant_scaled(quant_scale(op_quant(n->in[V]), 0), y, &p->n, &p->d, &e);
    p->s = MEAN_BITS - e - p->more > 63 ? 63 : MEAN_BITS - e - p->more;
    if (old) {
        requant_scaled(quant_scale(op_quant(old), 0), y, &p->pn, &p->pd, &e);
        p->ps = MEAN_BITS - e - p->more > 63 ? 63 : MEAN_BITS - e - p->more;
    }
    return p->cut < 16 && p->s > 0 && (!old || p->ps > 0);
}

/* Keys or values with those of the past before them, on the grid that these go out on. */
static bool yield_cache(Binder *b, const Node *n, const OpCtx *c, size_t i) {
    const Value *y = sdpa_present(n, i);
    bool ok = true;
    if (!y)
        return true;
    const Value *old = op_in(c, i == K ? PAST_K : PAST_V);
    int past = old ? bind_joined_to(b, n, old, y, &ok) : -1;
    return sdpa_join(b, n, c, i, past, bind_joined_to(b, n, n->in[i], y, &ok), bind_value(b, y)) &&
           ok;
}

/* Why its types have no kernel, NULL: they have. */
static const char *types_refusal(const Node *n, const OpCtx *c) {
    static const size_t which[] = {Q, K, V, PAST_K, PAST_V};
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        const Value *v = op_in(c, which[i]);
        if (v && (!quant_plain(op_quant(v)) || bind_elem(v) != bind_elem(n->out[Y])))
            return "no integer kernel takes its types";
    }
    for (size_t i = Y; i < n->n_out; i++)
        if (n->out[i] && !quant_plain(op_quant(n->out[i])))
            return "its result is float";
    return elem_bits(bind_elem(n->out[Y])) > 16 ? "no integer kernel takes its types" : NULL;
}

static int zero_of(const Value *v) {
    return v ? quant_zero(op_quant(v)) : 0;
}

bool sdpa_bind_integers(Binder *b, const Node *n, const OpCtx *c) {
    const Value *m = op_in(c, MASK);
    ElemType e = bind_elem(n->out[Y]);
    const char *why = sdpa_refusal(c, NULL);
    qk_sdpa_f32_params of = sdpa_params(n, c);
    why = why ? why : types_refusal(n, c);
    if (!why && m &&
        (op_quant(m) ? !quant_plain(op_quant(m))
                     : type_real_elem(m->type) == ELEM_FLOAT && !value_data(m)))
        why = "its mask is computed as float";
    if (why)
        return bind_unsupported(b, n, "%s", why);
    qk_sdpa_q_params p = {.qz = zero_of(n->in[Q]),
                          .kz = zero_of(n->in[K]),
                          .vz = zero_of(n->in[V]),
                          .past = of.offset,
                          .pkz = zero_of(op_in(c, PAST_K)),
                          .pvz = zero_of(op_in(c, PAST_V)),
                          RESULT_PARAMS(op_quant(n->out[Y]))};
    int masks[2] = {-1, -1};
    if (m)
        sdpa_mask_strides(m->type, &of);
    memcpy(&p, &of, offsetof(qk_sdpa_f32_params, scale));
    if (!scores_fit(n, c, &of, &p) || !values_fit(n, c, &p))
        return bind_unsupported(b, n, "its scales are too far apart for integers");
    if (m)
        masks[m->type.elem != ELEM_BOOL] = m->type.elem == ELEM_BOOL ? bind_value(b, m)
                                           : op_quant(m) ? added_computed(b, n, m, p.point)
                                                         : added_integers(b, m, p.point);
    bind_macs(b, (int64_t)p.batch * p.heads * p.sq * p.keys * (p.size + p.v_size));
    if (!bind_call(b, n, bind_kernel(b, "sdpa_q", 1, &e), &p, sizeof p, 10,
                   (int[]){bind_value(b, n->in[Q]), bind_value(b, n->in[K]),
                           bind_value(b, n->in[V]), bind_value(b, op_in(c, PAST_K)),
                           bind_value(b, op_in(c, PAST_V)), masks[0], masks[1],
                           bind_value(b, op_in(c, LENS)), bind_value(b, n->out[Y]),
                           bind_scratch(b, ELEM_INT64, (size_t)p.keys)}))
        return false;
    bind_within(b, op_in(c, LENS), false, (int32_t[]){p.keys + 1}, 1);
    return yield_cache(b, n, c, K) && yield_cache(b, n, c, V);
}
