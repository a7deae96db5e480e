/* Resize where results are sums over several elements along each axis. Coefficients: Keys, "Cubic
 * convolution interpolation for digital image processing" (1981), with cubic_coeff_a; antialias
 * stretches them by 1 / scale where an axis becomes shorter, as ONNX's reference does. */
#include "ir/ops/resize.h"
#include "kernels/requant_host.h"

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

/* One axis of all: the passes go over those that do not stay, first to last. */
typedef struct Pass {
    Taps t;
    int32_t outer, inner;
    int32_t *at;
    double *w;
    double most; /* of the sums of absolute weights */
    size_t count;
} Pass;

static void fill_tables(Binder *b, Pass *p) {
    p->count = (size_t)p->t.e.out * (size_t)p->t.count;
    p->at = NEW_ARRAY(binder_arena(b), int32_t, p->count + 1);
    p->w = NEW_ARRAY(binder_arena(b), double, p->count + 1);
    for (int64_t i = 0; i < p->t.e.out; i++) {
        double sum = 0, *w = p->w + i * p->t.count;
        fill(&p->t, i, p->at + i * p->t.count, w);
        for (int k = 0; k < p->t.count && p->at[i * p->t.count] >= 0; k++)
            sum += fabs(w[k]);
        p->most = fmax(p->most, sum);
    }
}

/* How many there are; -1 after saying why they cannot run. */
static int passes_of(Binder *b, const Node *n, const ResizeAttrs *a, const Extent *e,
                     Pass passes[MAX_RANK]) {
    Type x = n->in[0]->type;
    int64_t dims[MAX_RANK];
    int count = 0;
    for (int i = 0; i < x.rank; i++)
        dims[i] = e[i].in;
    for (int i = 0; i < x.rank; i++) {
        if (resize_keeps(e[i]))
            continue;
        Taps t = taps_of(a, e[i]);
        int64_t outer = 1, inner = 1;
        dims[i] = e[i].out;
        for (int k = 0; k < x.rank; k++)
            *(k < i ? &outer : &inner) = dim_mul(k < i ? outer : inner, k == i ? 1 : dims[k]);
        if (dim_mul(dim_mul(outer, inner), e[i].out) > INT32_MAX || t.count == TOO_MANY ||
            dim_mul(e[i].out, t.count) > INT32_MAX)
            return bind_unsupported(b, n, "it has more than 2^31 elements between two axes") - 1;
        passes[count] = (Pass){.t = t, .outer = (int32_t)outer, .inner = (int32_t)inner};
        fill_tables(b, &passes[count++]);
    }
    return count;
}

static int bind_between(Binder *b, const Node *n, ElemType e, const Pass *p, bool last) {
    return last ? bind_value(b, n->out[0])
                : bind_temp(b, e, (size_t)p->outer * (size_t)p->t.e.out * (size_t)p->inner);
}

static bool bind_floats(Binder *b, const Node *n, const Pass *passes, int count) {
    int from = bind_value(b, n->in[0]);
    for (int i = 0; i < count; i++) {
        const Pass *s = &passes[i];
        int to = bind_between(b, n, bind_real(b), s, i + 1 == count);
        qk_resize_taps_f32_params p = {s->outer, (int32_t)s->t.e.in, (int32_t)s->t.e.out,
                                       s->inner, s->t.count,         s->t.a->extrapolation_value};
        int args[] = {from, bind_const(b, ELEM_INT32, s->count, s->at, "elements"),
                      bind_reals(b, s->count, s->w, "coefficients"), to};
        if (!bind_call(b, n, "qk_resize_taps_f32", &p, sizeof p, 4, args))
            return false;
        from = to;
    }
    return true;
}

/* ---- on integers ---- */

enum { WIDTH = 30, LEAST = 8 }; /* bits of weights and of numbers between; those behind the point */

static int bits_of(double most) { /* that hold it */
    int e;
    return frexp(most, &e) == 0.5 ? e - 1 : e;
}

/* The coefficients with `bits` behind the point. Those of a place that make 1 do so exactly: what
 * is the same all over stays so. */
