/* Attention of opset 23: scaled dot products of queries and keys, softmax, sums of values. Operands
 * are [batch, heads, steps, size] or [batch, steps, heads * size]; keys and values may be appended
 * to those of the past. 24 added lengths of caches, 25 windows. */
#include "ir/ops/sdpa.h"

#include <math.h>

static const AttrSpec attrs[] = {
    A_FLAG(SdpaAttrs, is_causal, 0),         A_INT(SdpaAttrs, q_num_heads, 0),
    A_INT(SdpaAttrs, kv_num_heads, 0),       A_INT(SdpaAttrs, qk_matmul_output_mode, 0),
    A_INT(SdpaAttrs, softmax_precision, 0),  A_INT(SdpaAttrs, left_window_size, -1),
    A_INT(SdpaAttrs, right_window_size, -1), A_FLOAT(SdpaAttrs, scale, 0.0f),
    A_FLOAT(SdpaAttrs, softcap, 0.0f),       A_END,
};

/* One operand as [batch, heads, steps, size]; -1 where that is not known. */
typedef struct Heads {
    int64_t batch, heads, steps, size;
} Heads;

static Heads heads_of(Type t, int64_t heads) {
    Heads h = {-1, -1, -1, -1};
    if (t.rank == 4)
        return (Heads){t.dims[0].value, t.dims[1].value, t.dims[2].value, t.dims[3].value};
    if (t.rank != 3)
        return h;
    int64_t all = t.dims[2].value;
    return (Heads){t.dims[0].value, heads, t.dims[1].value,
                   all < 0 || heads < 1 ? -1 : all / heads};
}

static Heads operand(const OpCtx *c, size_t i) {
    const SdpaAttrs *a = c->attrs;
    return heads_of(op_type(c, i), i == Q ? a->q_num_heads : a->kv_num_heads);
}

static bool check_rank(const OpCtx *c, size_t i) {
    const SdpaAttrs *a = c->attrs;
    Type t = op_type(c, i);
    const char *name = i == Q ? "q_num_heads" : "kv_num_heads";
    int64_t heads = i == Q ? a->q_num_heads : a->kv_num_heads;
    if (t.rank >= 0 && t.rank != 3 && t.rank != 4)
        return op_error_in(c, i, "has rank %d, must have 3 or 4", t.rank);
    if (t.rank == 3 && heads < 1)
        return op_error_attr(c, name, "operands of rank 3 need %s", name);
    if (t.rank == 3 && heads > INT32_MAX)
        return op_error_attr(c, name, "%s is %lld", name, (long long)heads);
    if (t.rank == 3 && t.dims[2].value >= 0 && t.dims[2].value % heads)
        return op_error_in(c, i, "%lld numbers do not divide into %lld heads",
                           (long long)t.dims[2].value, (long long)heads);
    return true;
}

static int64_t sum(int64_t x, int64_t y) {
    return x < 0 || y < 0 ? -1 : dim_add(x, y);
}

static Heads past(const OpCtx *c, size_t i) {
    return op_in(c, i) ? heads_of(op_type(c, i), 0) : (Heads){-1, -1, 0, -1};
}

/* Keys in all, those of the past among them. */
static int64_t total(const OpCtx *c) {
    return sum(operand(c, K).steps, past(c, PAST_K).steps);
}

/* Past keys or values beside those of now, [batch, heads, steps, size]. */
static bool check_past(const OpCtx *c, size_t i, Heads now) {
    Heads before = past(c, i);
    const char *what = i == PAST_K ? "keys" : "values";
    if (op_type(c, i).rank >= 0 && op_type(c, i).rank != 4)
        return op_error_in(c, i, "has rank %d, must have 4", op_type(c, i).rank);
    if (dim_differ(before.batch, now.batch) || dim_differ(before.heads, now.heads) ||
        dim_differ(before.size, now.size))
        return op_error_in(c, i, "past %s differ from %s in batch, heads or size", what, what);
    return true;
}

static bool check_pasts(const OpCtx *c) {
    if (!op_in(c, PAST_K) != !op_in(c, PAST_V))
        return op_error(c, "past keys and past values go together");
    if (!op_in(c, PAST_K))
        return true;
    if (op_in(c, LENS))
        return op_error_in(c, LENS, "lengths of keys do not go with keys of the past");
    if (!check_past(c, PAST_K, operand(c, K)) || !check_past(c, PAST_V, operand(c, V)))
        return false;
    return !dim_differ(past(c, PAST_K).steps, past(c, PAST_V).steps) ||
           op_error_in(c, PAST_V, "past keys and past values differ in number");
}

