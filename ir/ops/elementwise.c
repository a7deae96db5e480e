/* Add, Sub, Mul, Div and Sum, with QLinearAdd and QLinearMul. From opset 7 (Sum: 8) operands
 * broadcast as in numpy; 13 and 14 added types. */
#include "ir/ops/bind.h"
#include "ir/ops/rounding.h"
#include "kernels/requant_host.h"

/* ---- scale[c] x + shift[c] ---- */

/* Reads a constant that broadcasts along `axis` alone of data of this type. */
static bool per_channel(Type data, const Value *v, int axis, size_t channels, double *out) {
    const Tensor *t = value_data(v);
    if (!t || !t->data || !elem_is_float(t->elem) || data.rank < 2 || t->rank > data.rank)
        return false;
    for (int i = 0; i < t->rank; i++) {
        int at = data.rank - t->rank + i;
        if (t->dims[i] != 1 && (at != axis || t->dims[i] != (int64_t)channels))
            return false;
    }
    for (size_t c = 0; c < channels; c++)
        out[c] = tensor_float(t, t->count == 1 ? 0 : c);
    return true;
}

/* Which operand is the constant: reads it into `k` and says which is the data. */
static bool split(const OpCtx *c, int axis, size_t channels, size_t *data, double *k) {
    if (c->n_in != 2)
        return false;
    for (size_t i = 0; i < 2; i++)
        if (per_channel(op_type(c, 1 - i), op_in(c, i), axis, channels, k)) {
            *data = 1 - i;
            return true;
        }
    return false;
}

/* sign -1 for Sub. */
static bool affine_sum(const OpCtx *c, int axis, size_t channels, size_t *data, double *scale,
                       double *shift, int sign) {
    if (!split(c, axis, channels, data, shift))
        return false;
    for (size_t i = 0; i < channels; i++) {
        scale[i] = *data == 0 ? 1 : sign;
        shift[i] *= *data == 0 ? sign : 1;
    }
    return true;
}

static bool affine_add(const OpCtx *c, int axis, size_t channels, size_t *data, double *scale,
                       double *shift) {
    return affine_sum(c, axis, channels, data, scale, shift, 1);
}

static bool affine_sub(const OpCtx *c, int axis, size_t channels, size_t *data, double *scale,
                       double *shift) {
    return affine_sum(c, axis, channels, data, scale, shift, -1);
}

static bool affine_mul(const OpCtx *c, int axis, size_t channels, size_t *data, double *scale,
                       double *shift) {
    for (size_t i = 0; i < channels; i++)
        shift[i] = 0;
    return split(c, axis, channels, data, scale);
}

static bool affine_div(const OpCtx *c, int axis, size_t channels, size_t *data, double *scale,
                       double *shift) {
    bool ok = affine_mul(c, axis, channels, data, scale, shift) && *data == 0;
    for (size_t i = 0; ok && i < channels; i++) {
        ok = scale[i] != 0;
        scale[i] = 1 / scale[i];
    }
    return ok;
}

/* ---- binding ---- */

/* Overwriting an operand is right only where it has the result's shape. */
static void mark_in_place(Binder *b, Type x, Type y, int arg) {
    if (type_same_shape(x, y))
        bind_in_place(b, arg);
}

static bool call_kernel(Binder *b, const Node *n, const char *op, ElemType e, Type ta, Type tb,
                        int x0, int x1, int y) {
    Broadcast s = bind_broadcast(ta, tb, n->out[0]->type);
    if (!bind_binary(b, n, op, e, s, (int[]){x0, x1, y}))
        return false;
    mark_in_place(b, ta, n->out[0]->type, 0);
    return true;
}

/* Operands and result have elements e. */
static bool bind_plain(Binder *b, const Node *n, const char *op, ElemType e) {
    int args[3];
    Broadcast s = bind_pair(b, n, args);
    if (!bind_binary(b, n, op, e, s, args))
        return false;
    mark_in_place(b, n->in[0]->type, n->out[0]->type, 0);
    return true;
}

