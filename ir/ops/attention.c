/* com.microsoft Attention: one product for queries, keys and values, then softmax(q . k) . v. What
 * onnxruntime's optimizer makes of BERT's and GPT's layers. Without past, rotary embedding and
 * added scores: split-unbound makes products of those that have a past or added scores. */
#include "ir/ops/bind.h"

#include <math.h>

enum { INPUT, WEIGHTS, BIAS, MASK, PAST, SCORES, PAST_LENGTH };

typedef struct AttentionAttrs {
    int64_t num_heads, unidirectional, do_rotary, past_present_share_buffer, rotary_embedding_dim;
    float scale, mask_filter_value;
    Ints qkv_hidden_sizes;
} AttentionAttrs;

static const AttrSpec attrs[] = {
    A_INT_REQUIRED(AttentionAttrs, num_heads),
    A_FLAG(AttentionAttrs, unidirectional, 0),
    A_INT(AttentionAttrs, do_rotary, 0),
    A_INT(AttentionAttrs, past_present_share_buffer, 0),
    A_INT(AttentionAttrs, rotary_embedding_dim, 0),
    A_FLOAT(AttentionAttrs, scale, 0.0f),
    A_FLOAT(AttentionAttrs, mask_filter_value, -10000.0f),
    A_INTS(AttentionAttrs, qkv_hidden_sizes),
    A_END,
};

/* Numbers that queries (and keys) and values of all heads have; -1 where they are not known. */
static void sizes(const OpCtx *c, int64_t *qk, int64_t *v) {
    const AttentionAttrs *a = c->attrs;
    Type w = op_type(c, WEIGHTS);
    int64_t all = w.rank == 2 ? w.dims[1].value : -1;
    *qk = *v = all < 0 ? -1 : all / 3;
    if (a->qkv_hidden_sizes.n == 3) {
        *qk = a->qkv_hidden_sizes.v[0];
        *v = a->qkv_hidden_sizes.v[2];
    }
}

static bool check_sizes(const OpCtx *c) {
    const AttentionAttrs *a = c->attrs;
    Ints given = a->qkv_hidden_sizes;
    int64_t qk, v, all = op_type(c, WEIGHTS).rank == 2 ? op_type(c, WEIGHTS).dims[1].value : -1;
    if (!op_number(c, "num_heads", a->num_heads))
        return false;
    if (given.n && (given.n != 3 || given.v[0] != given.v[1] || given.v[0] < 1 || given.v[2] < 1))
        return op_error_attr(c, "qkv_hidden_sizes",
                             "qkv_hidden_sizes must be three numbers above 0, the first two equal");
    sizes(c, &qk, &v);
    if (qk >= 0 && (qk % a->num_heads || v % a->num_heads))
        return op_error_attr(c, "num_heads", "%lld and %lld numbers do not divide into %lld heads",
                             (long long)qk, (long long)v, (long long)a->num_heads);
    if (all >= 0 && all != dim_add(dim_mul(2, qk), v))
        return op_error_in(c, WEIGHTS, "weights have %lld columns, must be %lld", (long long)all,
                           (long long)dim_add(dim_mul(2, qk), v));
    return true;
}

static bool verify(const OpCtx *c) {
    Type x = op_type(c, INPUT), w = op_type(c, WEIGHTS), bias = op_type(c, BIAS);
    if ((x.rank >= 0 && x.rank != 3) || (w.rank >= 0 && w.rank != 2))
        return op_error_in(c, x.rank >= 0 && x.rank != 3 ? INPUT : WEIGHTS,
                           "input and weights must have rank 3 and 2, not %d and %d", x.rank,
                           w.rank);
    if (!check_sizes(c))
        return false;
    if (x.rank == 3 && w.rank == 2 && dim_differ(x.dims[2].value, w.dims[0].value))
        return op_error_in(c, WEIGHTS, "input has %lld numbers, weights %lld rows",
                           (long long)x.dims[2].value, (long long)w.dims[0].value);
    if (w.rank == 2 && bias.rank >= 0 &&
        (bias.rank != 1 || dim_differ(bias.dims[0].value, w.dims[1].value)))
        return op_error_in(c, BIAS, "bias is %s, must have as many numbers as weights have columns",
                           type_text(c->arena, bias));
    return true;
}