/* The mask broadcasts to [batch, heads, steps, keys]; its last dimension may be shorter. */
static bool check_mask(const OpCtx *c, Heads q) {
    Type t = op_type(c, MASK);
    int64_t whole[] = {q.batch, q.heads, q.steps, total(c)};
    if (!op_in(c, MASK) || t.rank < 0)
        return true;
    if (t.rank < 1 || t.rank > 4)
        return op_error_in(c, MASK, "has rank %d, must have 1 to 4", t.rank);
    for (int i = 0; i < t.rank; i++) {
        int64_t dim = t.dims[i].value, to = whole[4 - t.rank + i];
        bool shorter = i + 1 == t.rank && dim < to;
        if (dim != 1 && dim_differ(dim, to) && !shorter)
            return op_error_in(c, MASK, "dimension %d is %lld, it masks %lld", i, (long long)dim,
                               (long long)to);
    }
    return true;
}

static bool check_lens(const OpCtx *c, int64_t batch) {
    Type t = op_type(c, LENS);
    if (!op_in(c, LENS) || t.rank < 0)
        return true;
    return (t.rank == 1 && !dim_differ(t.dims[0].value, batch)) ||
           op_error_in(c, LENS, "must be one length for each of the batch, [batch]");
}

static bool check_extras(const OpCtx *c, Heads q) {
    int64_t mode = ((const SdpaAttrs *)c->attrs)->qk_matmul_output_mode;
    if (mode < 0 || mode > 3)
        return op_error_attr(c, "qk_matmul_output_mode",
                             "qk_matmul_output_mode is %lld, must be 0 to 3", (long long)mode);
    return check_pasts(c) && check_mask(c, q) && check_lens(c, q.batch);
}

static bool verify(const OpCtx *c) {
    if (!check_rank(c, Q) || !check_rank(c, K) || !check_rank(c, V))
        return false;
    Heads q = operand(c, Q), k = operand(c, K), v = operand(c, V);
    if (dim_differ(q.batch, k.batch) || dim_differ(q.batch, v.batch))
        return op_error(c, "operands differ in batch size");
    if (dim_differ(q.size, k.size))
        return op_error_in(c, K, "keys have %lld numbers, queries %lld", (long long)k.size,
                           (long long)q.size);
    if (dim_differ(k.heads, v.heads) || dim_differ(k.steps, v.steps))
        return op_error_in(c, V, "keys and values differ in number");
    if (q.heads > 0 && k.heads >= 0 && (k.heads == 0 || q.heads % k.heads))
        return op_error_in(c, K, "%lld heads of queries do not divide by %lld of keys",
                           (long long)q.heads, (long long)k.heads);
    return check_extras(c, q);
}

static bool infer(OpCtx *c) {
    Heads q = operand(c, Q), k = operand(c, K), v = operand(c, V);
    int64_t all = q.heads < 0 || v.size < 0 ? -1 : dim_mul(q.heads, v.size), keys = total(c);
    if (op_type(c, Q).rank == 3)
        op_result(c, Y, op_type(c, Q), 3, (int64_t[]){q.batch, q.steps, all});
    else if (op_type(c, Q).rank == 4)
        op_result(c, Y, op_type(c, Q), 4, (int64_t[]){q.batch, q.heads, q.steps, v.size});
    if (op_type(c, K).rank >= 0 && op_type(c, Q).rank >= 0) {
        op_result(c, PRESENT_K, op_type(c, K), 4, (int64_t[]){k.batch, k.heads, keys, k.size});
        op_result(c, PRESENT_V, op_type(c, V), 4, (int64_t[]){v.batch, v.heads, keys, v.size});
        op_result(c, SCORES, op_type(c, Q), 4, (int64_t[]){q.batch, q.heads, q.steps, keys});
    }
    return true;
}

/* ---- binding ---- */

typedef struct Strides {
    int32_t batch, head, step;
} Strides;

static Strides strides_of(Type t, Heads h) {
    int32_t size = (int32_t)h.size, steps = (int32_t)h.steps, heads = (int32_t)h.heads;
    return t.rank == 4 ? (Strides){heads * steps * size, steps * size, size}
                       : (Strides){steps * heads * size, size, heads * size};
}