/* Whether onnxruntime computes this node as a product of 8-bit integers, which has a rounding of
 * its own. */
static bool is_product_of_8_bits(Binder *b, const Node *n) {
    const Value *v[] = {n->in[0], n->in[1], n->out[0]};
    for (int i = 0; i < 3; i++)
        if (v[i]->type.elem != v[0]->type.elem || elem_bits(v[i]->type.elem) != 8)
            return false;
    return !bind_is_stand_in(b);
}

/* What the params of the integer kernels begin with. */
typedef struct Pair {
    Broadcast s;
    int32_t az, bz, yz, lo, hi;
} Pair;
_Static_assert(offsetof(qk_add_q_params, shift) == sizeof(Pair) &&
                   offsetof(qk_mul_q_params, c) == sizeof(Pair) &&
                   offsetof(qk_div_q_params, shift) == sizeof(Pair),
               "copied as they are");

/* False where they do not take it. */
static bool pair_of(Binder *b, const Node *n, Pair *p, float scale[3], int args[3]) {
    const Quant *q[] = {op_quant(n->in[0]), op_quant(n->in[1]), op_quant(n->out[0])};
    if (!bind_one_storage(n))
        return false;
    for (int i = 0; i < 3; i++)
        scale[i] = quant_scale(q[i], 0);
    *p = (Pair){.az = quant_zero(q[0]), .bz = quant_zero(q[1]), RESULT_PARAMS(q[2])};
    p->s = bind_pair(b, n, args);
    return true;
}

/* ---- accumulator + bias ---- */

static bool is_accumulator(const Value *v) {
    const Quant *q = op_quant(v);
    return q && q->kind == QUANT_PARAMS && q->storage == ELEM_INT32 && !q->has_range &&
           q->expressed == ELEM_FLOAT && q->scale_type == ELEM_FLOAT && quant_zp_all_zero(q) &&
           (q->n_axes == 0 || (q->n_axes == 1 && q->block[0] <= 1 && v->type.rank >= 0 &&
                               q->axis[0] == v->type.rank - 1));
}

bool op_adds_integers(const Node *n) {
    if (!n->def || !n->def->quant.adds || n->n_in != 2 || n->n_out != 1 || !n->out[0] ||
        !is_accumulator(n->out[0]))
        return false;
    const Quant *y = op_quant(n->out[0]);
    for (size_t i = 0; i < 2; i++) {
        const Quant *x = n->in[i] && is_accumulator(n->in[i]) ? op_quant(n->in[i]) : NULL;
        if (!x || x->n_axes != y->n_axes || x->n_scale != y->n_scale ||
            memcmp(x->scale, y->scale, y->n_scale * sizeof *y->scale) != 0)
            return false;
    }
    return true;
}

/* sign -1 for Sub: the second multiplier is negative. */
static bool bind_add_quant(Binder *b, const Node *n, int sign) {
    Pair pair;
    qk_add_q_params p = {0};
    ElemType e = bind_elem(n->out[0]);
    float s[3];
    int args[3];
    if (!pair_of(b, n, &pair, s, args))
        return bind_in_double(b, n);
    memcpy(&p, &pair, sizeof pair);
    requant_add(s[0], (float)sign * s[1], s[2], elem_bits(e), &p.ma, &p.mb, &p.shift);
    if (!bind_call(b, n, bind_kernel(b, "add_q", 1, &e), &p, sizeof p, 3, args))
        return false;
    mark_in_place(b, n->in[0]->type, n->out[0]->type, 0);
    mark_in_place(b, n->in[1]->type, n->out[0]->type, 1);
    return true;
}