static bool infer(OpCtx *c) {
    Type x = op_type(c, INPUT);
    int64_t qk, v;
    if (x.rank != 3)
        return true;
    sizes(c, &qk, &v);
    Dim *dims = arena_copy(c->arena, x.dims, 3 * sizeof *dims);
    dims[2] = dim_of(v);
    c->out[0] = type_tensor(type_real_elem(x), 3, dims);
    return true;
}

/* ---- binding ---- */

/* Which kind of mask the kernel sees; -1 after saying that there is none for it. */
static int mask_kind(Binder *b, const Node *n, const Value *mask) {
    Type x = n->in[INPUT]->type;
    int64_t batch = x.dims[0].value, steps = x.dims[1].value;
    if (!mask)
        return 0;
    const Dim *d = mask->type.dims;
    int rank = mask->type.rank;
    if (mask->type.elem == ELEM_INT32 && rank == 1 && d[0].value == batch)
        return 1;
    if (mask->type.elem == ELEM_INT32 && rank == 1 && d[0].value == 2 * batch)
        return 2;
    if (mask->type.elem == ELEM_INT32 && (rank == 2 || rank == 3) && d[0].value == batch &&
        d[1].value == steps && (rank == 2 || d[2].value == steps))
        return rank + 1;
    return bind_unsupported(b, n, "its mask is %s; it can be int32[B], [2*B], [B,S] or [B,S,S]",
                            type_text(binder_arena(b), mask->type)) -
           1;
}

/* As QAttention has them. */
static bool is_dynamic(const Node *n) {
    const Quant *x = op_quant(n->in[INPUT]);
    return x && x->kind == QUANT_DYNAMIC &&
           bind_projects(n->in[WEIGHTS], n->in[WEIGHTS]->type.dims[0].value);
}

static bool supported(Binder *b, const Node *n, const OpCtx *c) {
    const AttentionAttrs *a = c->attrs;
    if (op_in(c, PAST) || op_in(c, PAST_LENGTH) || (n->n_out > 1 && n->out[1]))
        return bind_unsupported(b, n, "it has past or present keys and values");
    if (op_in(c, SCORES))
        return bind_unsupported(b, n, "it has an attention_bias");
    if (a->do_rotary)
        return bind_unsupported(b, n, "it has a rotary embedding");
    for (size_t i = is_dynamic(n) ? BIAS : INPUT; i <= BIAS; i++)
        if (op_in(c, i) && (n->in[i]->type.elem != ELEM_FLOAT || op_quant(n->in[i])))
            return bind_unsupported(b, n, "operand %zu is %s; only float has a kernel", i,
                                    op_quant(n->in[i]) ? "quantized"
                                                       : elem_name(n->in[i]->type.elem));
    return true;
}

/* The rows of all steps by the weights, plus the bias, into `to`. */
static bool bind_qkv(Binder *b, const Node *n, const OpCtx *c, int to) {
    Type x = n->in[INPUT]->type, w = n->in[WEIGHTS]->type;
    int32_t k = (int32_t)w.dims[0].value, columns = (int32_t)w.dims[1].value;
    qk_matmul_f32_params p = {.m = bind_extent(x, 0, 2),
                              .n = columns,
                              .k = k,
                              .am = k,
                              .ak = 1,
                              .bk = columns,
                              .bn = 1,
                              .has_c = op_in(c, BIAS) != NULL,
                              .cn = 1,
                              .alpha = 1,
                              .beta = 1};
    int args[] = {bind_value(b, n->in[INPUT]), bind_value(b, n->in[WEIGHTS]),
                  bind_value(b, op_in(c, BIAS)), to};
    return bind_matmul(b, n, &p, args);
}

