/* LinearAttention of opset 27: a state for each head instead of scores for each pair of steps. What
 * a step does to it is the update rule: keys times values are added, with rows that fade ("gated")
 * or what the state already yields for the key taken off ("delta"). */
#include "ir/ops/bind.h"

#include <math.h>

enum { Q, K, V, PAST, DECAY, BETA };
enum { Y, STATE };

typedef struct LinearAttrs {
    int64_t q_num_heads, kv_num_heads, chunk_size;
    float scale;
    Str update_rule;
} LinearAttrs;

static const AttrSpec attrs[] = {
    A_INT_REQUIRED(LinearAttrs, q_num_heads),
    A_INT_REQUIRED(LinearAttrs, kv_num_heads),
    A_INT(LinearAttrs, chunk_size, 64),
    A_FLOAT(LinearAttrs, scale, 0.0f),
    A_WORD(LinearAttrs, update_rule, "gated_delta", "linear gated delta gated_delta"),
    A_END,
};

/* Dimension `axis` of an operand; -1 where it is not known. */
static int64_t dim(const OpCtx *c, size_t i, int axis) {
    Type t = op_type(c, i);
    return t.rank > axis ? t.dims[axis].value : -1;
}

/* Numbers of one head; -1 where that is not known. */
static int64_t size_of(const OpCtx *c, size_t i) {
    const LinearAttrs *a = c->attrs;
    int64_t all = dim(c, i, 2);
    return all < 0 ? -1 : all / (i == Q ? a->q_num_heads : a->kv_num_heads);
}

/* The batch (axis 0) or the steps (axis 1), of the first operand that says it. */
static int64_t rows(const OpCtx *c, int axis) {
    for (size_t i = Q; i <= BETA; i++)
        if ((i != PAST || axis == 0) && op_in(c, i) && dim(c, i, axis) >= 0)
            return dim(c, i, axis);
    return -1;
}

/* Every operand but the state is [batch, steps, numbers]. */
static bool check_rows(const OpCtx *c, size_t i) {
    Type t = op_type(c, i);
    if (i == PAST || t.rank < 0)
        return true;
    if (t.rank != 3)
        return op_error_in(c, i, "has rank %d, must have 3", t.rank);
    if (dim_differ(dim(c, i, 0), rows(c, 0)) || dim_differ(dim(c, i, 1), rows(c, 1)))
        return op_error_in(c, i, "differs from an operand before in batch or steps");
    return true;
}

static bool check_heads(const OpCtx *c) {
    const LinearAttrs *a = c->attrs;
    if (!op_number(c, "q_num_heads", a->q_num_heads) ||
        !op_number(c, "kv_num_heads", a->kv_num_heads))
        return false;
    if (a->q_num_heads % a->kv_num_heads)
        return op_error_attr(c, "q_num_heads",
                             "%lld heads of queries do not divide by %lld of keys",
                             (long long)a->q_num_heads, (long long)a->kv_num_heads);
    for (size_t i = Q; i <= V; i++) {
        int64_t heads = i == Q ? a->q_num_heads : a->kv_num_heads;
        if (dim(c, i, 2) >= 0 && dim(c, i, 2) % heads)
            return op_error_in(c, i, "%lld numbers do not divide into %lld heads",
                               (long long)dim(c, i, 2), (long long)heads);
    }
    return !dim_differ(size_of(c, Q), size_of(c, K)) ||
           op_error_in(c, K, "keys have %lld numbers, queries %lld", (long long)size_of(c, K),
                       (long long)size_of(c, Q));
}

static bool check_past(const OpCtx *c) {
    const LinearAttrs *a = c->attrs;
    Type t = op_type(c, PAST);
    if (!op_in(c, PAST) || t.rank < 0)
        return true;
    if (t.rank != 4)
        return op_error_in(c, PAST, "has rank %d, must have 4", t.rank);
    return !(dim_differ(dim(c, PAST, 0), rows(c, 0)) ||
             dim_differ(dim(c, PAST, 1), a->kv_num_heads) ||
             dim_differ(dim(c, PAST, 2), size_of(c, K)) ||
             dim_differ(dim(c, PAST, 3), size_of(c, V))) ||
           op_error_in(c, PAST, "must be [batch, kv_num_heads, size of a key, size of a value]");
}

