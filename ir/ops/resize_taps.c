/* Resize where results are sums over several elements along each axis. Coefficients: Keys, "Cubic
 * convolution interpolation for digital image processing" (1981), with cubic_coeff_a; antialias
 * stretches them by 1 / scale where an axis becomes shorter, as ONNX's reference does. */
#include "ir/ops/resize.h"

#include <math.h>

typedef struct Taps {
    const ResizeAttrs *a;
    Extent e;
    bool cubic;
    double squeeze; /* below 1: coefficients are stretched */
    int count;
} Taps;

enum { TOO_MANY = 1 << 30 };

static double cubic_at(double a, double x) {
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double coefficient(const Taps *t, double distance) {
    double x = distance * t->squeeze;
    return t->cubic ? cubic_at((double)t->a->cubic_coeff_a, x) : fmax(0, 1 - fabs(x));
}

static Taps taps_of(const ResizeAttrs *a, Extent e) {
    Taps t = {.a = a, .e = e, .cubic = str_is(a->mode, "cubic"), .squeeze = 1, .count = 1};
    if (str_is(a->mode, "nearest") || e.out == 0)
        return t;
    if (a->antialias && e.scale < 1)
        t.squeeze = (double)e.scale;
    double reach = ceil((t.cubic ? 2 : 1) / t.squeeze);
    t.count = reach < TOO_MANY / 2 ? 2 * (int)reach : TOO_MANY;
    return t;
}

/* What result i is made of: beyond the edges the element there, or with exclude_outside nothing. */
static void fill(const Taps *t, int64_t i, int32_t *at, double *w) {
    const ResizeAttrs *a = t->a;
    float place = resize_origin(a->coordinates, t->e, i);
    bool crops = str_is(a->coordinates, "tf_crop_and_resize");
    if (crops && (place < 0 || place > (float)(t->e.in - 1))) {
        at[0] = -1;
        return;
    }
    if (t->count == 1) {
        int64_t from = resize_nearest(a->nearest, place);
        at[0] = (int32_t)(from < 0 ? 0 : from >= t->e.in ? t->e.in - 1 : from);
        w[0] = 1;
        return;
    }
    if (!t->cubic && !a->antialias)
        place = fmaxf(0, fminf(place, (float)(t->e.in - 1)));
    int64_t low = (int64_t)ceilf(place) - t->count / 2;
    double sum = 0;
    for (int k = 0; k < t->count; k++) {
        int64_t from = low + k;
        bool inside = from >= 0 && from < t->e.in;
        at[k] = (int32_t)(from < 0 ? 0 : from >= t->e.in ? t->e.in - 1 : from);
        w[k] = inside || !a->exclude_outside ? coefficient(t, (double)from - (double)place) : 0;
        sum += w[k];
    }
    for (int k = 0; k < t->count && sum != 0; k++)
        w[k] /= sum;
}

static bool bind_pass(Binder *b, const Node *n, const Taps *t, int32_t outer, int32_t inner, int x,
                      int y) {
    size_t count = (size_t)t->e.out * (size_t)t->count;
    int32_t *at = NEW_ARRAY(binder_arena(b), int32_t, count);
    double *w = NEW_ARRAY(binder_arena(b), double, count);
    for (int64_t i = 0; i < t->e.out; i++)
        fill(t, i, at + i * t->count, w + i * t->count);
    qk_resize_taps_f32_params p = {outer, (int32_t)t->e.in, (int32_t)t->e.out,
                                   inner, t->count,         t->a->extrapolation_value};
    int args[] = {x, bind_const(b, ELEM_INT32, count, at, "elements"),
                  bind_reals(b, count, w, "coefficients"), y};
    return bind_call(b, n, "qk_resize_taps_f32", &p, sizeof p, 4, args);
}

bool resize_taps_bind(Binder *b, const Node *n, const ResizeAttrs *a, const Extent *e) {
    Type x = n->in[0]->type;
    int64_t dims[MAX_RANK], all;
    int last = -1, from;
    if (bind_any_quant(n))
        return bind_in_double_as(b, n, "no integer kernel resizes like that");
    if (bind_elem(n->in[0]) != bind_real(b))
        return bind_unsupported(b, n, "mode '%s' on %s", diag_name(binder_diags(b), a->mode),
                                elem_name(bind_elem(n->in[0])));
    for (int i = 0; i < x.rank; i++) {
        dims[i] = e[i].in;
        last = resize_keeps(e[i]) ? last : i;
    }
    if (last < 0)
        return bind_alias(b, n, n->out[0], n->in[0]);
    from = bind_value(b, n->in[0]);
    for (int i = 0; i <= last; i++) {
        if (resize_keeps(e[i]))
            continue;
        Taps t = taps_of(a, e[i]);
        int64_t outer = 1, inner = 1;
        dims[i] = e[i].out;
        for (int k = 0; k < x.rank; k++)
            *(k < i ? &outer : &inner) = dim_mul(k < i ? outer : inner, k == i ? 1 : dims[k]);
        all = dim_mul(dim_mul(outer, inner), e[i].out);
        if (all > INT32_MAX || t.count == TOO_MANY || dim_mul(e[i].out, t.count) > INT32_MAX)
            return bind_unsupported(b, n, "it has more than 2^31 elements between two axes");
        int to = i == last ? bind_value(b, n->out[0]) : bind_temp(b, bind_real(b), (size_t)all);
        if (!bind_pass(b, n, &t, (int32_t)outer, (int32_t)inner, from, to))
            return false;
        from = to;
    }
    return true;
}