static bool bind_qkv_dynamic(Binder *b, const Node *n, const OpCtx *c, int to) {
    Type x = n->in[INPUT]->type;
    const Tensor *w = value_data(n->in[WEIGHTS]);
    size_t len = (size_t)w->dims[0], columns = (size_t)w->dims[1];
    const uint8_t *from = w->data;
    uint8_t *rows = arena_alloc(binder_arena(b), len * columns + 1);
    for (size_t i = 0; i < len * columns; i++)
        rows[i % columns * len + i / columns] = from[i];
    Projection p = {.rows = bind_extent(x, 0, 2),
                    .columns = (int32_t)columns,
                    .len = (int32_t)len,
                    .parts = 1,
                    .weights = bind_const(b, w->elem, w->count, rows, "weights by column")};
    return bind_projection(b, n, &p, n->in[INPUT], n->in[WEIGHTS], bind_value(b, op_in(c, BIAS)),
                           to);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const AttentionAttrs *a = c->attrs;
    Type x = n->in[INPUT]->type, w = n->in[WEIGHTS]->type;
    int64_t qk, v, rows = bind_extent(x, 0, 2), count = dim_mul(rows, w.dims[1].value);
    if (!supported(b, n, c))
        return false;
    sizes(c, &qk, &v);
    int kind = mask_kind(b, n, op_in(c, MASK));
    if (kind < 0)
        return false;
    if (count > INT32_MAX)
        return bind_unsupported(b, n, "its queries, keys and values are more than 2^31 numbers");
    qk_attention_f32_params p = {.batch = (int32_t)x.dims[0].value,
                                 .steps = (int32_t)x.dims[1].value,
                                 .heads = (int32_t)a->num_heads,
                                 .qk = (int32_t)(qk / a->num_heads),
                                 .v = (int32_t)(v / a->num_heads),
                                 .causal = a->unidirectional != 0,
                                 .kind = kind,
                                 .scale = a->scale,
                                 .filter = a->mask_filter_value};
    if (a->scale == 0 && p.qk > 0)
        p.scale = 1.0f / sqrtf((float)p.qk);
    int qkv = bind_temp(b, ELEM_FLOAT, (size_t)count);
    bind_macs(b, dim_add(dim_mul(count, x.dims[2].value),
                         dim_mul(dim_mul(rows, x.dims[1].value), qk + v)));
    int args[] = {qkv, bind_value(b, op_in(c, MASK)), bind_value(b, n->out[0]),
                  bind_scratch(b, ELEM_FLOAT, (size_t)p.steps)};
    return (is_dynamic(n) ? bind_qkv_dynamic : bind_qkv)(b, n, c, qkv) &&
           bind_call(b, n, "qk_attention_f32", &p, sizeof p, 4, args);
}

static bool has_form(const OpCtx *c, const char **why) {
    const AttentionAttrs *a = c->attrs;
    *why = "QAttention has neither qkv_hidden_sizes nor added scores, and always a bias";
    return !a->qkv_hidden_sizes.n && !a->rotary_embedding_dim && !a->do_rotary && op_in(c, BIAS) &&
           !op_in(c, PAST) && !op_in(c, SCORES) && !op_in(c, PAST_LENGTH);
}

/* A mask of rank 1 may say two numbers of each row, one half behind the other. */
static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    bool rows = i == INPUT || (i == MASK && op_type(c, MASK).rank > 1);
    return rows && axis == 0 && result == 0 ? 0 : -1;
}

const OpDef op_MsAttention = {
    .domain = "com.microsoft",
    .name = "Attention",
    .family = FAMILY_SEQUENCE,
    .attrs_size = sizeof(AttentionAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .quant = {.stores.operands = 1u << WEIGHTS, .stores.axis = 1, .stores.summed = 0},
    .dynamic = {.op = "QAttention",
                .operands = "0 1 2 0s 1s 3 0z 1z",
                .weights = 1u << WEIGHTS,
                .data = INPUT,
                .axis = 1,
                .applies = has_form},
    .bind = bind,
};