const Value *sdpa_present(const Node *n, size_t i) {
    size_t out = i == K ? PRESENT_K : PRESENT_V;
    return out < n->n_out ? n->out[out] : NULL;
}

static bool copy_steps(Binder *b, const Node *n, ElemType e, int from, Strides s, Heads h, int to,
                       int64_t steps, int64_t at) {
    int32_t size = (int32_t)h.size, row = (int32_t)steps * size;
    qk_copy_nd_params p = {.rank = 4,
                           .dim = {(int32_t)h.batch, (int32_t)h.heads, (int32_t)h.steps, size},
                           .ss = {s.batch, s.head, s.step, 1},
                           .ds = {(int32_t)h.heads * row, row, size, 1},
                           .dst_offset = at * size};
    return bind_call(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p, 2, (int[]){from, to});
}

bool sdpa_join(Binder *b, const Node *n, const OpCtx *c, size_t i, int old, int now, int to) {
    Heads h = operand(c, i), before = past(c, i == K ? PAST_K : PAST_V);
    const Value *x = op_in(c, i == K ? PAST_K : PAST_V);
    int64_t steps = before.steps + h.steps;
    const Value *present = sdpa_present(n, i);
    ElemType e = present ? bind_elem(present) : ELEM_FLOAT;
    return (!x || copy_steps(b, n, e, old, strides_of(x->type, before), before, to, steps, 0)) &&
           copy_steps(b, n, e, now, strides_of(n->in[i]->type, h), h, to, steps, before.steps);
}

/* Keys or values with those of the past before them, where there are any or they are asked for. */
static bool cache(Binder *b, const Node *n, const OpCtx *c, size_t i, int *buffer, Strides *s) {
    const Value *x = n->in[i], *old = op_in(c, i == K ? PAST_K : PAST_V);
    const Value *present = sdpa_present(n, i);
    Heads h = operand(c, i);
    *s = strides_of(x->type, h);
    *buffer = bind_value(b, x);
    if (!old && !present)
        return true;
    int from = *buffer;
    h.steps += past(c, i == K ? PAST_K : PAST_V).steps;
    *buffer = present ? bind_value(b, present)
                      : bind_temp(b, ELEM_FLOAT, (size_t)(h.batch * h.heads * h.steps * h.size));
    *s = (Strides){(int32_t)(h.heads * h.steps * h.size), (int32_t)(h.steps * h.size),
                   (int32_t)h.size};
    return sdpa_join(b, n, c, i, bind_value(b, old), from, *buffer);
}

/* Integers and doubles are numbers to add, as floats are. */
static bool added_numbers(Binder *b, const Node *n, const Value *m, int *floats) {
    qk_cast_params p = {.n = bind_count(m)};
    ElemType types[] = {bind_elem(m), ELEM_FLOAT};
    *floats = bind_temp(b, ELEM_FLOAT, (size_t)p.n);
    return bind_call(b, n, bind_kernel(b, "cast", 2, types), &p, sizeof p, 2,
                     (int[]){bind_value(b, m), *floats});
}

void sdpa_mask_strides(Type t, qk_sdpa_f32_params *p) {
    int32_t stride[MAX_RANK];
    bind_strides(t, 4, stride);
    p->mb = stride[0];
    p->mh = stride[1];
    p->ms = stride[2];
    p->mk = stride[3];
    p->masked = (int32_t)t.dims[t.rank - 1].value;
    p->masked = p->masked == 1 ? p->keys : p->masked;
}

static bool mask(Binder *b, const Node *n, const OpCtx *c, qk_sdpa_f32_params *p, int args[2]) {
    const Value *m = op_in(c, MASK);
    args[0] = args[1] = -1;
    if (!m)
        return true;
    Type t = m->type;
    sdpa_mask_strides(t, p);
    if (op_quant(m))
        return bind_unsupported(b, n, "its mask is quantized");
    if (t.elem != ELEM_BOOL && t.elem != ELEM_FLOAT)
        return added_numbers(b, n, m, &args[1]);
    args[t.elem == ELEM_FLOAT] = bind_value(b, m);
    return true;
}

static int32_t window(int64_t size) {
    return size < 0 ? -1 : size > INT32_MAX ? INT32_MAX : (int32_t)size;
}

static bool floats(Binder *b, const Node *n, const OpCtx *c) {
    static const size_t which[] = {Q, K, V, PAST_K, PAST_V};
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        const Value *v = op_in(c, which[i]);
        if (v && (v->type.elem != ELEM_FLOAT || op_quant(v)))
            return bind_unsupported(b, n, "operand %zu is %s; only float has a kernel", which[i],
                                    op_quant(v) ? "quantized" : elem_name(v->type.elem));
    }
    return true;
}

