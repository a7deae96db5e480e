/* Functions of one number without attributes: Abs, Exp, Erf, HardSwish and their like. Only types
 * changed between opsets (13, 22). On 8-bit integers all of them are tables; those that serve
 * arithmetic more than they are layers stay float unless integers are asked for. */
#include "ir/ops/bind.h"

#include <math.h>

static double softplus(double x) {
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double clamp01(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static bool bind(Binder *b, const Node *n, const char *op, UnaryFn *f) {
    qk_unary_params p = {.n = bind_count(n->in[0])};
    ElemType e = bind_elem(n->in[0]);
    Str name = arena_strf(binder_arena(b), "unary_%s", op);
    if (elem_is_int(e) && !bind_any_quant(n))
        return bind_call(b, n, bind_kernel(b, name.s, 1, &e), &p, sizeof p, 2,
                         (int[]){bind_value(b, n->in[0]), bind_value(b, n->out[0])});
    name = arena_strf(binder_arena(b), "qk_unary_%s_f32", op);
    return bind_unary(b, n, name.s, &p, sizeof p, f, NULL);
}

/* `value` is the function of x in double; the kernel is its float form. `at_zero`: PLAIN, KEEPS (0
 * of 0), BREAKS (infinite); with COMPOSITE where lib/ spells it out. */
enum { PLAIN, KEEPS, BREAKS, COMPOSITE = 4 };

#define UNARY(op, kernel, value, float_wanted, at_zero)                                            \
    static float kernel##_of(float number, const void *ctx) {                                      \
        double x = (double)number;                                                                 \
        (void)ctx;                                                                                 \
        return (float)(value);                                                                     \
    }                                                                                              \
    static bool kernel##_bind(Binder *b, const Node *n, const OpCtx *c) {                          \
        (void)c;                                                                                   \
        return bind(b, n, #kernel, kernel##_of);                                                   \
    }                                                                                              \
    const OpDef op_##op = {                                                                        \
        .domain = "",                                                                              \
        .name = #op,                                                                               \
        .infer = op_same_type,                                                                     \
        .slices = op_slices_each,                                                                  \
        .quant = {.kind = QUANT_COMPUTE,                                                           \
                  .data = 1,                                                                       \
                  .curve = true,                                                                   \
                  .prefers_float = (float_wanted) ? SPANS_TOO_MUCH : NULL,                         \
                  .keeps_zero = ((at_zero) & 3) == KEEPS,                                          \
                  .singular = ((at_zero) & 3) == BREAKS ? 1 : 0},                                  \
        .composite = ((at_zero) & COMPOSITE) != 0,                                                 \
        .bind = kernel##_bind,                                                                     \
    };

UNARY(Abs, abs, fabs(x), true, KEEPS)
UNARY(Acos, acos, acos(x), true, PLAIN)
UNARY(Acosh, acosh, acosh(x), true, PLAIN)
UNARY(Asin, asin, asin(x), true, KEEPS)
UNARY(Asinh, asinh, asinh(x), true, KEEPS)
UNARY(Atan, atan, atan(x), true, KEEPS)
UNARY(Atanh, atanh, atanh(x), true, KEEPS)
UNARY(Ceil, ceil, ceil(x), true, KEEPS)
UNARY(Cos, cos, cos(x), true, PLAIN)
UNARY(Cosh, cosh, cosh(x), true, PLAIN)
UNARY(Erf, erf, erf(x), true, KEEPS)
UNARY(Exp, exp, exp(x), true, PLAIN)
UNARY(Floor, floor, floor(x), true, KEEPS)
UNARY(HardSwish, hardswish, x *clamp01(x / 6 + 0.5), false, KEEPS | COMPOSITE)
UNARY(Log, log, log(x), true, BREAKS)
UNARY(Mish, mish, x *tanh(softplus(x)), false, KEEPS | COMPOSITE)
UNARY(Neg, neg, -x, true, KEEPS)
UNARY(Reciprocal, reciprocal, 1 / x, true, BREAKS)
UNARY(Round, rint, rint(x), true, KEEPS)
UNARY(Sign, sign, x > 0 ? 1 : x < 0 ? -1 : x, true, KEEPS)
UNARY(Sin, sin, sin(x), true, KEEPS)
UNARY(Sinh, sinh, sinh(x), true, KEEPS)
UNARY(Softplus, softplus, softplus(x), true, PLAIN)
UNARY(Softsign, softsign, x / (1 + fabs(x)), false, KEEPS)
UNARY(Sqrt, sqrt, sqrt(x), true, KEEPS)
UNARY(Tan, tan, tan(x), true, KEEPS)
