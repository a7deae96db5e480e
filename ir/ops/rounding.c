/* See rounding.h. */
#include "ir/ops/rounding.h"

static const char *const suffix[] = {[ROUND_EXACT] = "",
                                     [ROUND_SINGLE] = "_single",
                                     [ROUND_DOUBLE] = "_double",
                                     [ROUND_SHIFT] = "_shift"};

static bool multiplier(SumRounding r, Multiplier m, int32_t *c, int32_t *k) {
    *c = 1;
    *k = 0;
    if (r == ROUND_SHIFT)
        return requant_power(m.real, k);
    if (r == ROUND_EXACT)
        requant_from_float(m.rounded, c, k);
    else
        requant_fixed(m.real, c, k);
    return true;
}

static void no_power(Binder *b, const Node *n, double m, size_t channel, size_t others) {
    Buf more = buf_new(binder_arena(b));
    buf_text(&more, "");
    if (others)
        buf_fmt(&more, " (channel %zu%s)", channel,
                arena_others(binder_arena(b), ", and ", others, ""));
    bind_error(
        b, n,
        "-requant=shift: the scales make %.9g%s, which is no power of two; where qxc quantizes, "
        "-pow2 makes one of it, and scales that a file brings need another -requant",
        m, buf_as_str(&more).s);
}

void bind_multiplier(Binder *b, const Node *n, SumRounding r, Multiplier m, int32_t *c,
                     int32_t *k) {
    if (!multiplier(r, m, c, k))
        no_power(b, n, m.real, 0, 0);
}

void bind_multipliers(Binder *b, const Node *n, SumRounding r, const Multiplier *m, size_t count,
                      int *mult, int *shift) {
    int32_t *c = NEW_ARRAY(binder_arena(b), int32_t, count);
    int32_t *k = NEW_ARRAY(binder_arena(b), int32_t, count);
    size_t wrong = 0, first = 0;
    for (size_t i = count; i-- > 0;)
        if (!multiplier(r, m[i], &c[i], &k[i])) {
            wrong++;
            first = i;
        }
    if (wrong)
        no_power(b, n, m[first].real, first, wrong - 1);
    *shift = bind_const(b, ELEM_INT32, count, k, "requantization: shifts");
    *mult = r == ROUND_SHIFT ? *shift
                             : bind_const(b, ELEM_INT32, count, c, "requantization: multipliers");
}

SumRounding bind_average_rounding(const Binder *b) {
    return bind_rounding(b) == ROUND_SHIFT ? ROUND_EXACT : bind_rounding(b);
}

bool bind_rounded(Binder *b, const Node *n, SumRounding r, const char *kernel, const void *params,
                  size_t params_size, int n_args, const int *args) {
    const char *name = arena_strf(binder_arena(b), "%s%s", kernel, suffix[r]).s;
    if (r != ROUND_EXACT && kernel_find(kernel) && !kernel_find(name))
        return bind_unsupported(b, n, "-requant=%s has kernels for 8 bits only", suffix[r] + 1);
    return bind_call(b, n, name, params, params_size, n_args, args);
}