qk_sdpa_f32_params sdpa_params(const Node *n, const OpCtx *c) {
    const SdpaAttrs *a = c->attrs;
    Heads q = operand(c, Q), k = operand(c, K), v = operand(c, V);
    int64_t keys = total(c);
    Strides sq = strides_of(n->in[Q]->type, q), sk = strides_of(n->in[K]->type, k);
    Strides sv = strides_of(n->in[V]->type, v);
    Strides sy = strides_of(n->in[Q]->type, (Heads){q.batch, q.heads, q.steps, v.size});
    return (qk_sdpa_f32_params){.batch = (int32_t)q.batch,
                                .heads = (int32_t)q.heads,
                                .kv_heads = (int32_t)v.heads,
                                .sq = (int32_t)q.steps,
                                .keys = (int32_t)keys,
                                .size = (int32_t)q.size,
                                .v_size = (int32_t)v.size,
                                .qb = sq.batch,
                                .qh = sq.head,
                                .qs = sq.step,
                                .kb = sk.batch,
                                .kh = sk.head,
                                .ks = sk.step,
                                .vb = sv.batch,
                                .vh = sv.head,
                                .vs = sv.step,
                                .yb = sy.batch,
                                .yh = sy.head,
                                .ys = sy.step,
                                .offset = (int32_t)(keys - k.steps),
                                .left = window(a->left_window_size),
                                .right = a->is_causal ? 0 : window(a->right_window_size),
                                .mode = (int32_t)a->qk_matmul_output_mode,
                                .scale = a->scale != 0 ? a->scale : 1 / sqrtf((float)q.size),
                                .softcap = a->softcap};
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    Strides sk, sv;
    const Value *seen = n->n_out > SCORES ? n->out[SCORES] : NULL;
    int k, values, masks[2];
    if (bind_any_quant(n))
        return sdpa_bind_integers(b, n, c);
    if (!floats(b, n, c) || !cache(b, n, c, K, &k, &sk) || !cache(b, n, c, V, &values, &sv))
        return false;
    qk_sdpa_f32_params p = sdpa_params(n, c);
    p.kb = sk.batch;
    p.kh = sk.head;
    p.ks = sk.step;
    p.vb = sv.batch;
    p.vh = sv.head;
    p.vs = sv.step;
    if (!mask(b, n, c, &p, masks))
        return false;
    bind_macs(b, (int64_t)p.batch * p.heads * p.sq * p.keys * (p.size + p.v_size));
    if (!bind_call(b, n, "qk_sdpa_f32", &p, sizeof p, 9,
                   (int[]){bind_value(b, n->in[Q]), k, values, masks[0], masks[1],
                           bind_value(b, op_in(c, LENS)), bind_value(b, n->out[Y]),
                           bind_value(b, seen), bind_scratch(b, ELEM_FLOAT, (size_t)p.keys)}))
        return false;
    bind_within(b, op_in(c, LENS), false, (int32_t[]){p.keys + 1}, 1);
    return true;
}

/* A mask of rank 4 has the batch in front, others broadcast over it. */
static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)result;
    return axis == 0 && (i != MASK || op_type(c, MASK).rank == 4) ? 0 : -1;
}

#define ATTENTION                                                                                  \
    .domain = "", .name = "Attention", .attrs_size = sizeof(SdpaAttrs), .attrs = attrs,            \
    .verify = verify, .infer = infer, .slices = slices, .family = FAMILY_SEQUENCE, .bind = bind

#define INTEGERS(more)                                                                             \
    {.kind = QUANT_COMPUTE,                                                                        \
     .data = 1u << Q | 1u << K | 1u << V | 1u << PAST_K | 1u << PAST_V | (more),                   \
     .same_storage = true,                                                                         \
     .all_results = true,                                                                          \
     .prefers_float = GAINS_NOTHING,                                                               \
     .integer_refusal = sdpa_refusal}

static const OpDef computed_mask = {ATTENTION, .quant = INTEGERS(1u << MASK)};

static const OpDef *form(const Node *n);

const OpDef op_Attention = {ATTENTION, .form = form, .quant = INTEGERS(0)};

static const OpDef *form(const Node *n) {
    return node_computed_floats(n, MASK) ? &computed_mask : &op_Attention;
}