static int32_t *rounded(Binder *b, const Pass *p, int bits) {
    int32_t *w = NEW_ARRAY(binder_arena(b), int32_t, p->count + 1);
    int taps = p->t.count;
    memset(w, 0, (p->count + 1) * sizeof *w);
    for (size_t i = 0; i < p->count; i += (size_t)taps) {
        double real = 0;
        int64_t sum = 0;
        size_t largest = i;
        for (size_t k = i; p->at[i] >= 0 && k < i + (size_t)taps; k++) {
            w[k] = (int32_t)lrint(ldexp(p->w[k], bits));
            real += p->w[k];
            sum += w[k];
            largest = fabs(p->w[k]) > fabs(p->w[largest]) ? k : largest;
        }
        if (fabs(real - 1) < 0x1p-40)
            w[largest] += (int32_t)(((int64_t)1 << bits) - sum);
    }
    return w;
}

/* Numbers between two axes have 30 bits, as many of them behind the point as the largest leaves. */
static bool bind_integers(Binder *b, const Node *n, Pass *passes, int count) {
    const Quant *x = op_quant(n->in[0]), *y = op_quant(n->out[0]);
    ElemType from_type = bind_elem(n->in[0]);
    double outside = (double)passes[0].t.a->extrapolation_value / (double)quant_scale(x, 0);
    double most = fmax((double)(elem_max(x->storage) - elem_min(x->storage)), fabs(outside));
    qk_resize_taps_q_params last = {.xz = quant_zero(x), RESULT_PARAMS(y)};
    int32_t e = 0, point = 0;
    int from = bind_value(b, n->in[0]);
    requant_scaled(quant_scale(x, 0), quant_scale(y, 0), &last.n, &last.d, &e);
    last.outside = (int32_t)quant_of_real(y, 0, passes[0].t.a->extrapolation_value);
    for (int i = 0; i < count; i++) {
        const Pass *s = &passes[i];
        bool end = i + 1 == count;
        ElemType types[] = {from_type, end ? bind_elem(n->out[0]) : ELEM_INT32};
        int bits = WIDTH - bits_of(fmax(1, s->most)),
            next = WIDTH - bits_of(most *= fmax(1, s->most));
        int shift = point + bits - (end ? e : next);
        if (bits < LEAST || (!end && next < LEAST) || shift < 1)
            return bind_in_double_as(b, n, "its numbers are too far apart for 32 bits");
        qk_resize_taps_q_params p = last;
        p.outer = s->outer;
        p.in = (int32_t)s->t.e.in;
        p.out = (int32_t)s->t.e.out;
        p.inner = s->inner;
        p.taps = s->t.count;
        p.s = shift > 63 ? 63 : shift;
        if (!end)
            p.outside = (int32_t)lrint(ldexp(outside, next));
        p.xz = i == 0 ? p.xz : 0;
        int to = bind_between(b, n, ELEM_INT32, s, end);
        int args[] = {from, bind_const(b, ELEM_INT32, s->count, s->at, "elements"),
                      bind_const(b, ELEM_INT32, s->count, rounded(b, s, bits), "coefficients"), to};
        if (!bind_call(b, n, bind_kernel(b, "resize_taps_q", 2, types), &p, sizeof p, 4, args))
            return false;
        from = to;
        from_type = ELEM_INT32;
        point = next;
    }
    return true;
}

bool resize_taps_bind(Binder *b, const Node *n, const ResizeAttrs *a, const Extent *e) {
    Pass passes[MAX_RANK];
    bool ints = bind_any_quant(n);
    bool crops = str_is(a->coordinates, "tf_crop_and_resize"); /* to one number everywhere */
    if (ints && !(resize_integers_fit(n) && (!crops || quant_plain(op_quant(n->in[0])))))
        return bind_in_double(b, n);
    if (!ints && bind_elem(n->in[0]) != bind_real(b))
        return bind_unsupported(b, n, "mode '%s' on %s", diag_name(binder_diags(b), a->mode),
                                elem_name(bind_elem(n->in[0])));
    int count = passes_of(b, n, a, e, passes);
    if (count <= 0)
        return count == 0 && resize_nothing(b, n);
    return ints ? bind_integers(b, n, passes, count) : bind_floats(b, n, passes, count);
}
