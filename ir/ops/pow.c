/* Pow. From opset 7 operands broadcast; 12: the exponent may have another type, and the operand may
 * be an integer. With one constant exponent it is a table on 8-bit integers. */
#include "ir/ops/bind.h"
#include "kernels/requant_host.h"

#include <math.h>

enum { X, EXPONENT };

static const Tensor *single_exponent(const OpCtx *c) {
    const Tensor *t = op_const(c, EXPONENT);
    return t && t->data && t->count == 1 && t->rank <= 1 ? t : NULL;
}

/* Of a row whose exponent is a constant. */
static const char *integer_refusal(const OpCtx *c, const Quant *x) {
    (void)x;
    return single_exponent(c) ? NULL : "its exponent is not one constant";
}

static float power(float x, const void *ctx) {
    return (float)pow((double)x, *(const double *)ctx);
}

/* Constants of any type as the float that the operand is; -1: it is no constant of another type. */
static int constant_exponent(Binder *b, const OpCtx *c) {
    const Tensor *t = op_const(c, EXPONENT);
    if (!t || !t->data || op_type(c, EXPONENT).elem == bind_real(b))
        return -1;
    double *data = NEW_ARRAY(binder_arena(b), double, t->count);
    for (size_t i = 0; i < t->count; i++)
        data[i] = tensor_float(t, i);
    return bind_reals(b, t->count, data, "exponent");
}

/* Of two types, or of integers: by way of doubles. */
static bool bind_mixed(Binder *b, const Node *n, Broadcast s) {
    ElemType x = bind_elem(n->in[X]), types[] = {bind_elem(n->in[EXPONENT]), ELEM_DOUBLE};
    int32_t count = bind_count(n->in[EXPONENT]);
    int e = bind_value(b, n->in[EXPONENT]);
    if (types[0] != ELEM_DOUBLE) {
        int from = e;
        qk_cast_params cast = {.n = count};
        e = bind_temp(b, ELEM_DOUBLE, (size_t)count);
        if (!bind_call(b, n, bind_kernel(b, "cast", 2, types), &cast, sizeof cast, 2,
                       (int[]){from, e}))
            return false;
    }
    qk_power_params p;
    memcpy(&p, &s, sizeof s);
    return bind_call(b, n, bind_kernel(b, "power", 1, &x), &p, sizeof p, 3,
                     (int[]){bind_value(b, n->in[X]), e, bind_value(b, n->out[0])});
}

BEGINS_WITH_BROADCAST(qk_power_params);
BEGINS_WITH_BROADCAST(qk_pow_q_params);

enum { LOG_BITS = 28 }; /* behind the point of a logarithm */

/* A base and an exponent that are computed. */
static bool bind_integers(Binder *b, const Node *n) {
    const Quant *x = op_quant(n->in[X]), *e = op_quant(n->in[EXPONENT]), *y = op_quant(n->out[0]);
    ElemType t = bind_elem(n->out[0]);
    int args[3];
    if (!bind_one_storage(n))
        return bind_in_double(b, n);
    Broadcast s = bind_pair(b, n, args);
    qk_pow_q_params p = {.az = quant_zero(x),
                         .bz = quant_zero(e),
                         RESULT_PARAMS(y),
                         .nan = (int32_t)elem_min(y->storage),
                         .sx = llrint(ldexp(log2((double)quant_scale(x, 0)), LOG_BITS)),
                         .sy = llrint(ldexp(log2((double)quant_scale(y, 0)), LOG_BITS))};
    requant_from_float(quant_scale(e, 0), &p.c, &p.k);
    memcpy(&p, &s, sizeof s);
    return bind_call(b, n, bind_kernel(b, "pow_q", 1, &t), &p, sizeof p, 3, args);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const Tensor *t = single_exponent(c);
    double e = t ? tensor_float(t, 0) : 0;
    if (op_quant(n->in[X]) && op_quant(n->in[EXPONENT]))
        return bind_integers(b, n);
    if (op_quant(n->in[X]))
        return t ? bind_table(b, n, power, &e) : bind_in_double(b, n);
    if (op_quant(n->out[0]) || op_quant(n->in[EXPONENT]))
        return bind_unsupported(b, n, "its exponent or result is quantized");
    Broadcast s = bind_broadcast(n->in[X]->type, n->in[EXPONENT]->type, n->out[0]->type);
    bool real = n->in[X]->type.elem == bind_real(b);
    int exponent = real ? constant_exponent(b, c) : -1;
    if (exponent < 0 && !(real && n->in[EXPONENT]->type.elem == bind_real(b)))
        return bind_mixed(b, n, s);
    return bind_binary(b, n, "pow", ELEM_FLOAT, s,
                       (int[]){bind_value(b, n->in[X]),
                               exponent < 0 ? bind_value(b, n->in[EXPONENT]) : exponent,
                               bind_value(b, n->out[0])});
}

#define POW .domain = "", .name = "Pow", .infer = op_broadcast, .bind = bind

static const OpDef computed = {
    POW,
    .quant = {.kind = QUANT_COMPUTE,
              .data = 1u << X | 1u << EXPONENT,
              .same_storage = true,
              .prefers_float = SPANS_TOO_MUCH},
};

static const OpDef *form(const Node *n);

const OpDef op_Pow = {
    POW,
    .form = form,
    .quant = {.kind = QUANT_COMPUTE,
              .data = 1u << X,
              .curve = true,
              .prefers_float = SPANS_TOO_MUCH,
              .integer_refusal = integer_refusal},
};

static const OpDef *form(const Node *n) {
    return node_computed_floats(n, EXPONENT) ? &computed : &op_Pow;
}
