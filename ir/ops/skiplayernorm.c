/* com.microsoft's SkipLayerNormalization and SkipSimplifiedLayerNormalization: a skip, and a bias
 * perhaps, are added before rows are normalized. They run on floats. */
#include "ir/ops/layernorm.h"

enum { INPUT, SKIP, GAMMA, BETA, SKIP_BIAS };
enum { RESULT, MEAN, SPREAD, SUM };

static const AttrSpec skip_attrs[] = {
    A_FLOAT(NormAttrs, epsilon, 1e-12f),
    A_END,
};

static bool skip_infer(OpCtx *c) {
    Type x = op_type(c, INPUT);
    for (size_t i = 1; i < c->n_out && x.rank > 0; i++) {
        Dim *dims = arena_copy(c->arena, x.dims, (size_t)x.rank * sizeof *dims);
        if (i != SUM)
            dims[x.rank - 1] = dim_of(1);
        c->out[i] = type_tensor(i == SUM ? type_real_elem(x) : ELEM_FLOAT, x.rank, dims);
    }
    return op_same_type(c);
}

/* The skip may broadcast. */
static int skip_slices(const OpCtx *c, size_t i, int axis, size_t result) {
    int to = i == INPUT || i == SKIP ? op_slices_each(c, i, axis, result) : -1;
    return to < op_type(c, INPUT).rank - 1 ? to : -1;
}

static bool bind_add(Binder *b, const Node *n, const Value *with, int x, int to) {
    Type y = n->in[INPUT]->type;
    Broadcast s = bind_broadcast(y, with->type, y);
    return bind_binary(b, n, "add", ELEM_FLOAT, s, (int[]){x, bind_value(b, with), to});
}

static bool bind_skip(Binder *b, const Node *n, const OpCtx *c, bool centre) {
    const NormAttrs *a = c->attrs;
    Type x = n->in[INPUT]->type;
    const Value *bias = op_in(c, centre ? SKIP_BIAS : BETA),
                *sum_out = n->n_out > SUM ? n->out[SUM] : NULL;
    size_t count = (size_t)bind_count(n->in[INPUT]);
    if (!bind_floats_only(b, n))
        return false;
    int sum = sum_out ? bind_value(b, sum_out) : bind_temp(b, ELEM_FLOAT, count);
    int first = bias ? bind_temp(b, ELEM_FLOAT, count) : sum;
    int stats[2] = {n->n_out > MEAN ? bind_value(b, n->out[MEAN]) : -1,
                    n->n_out > SPREAD ? bind_value(b, n->out[SPREAD]) : -1};
    NormRows r = {bind_extent(x, 0, x.rank - 1), (int32_t)x.dims[x.rank - 1].value, 1, 0, 1};
    return bind_add(b, n, n->in[SKIP], bind_value(b, n->in[INPUT]), first) &&
           (!bias || bind_add(b, n, bias, first, sum)) &&
           norm_bind_rows(b, n, r, a->epsilon, centre,
                          (int[]){sum, bind_value(b, n->in[GAMMA]),
                                  bind_value(b, centre ? op_in(c, BETA) : NULL),
                                  bind_value(b, n->out[RESULT])},
                          stats);
}

static bool skip_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_skip(b, n, c, true);
}

/* Its operand 3 is the bias: there is no beta. */
static bool skip_simple_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_skip(b, n, c, false);
}

static bool skip_verify(const OpCtx *c) {
    Type x = op_type(c, INPUT);
    if (x.rank < 0)
        return true;
    if (x.rank < 1)
        return op_error_in(c, INPUT, "input is a scalar");
    int64_t last = x.dims[x.rank - 1].value;
    return norm_check_count(c, GAMMA, last) &&
           (!op_in(c, BETA) || norm_check_count(c, BETA, last)) &&
           (!op_in(c, SKIP_BIAS) || norm_check_count(c, SKIP_BIAS, last));
}

const OpDef op_SkipLayerNormalization = {
    .domain = "com.microsoft",
    .name = "SkipLayerNormalization",
    .attrs_size = sizeof(NormAttrs),
    .attrs = skip_attrs,
    .verify = skip_verify,
    .infer = skip_infer,
    .slices = skip_slices,
    .quant = {.scaled.proportional = 1U << GAMMA | 1U << BETA},
    .bind = skip_bind,
};

const OpDef op_SkipSimplifiedLayerNormalization = {
    .domain = "com.microsoft",
    .name = "SkipSimplifiedLayerNormalization",
    .attrs_size = sizeof(NormAttrs),
    .attrs = skip_attrs,
    .verify = skip_verify,
    .infer = skip_infer,
    .slices = skip_slices,
    .quant = {.scaled.proportional = 1U << GAMMA},
    .bind = skip_simple_bind,
};
