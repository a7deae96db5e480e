/* Functions of one number without attributes: Abs, Exp, Erf, Sigmoid and their like, with
 * QLinearSigmoid. Only types changed between opsets (13, 22). On 8-bit integers all of them are
 * tables; those that serve arithmetic more than they are layers stay float unless integers are
 * asked for. */
#include "ir/ops/bind.h"

static bool bind(Binder *b, const Node *n, const char *op) {
    qk_unary_params p = {.n = bind_count(n->in[0])};
    ElemType e = bind_elem(n->in[0]);
    Str name = arena_strf(binder_arena(b), "unary_%s", op);
    if (elem_is_int(e) && !bind_any_quant(n))
        return bind_first(b, n, bind_kernel(b, name.s, 1, &e), &p, sizeof p);
    name = arena_strf(binder_arena(b), "qk_unary_%s_f32", op);
    return bind_unary(b, n, name.s, &p, sizeof p);
}

/* `kernel` is its name in kernels/pointwise/unary.qk. `at_zero`: PLAIN, KEEPS (0 of 0), BREAKS
 * (infinite); with COMPOSITE where lib/ spells it out. */
enum { PLAIN, KEEPS, BREAKS, COMPOSITE = 4 };

#define WITHIN_ONE .quant.least = -1, .quant.most = 1

#define UNARY(op, kernel, float_wanted, at_zero, ...)                                              \
    static bool kernel##_bind(Binder *b, const Node *n, const OpCtx *c) {                          \
        (void)c;                                                                                   \
        return bind(b, n, #kernel);                                                                \
    }                                                                                              \
    const OpDef op_##op = {.domain = "",                                                           \
                           .name = #op,                                                            \
                           .infer = op_same_type,                                                  \
                           .slices = op_slices_each,                                               \
                           .quant = {.kind = QUANT_COMPUTE,                                        \
                                     .data = 1,                                                    \
                                     .curve = true,                                                \
                                     .prefers_float = (float_wanted) ? SPANS_TOO_MUCH : NULL,      \
                                     .keeps_zero = ((at_zero) & 3) == KEEPS,                       \
                                     .singular = ((at_zero) & 3) == BREAKS ? 1 : 0},               \
                           .composite = ((at_zero) & COMPOSITE) != 0,                              \
                           .bind = kernel##_bind,                                                  \
                           __VA_ARGS__};

UNARY(Abs, abs, true, KEEPS)
UNARY(Acos, acos, true, PLAIN)
UNARY(Acosh, acosh, true, PLAIN)
UNARY(Asin, asin, true, KEEPS)
UNARY(Asinh, asinh, true, KEEPS)
UNARY(Atan, atan, true, KEEPS)
UNARY(Atanh, atanh, true, KEEPS)
UNARY(Ceil, ceil, true, KEEPS)
UNARY(Cos, cos, true, PLAIN, WITHIN_ONE)
UNARY(Cosh, cosh, true, PLAIN)
UNARY(Erf, erf, true, KEEPS, WITHIN_ONE)
UNARY(Exp, exp, true, PLAIN)
UNARY(Floor, floor, true, KEEPS)
UNARY(HardSwish, hardswish, false, KEEPS | COMPOSITE)
UNARY(Log, log, true, BREAKS)
UNARY(Mish, mish, false, KEEPS | COMPOSITE)
UNARY(Neg, neg, true, KEEPS)
UNARY(Reciprocal, reciprocal, true, BREAKS)
UNARY(Round, rint, true, KEEPS)
UNARY(Sigmoid, sigmoid, false, PLAIN, .quant.most = 1,
      .qop = {.domain = "com.microsoft", .op = "QLinearSigmoid", .operands = "0* y", .since = 10})
UNARY(Sign, sign, true, KEEPS)
UNARY(Sin, sin, true, KEEPS, WITHIN_ONE)
UNARY(Sinh, sinh, true, KEEPS)
UNARY(Softplus, softplus, true, PLAIN)
UNARY(Softsign, softsign, false, KEEPS, WITHIN_ONE)
UNARY(Sqrt, sqrt, true, KEEPS)
UNARY(Tan, tan, true, KEEPS)
UNARY(Tanh, tanh, false, PLAIN, WITHIN_ONE)