/* Decays of a head and updates of a step. */
static bool check_rule(const OpCtx *c) {
    const LinearAttrs *a = c->attrs;
    bool gated = str_is(a->update_rule, "gated") || str_is(a->update_rule, "gated_delta");
    bool delta = str_is(a->update_rule, "delta") || str_is(a->update_rule, "gated_delta");
    int64_t decays = dim(c, DECAY, 2), betas = dim(c, BETA, 2), heads = a->kv_num_heads;
    if (gated != (op_in(c, DECAY) != NULL) || delta != (op_in(c, BETA) != NULL))
        return op_error(c, "update_rule \"" STR_FMT "\" goes %s decay and %s beta",
                        STR_ARG(a->update_rule), gated ? "with" : "without",
                        delta ? "with" : "without");
    if (decays >= 0 && decays != heads && dim_differ(decays, dim(c, K, 2)))
        return op_error_in(c, DECAY, "has %lld numbers a step, must have %lld, or as many as keys",
                           (long long)decays, (long long)heads);
    return betas < 0 || betas == 1 || betas == heads ||
           op_error_in(c, BETA, "has %lld numbers a step, must have 1 or %lld", (long long)betas,
                       (long long)heads);
}

static bool verify(const OpCtx *c) {
    for (size_t i = Q; i <= BETA; i++)
        if (op_in(c, i) && !check_rows(c, i))
            return false;
    return check_heads(c) && check_past(c) && check_rule(c);
}

static bool infer(OpCtx *c) {
    const LinearAttrs *a = c->attrs;
    int64_t key = size_of(c, K), v = size_of(c, V), batch = rows(c, 0);
    op_result(c, Y, op_type(c, Q), 3,
              (int64_t[]){batch, rows(c, 1), v < 0 ? -1 : dim_mul(a->q_num_heads, v)});
    op_result(c, STATE, op_type(c, op_in(c, PAST) ? PAST : Q), 4,
              (int64_t[]){batch, a->kv_num_heads, key < 0 ? size_of(c, Q) : key, v});
    return true;
}

static bool floats(Binder *b, const Node *n, const OpCtx *c) {
    for (size_t i = Q; i <= BETA; i++) {
        const Value *v = op_in(c, i);
        if (v && (v->type.elem != ELEM_FLOAT || op_quant(v)))
            return bind_unsupported(b, n, "operand %zu is %s; only float has a kernel", i,
                                    op_quant(v) ? "quantized" : elem_name(v->type.elem));
    }
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const LinearAttrs *a = c->attrs;
    qk_linear_attention_f32_params p = {.batch = (int32_t)dim(c, Q, 0),
                                        .steps = (int32_t)dim(c, Q, 1),
                                        .heads = (int32_t)a->q_num_heads,
                                        .kv_heads = (int32_t)a->kv_num_heads,
                                        .size = (int32_t)size_of(c, Q),
                                        .v_size = (int32_t)size_of(c, V),
                                        .scale = a->scale};
    int64_t states = dim_mul(dim_mul(p.batch, p.kv_heads), dim_mul(p.size, p.v_size));
    if (!floats(b, n, c))
        return false;
    if (states > INT32_MAX)
        return bind_unsupported(b, n, "its states are more than 2^31 numbers");
    if (a->scale == 0)
        p.scale = p.size ? 1 / sqrtf((float)p.size) : 1;
    p.betas = op_in(c, BETA) ? (int32_t)dim(c, BETA, 2) : 0;
    p.decays = op_in(c, DECAY) ? (int32_t)(dim(c, DECAY, 2) / a->kv_num_heads) : 0;
    const Value *state = n->n_out > STATE ? n->out[STATE] : NULL;
    bind_macs(b, dim_mul(dim_mul(p.batch, p.steps),
                         dim_mul(dim_mul(p.size, p.v_size), 2 * (int64_t)p.kv_heads + p.heads)));
    return bind_call(
        b, n, "qk_linear_attention_f32", &p, sizeof p, 9,
        (int[]){bind_value(b, n->in[Q]), bind_value(b, n->in[K]), bind_value(b, n->in[V]),
                bind_value(b, op_in(c, PAST)), bind_value(b, op_in(c, DECAY)),
                bind_value(b, op_in(c, BETA)), bind_value(b, n->out[Y]),
                state ? bind_value(b, state) : bind_scratch(b, ELEM_FLOAT, (size_t)states),
                bind_scratch(b, ELEM_FLOAT, (size_t)p.v_size)});
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)c, (void)i, (void)result;
    return axis == 0 ? 0 : -1;
}

const OpDef op_LinearAttention = {
    .domain = "",
    .name = "LinearAttention",
    .attrs_size = sizeof(LinearAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .family = FAMILY_SEQUENCE,
    .bind = bind,
};