static bool bind_mul_quant(Binder *b, const Node *n) {
    Pair pair;
    qk_mul_q_params p = {0};
    ElemType e = bind_elem(n->out[0]);
    float s[3];
    int args[3];
    if (!pair_of(b, n, &pair, s, args))
        return bind_in_double(b, n);
    memcpy(&p, &pair, sizeof pair);
    p.inside = is_product_of_8_bits(b, n) ? p.yz : 0;
    SumRounding r = bind_rounding(b);
    Multiplier m = {s[0] * s[1] / s[2], (double)s[0] * (double)s[1] / (double)s[2]};
    bind_multiplier(b, n, r, m, &p.c, &p.k);
    if (!bind_rounded(b, n, r, bind_kernel(b, "mul_q", 1, &e), &p, sizeof p, 3, args))
        return false;
    mark_in_place(b, n->in[0]->type, n->out[0]->type, 0);
    return true;
}

/* As kernels/pointwise/binary.qk does it. */
static int64_t combine(const char *op, int64_t a, int64_t b) {
    uint64_t p = (uint64_t)a, q = (uint64_t)b;
    switch (op[0]) {
    case 'a': return (int64_t)(p + q);
    case 's': return (int64_t)(p - q);
    case 'm': return (int64_t)(p * q);
    default: return b == 0 ? 0 : b == -1 ? (int64_t)(0 - p) : a / b;
    }
}

/* Arithmetic on constant integers, as models do it on shapes: the result is a constant. */
static bool fold_integers(Binder *b, const Node *n, const char *op, bool *done) {
    const Tensor *x = value_data(n->in[0]), *y = value_data(n->in[1]);
    ElemType e = n->out[0]->type.elem;
    *done = false;
    if (!x || !y || !x->data || !y->data || (e != ELEM_INT64 && e != ELEM_INT32) ||
        bind_any_quant(n))
        return true;
    Broadcast s = bind_broadcast(n->in[0]->type, n->in[1]->type, n->out[0]->type);
    size_t count = (size_t)bind_count(n->out[0]);
    uint8_t *data = arena_alloc(binder_arena(b), elem_bytes(e, count));
    for (size_t i = 0; i < count; i++) {
        size_t rest = i, xi = 0, yi = 0;
        for (int k = s.rank - 1; k >= 0; k--) {
            size_t at = rest % (size_t)s.dim[k];
            rest /= (size_t)s.dim[k];
            xi += at * (size_t)s.as[k];
            yi += at * (size_t)s.bs[k];
        }
        elem_store_int(e, data, i, combine(op, tensor_int(x, xi), tensor_int(y, yi)));
    }
    int buffer = bind_const(b, e, count, data, NULL);
    bind_is(b, buffer, n->out[0]);
    *done = true;
    return true;
}

static bool bind_float_or_shape(Binder *b, const Node *n, const char *op) {
    bool done;
    if (!fold_integers(b, n, op, &done) || done)
        return done;
    if (elem_is_int(n->out[0]->type.elem)) /* no quantized numbers, as ONNX's types allow */
        return bind_plain(b, n, op, bind_elem(n->out[0]));
    return bind_floats_only(b, n) && bind_plain(b, n, op, ELEM_FLOAT);
}

static bool bind_add(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    if (op_adds_integers(n))
        return bind_plain(b, n, "saturating", ELEM_INT32);
    return bind_any_quant(n) ? bind_add_quant(b, n, 1) : bind_float_or_shape(b, n, "add");
}

static bool bind_sub(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind_any_quant(n) ? bind_add_quant(b, n, -1) : bind_float_or_shape(b, n, "sub");
}

static bool bind_mul(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind_any_quant(n) ? bind_mul_quant(b, n) : bind_float_or_shape(b, n, "mul");
}

static bool bind_div_quant(Binder *b, const Node *n) {
    Pair pair;
    qk_div_q_params p = {0};
    ElemType e = bind_elem(n->out[0]);
    float s[3];
    int args[3];
    if (!pair_of(b, n, &pair, s, args))
        return bind_in_double(b, n);
    memcpy(&p, &pair, sizeof pair);
    p.nan = (int32_t)elem_min(op_quant(n->out[0])->storage);
    requant_quotient(s[0], s[1], s[2], elem_bits(e), &p.m, &p.shift);
    if (!bind_call(b, n, bind_kernel(b, "div_q", 1, &e), &p, sizeof p, 3, args))
        return false;
    mark_in_place(b, n->in[0]->type, n->out[0]->type, 0);
    mark_in_place(b, n->in[1]->type, n->out[0]->type, 1);
    return true;
}

