/* Resize between two neighbours along each axis, of floats and of integers. */
#include "ir/ops/resize.h"
#include "kernels/requant_host.h"

#include <math.h>

/* One axis: of each result the lower neighbour, then of each the upper one, whose weight counts
 * `right` of 2^bits. */
typedef struct Axis {
    int64_t n;
    int32_t *at;
    float *weight;
    int bits;
} Axis;

/* How many bits behind the point a weight below 1 has. */
static int fraction_bits(float w) {
    int e;
    float m = frexpf(w, &e);
    int bits = 0;
    for (; m != floorf(m); m *= 2)
        bits++;
    return bits > e ? bits - e : 0;
}

static Axis axis_of(Binder *b, Str how, Extent e, int most) {
    Axis a = {e.out, NEW_ARRAY(binder_arena(b), int32_t, 2 * (size_t)e.out),
              NEW_ARRAY(binder_arena(b), float, (size_t)e.out), 0};
    for (int64_t i = 0; i < e.out; i++) {
        float place = e.scale == 1 ? (float)i : resize_origin(how, e, i);
        place = fmaxf(0, fminf(place, (float)(e.in - 1)));
        int64_t low = (int64_t)place;
        a.at[i] = (int32_t)low;
        a.at[e.out + i] = (int32_t)(low + 1 < e.in ? low + 1 : e.in - 1);
        a.weight[i] = place - (float)low;
        int bits = fraction_bits(a.weight[i]);
        a.bits = bits < a.bits ? a.bits : bits < most ? bits : most;
    }
    return a;
}

static void bind_axis(Binder *b, const Axis *a, bool ints, int args[2]) {
    int32_t *q = NEW_ARRAY(binder_arena(b), int32_t, (size_t)a->n);
    double *real = NEW_ARRAY(binder_arena(b), double, (size_t)a->n);
    for (int64_t i = 0; i < a->n; i++) {
        real[i] = (double)a->weight[i];
        q[i] = (int32_t)lrint(ldexp(real[i], a->bits));
    }
    args[0] = bind_const(b, ELEM_INT32, 2 * (size_t)a->n, a->at, "neighbours");
    args[1] = ints ? bind_const(b, ELEM_INT32, (size_t)a->n, q, "weights")
                   : bind_reals(b, (size_t)a->n, real, "weights");
}

/* What the integer kernel rounds to. The weights get more bits where their product with the ratio
 * of the scales would have none behind the point. */
static void scale_integers(const Node *n, qk_resize_linear_q_params *p, Axis *rows, Axis *columns) {
    const Quant *x = op_quant(n->in[0]), *y = op_quant(n->out[0]);
    int32_t e = 0;
    p->n = p->d = 1;
    p->xz = quant_zero(x);
    p->yz = quant_zero(y);
    if (!bind_equal_quant(n->in[0], n->out[0]))
        requant_scaled(quant_scale(x, 0), quant_scale(y, 0), &p->n, &p->d, &e);
    quant_range(y, &p->lo, &p->hi);
    if (rows->bits + columns->bits <= e) /* which is at most 24 */
        columns->bits = e + 1 - rows->bits;
    p->rf = rows->bits;
    p->cf = columns->bits;
    p->s = p->rf + p->cf - e > 63 ? 63 : p->rf + p->cf - e;
}

/* The kernels have one zero point, from which ties are even. */
bool resize_integers_fit(const Node *n) {
    const Quant *x = op_quant(n->in[0]), *y = op_quant(n->out[0]);
    if (!x || !y || elem_bits(x->storage) > 16 || elem_bits(y->storage) > 16)
        return false;
    if (quant_plain(x) && quant_plain(y))
        return !quant_is_wide(x) && !quant_is_wide(y);
    return bind_equal_quant(n->in[0], n->out[0]) && quant_zp_all_zero(x);
}

static bool bind_planes(Binder *b, const Node *n, Str how, const Extent *e, int first, int last) {
    Type x = n->in[0]->type;
    bool ints = op_quant(n->in[0]) != NULL;
    ElemType types[] = {bind_elem(n->in[0]), bind_elem(n->out[0])};
    if (!ints && types[0] != bind_real(b))
        return bind_unsupported(b, n, "mode 'linear' on %s", elem_name(types[0]));
    if (ints && !resize_integers_fit(n))
        return bind_in_double(b, n);
    int most = elem_bits(types[0]) == 8 ? 24 : 22, args[6] = {bind_value(b, n->in[0])};
    Axis rows = axis_of(b, how, first < last ? e[first] : (Extent){1, 1, 1, 0, 1}, most);
    Axis columns = axis_of(b, how, e[last], most);
    qk_resize_linear_q_params q = {
        bind_extent(x, 0, first), (int32_t)(first < last ? e[first].in : 1),
        (int32_t)e[last].in,      bind_extent(x, last + 1, x.rank),
        (int32_t)rows.n,          (int32_t)columns.n};
    qk_resize_linear_f32_params p;
    memcpy(&p, &q, sizeof p); /* its shape comes first */
    if (ints)
        scale_integers(n, &q, &rows, &columns);
    bind_axis(b, &rows, ints, &args[1]);
    bind_axis(b, &columns, ints, &args[3]);
    args[5] = bind_value(b, n->out[0]);
    return ints
               ? bind_call(b, n, bind_kernel(b, "resize_linear_q", 2, types), &q, sizeof q, 6, args)
               : bind_call(b, n, "qk_resize_linear_f32", &p, sizeof p, 6, args);
}

bool resize_nothing(Binder *b, const Node *n) {
    const Value *x = n->in[0], *y = n->out[0];
    int32_t lo, hi;
    if (bind_equal_quant(x, y))
        return bind_alias(b, n, y, x);
    if (!quant_plain(op_quant(x)) || !quant_plain(op_quant(y)) || !resize_integers_fit(n))
        return bind_in_double(b, n);
    quant_range(op_quant(y), &lo, &hi);
    int from = bind_value(b, x), to = bind_value(b, y);
    return bind_requantize(b, n, x, from, op_quant(y), to, lo, hi);
}

bool resize_linear_bind(Binder *b, const Node *n, const ResizeAttrs *a, const Extent *e) {
    int first = -1, last = -1, count = 0;
    for (int i = 0; i < n->in[0]->type.rank; i++)
        if (!resize_keeps(e[i])) {
            first = first < 0 ? i : first;
            last = i;
            count++;
        }
    if (count == 0)
        return resize_nothing(b, n);
    if (count > 2 || last - first + 1 != count)
        return resize_taps_bind(b, n, a, e);
    return bind_planes(b, n, a->coordinates, e, first, last);
}