static bool bind_div(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind_any_quant(n) ? bind_div_quant(b, n) : bind_float_or_shape(b, n, "div");
}

#define BINARY .domain = "", .infer = op_broadcast
#define QUANT_DIFFERENCE                                                                           \
    {.kind = QUANT_COMPUTE, .data = 3, .scaled.homogeneous = true, .same_storage = true}

const OpDef op_Add = {
    BINARY,
    .name = "Add",
    .commutes = true,
    .quant = {.kind = QUANT_COMPUTE,
              .data = 3,
              .scaled.homogeneous = true,
              .same_storage = true,
              .adds = true},
    .qop = {.domain = "com.microsoft", .op = "QLinearAdd", .operands = "0* 1* y", .since = 10},
    .affine = affine_add,
    .bind = bind_add,
};

const OpDef op_Sub = {BINARY, .name = "Sub", .quant = QUANT_DIFFERENCE, .affine = affine_sub,
                      .bind = bind_sub};

const OpDef op_Mul = {
    BINARY,
    .name = "Mul",
    .commutes = true,
    .quant = {.kind = QUANT_COMPUTE, .data = 3, .same_storage = true, .scaled.multiplies = true},
    .qop = {.domain = "com.microsoft", .op = "QLinearMul", .operands = "0* 1* y", .since = 10},
    .affine = affine_mul,
    .bind = bind_mul,
};

const OpDef op_Div = {
    BINARY,
    .name = "Div",
    .quant = {.kind = QUANT_COMPUTE,
              .data = 3,
              .same_storage = true,
              .prefers_float = SPANS_TOO_MUCH,
              .singular = 2},
    .affine = affine_div,
    .bind = bind_div,
};

/* ---- Sum ---- */

static bool two_operands(const OpCtx *c, const char **why) {
    *why = "it has other than two operands";
    return c->n_in == 2;
}

/* y = ((x0 + x1) + x2) + ... */
static bool bind_sum_float(Binder *b, const Node *n) {
    const Value *out = n->out[0];
    Type so_far = n->in[0]->type;
    int sum = bind_value(b, n->in[0]);
    size_t count = (size_t)bind_count(out);
    for (size_t i = 1; i < n->n_in; i++) {
        int to = i + 1 == n->n_in ? bind_value(b, out) : bind_temp(b, ELEM_FLOAT, count);
        if (!call_kernel(b, n, "add", ELEM_FLOAT, so_far, n->in[i]->type, sum,
                         bind_value(b, n->in[i]), to))
            return false;
        sum = to;
        so_far = out->type;
    }
    return true;
}

static bool bind_sum(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    if (n->n_in == 1 && bind_equal_quant(n->in[0], n->out[0]))
        return bind_alias(b, n, n->out[0], n->in[0]);
    if (!bind_any_quant(n))
        return bind_floats_only(b, n) &&
               (n->n_in == 2 ? bind_plain(b, n, "add", ELEM_FLOAT) : bind_sum_float(b, n));
    return n->n_in == 2 ? bind_add_quant(b, n, 1) : bind_sum_integers(b, n, 1);
}

const OpDef op_Sum = {
    BINARY,
    .name = "Sum",
    .quant = {.kind = QUANT_COMPUTE,
              .data = 1u << 31,
              .scaled.homogeneous = true,
              .same_storage = true},
    .qop = {.domain = "com.microsoft",
            .op = "QLinearAdd",
            .operands = "0* 1* y",
            .since = 10,
            .applies = two_operands},
    .affine = affine_add,
    .passes_on = op_is_alone,
    .bind = bind_sum,
};
