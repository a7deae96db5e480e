/* Relu and Clip: exact on integers where result and operand share their quantization. Relu: 13, 14
 * added types. Clip: until 10 min and max are attributes, from 11 operands; 12 and 13 added types.
 */
#include "program/binder.h"
#include "ir/minifloat.h"
#include "ir/ops/bind.h"

#include <float.h>
#include <math.h>

enum { X, MIN, MAX };

/* Real bounds; -inf and inf where there are none. */
typedef struct Bounds {
    float lo, hi;
} Bounds;

/* Result and operand both quantized: in the integers of the result. Quantizing keeps order, so that
 * clamping before or after it is the same. */
static bool bind_quant(Binder *b, const Node *n, Bounds r) {
    const Value *x = n->in[X], *y = n->out[0];
    const Quant *q = op_quant(y);
    if (!q)
        return bind_unary(b, n, "qk_clamp_f32", &(qk_clamp_f32_params){.lo = r.lo, .hi = r.hi},
                          sizeof(qk_clamp_f32_params));
    if (!quant_plain(op_quant(x)) || !quant_plain(q))
        return bind_in_double(b, n);
    int32_t least, most;
    quant_range(q, &least, &most);
    int32_t lo = (int32_t)quant_of_real(q, 0, r.lo), hi = (int32_t)quant_of_real(q, 0, r.hi);
    int from, to;
    if (!quant_equal(op_quant(x), q)) {
        bind_each(b, n, x, y, &from, &to);
        return bind_requantize(b, n, x, from, q, to, lo, hi);
    }
    if (lo <= least && hi >= most)
        return bind_alias(b, n, y, x);
    ElemType e = bind_elem(x);
    qk_clamp_params p = {.n = bind_count(x), .lo = lo, .hi = hi};
    bind_each(b, n, x, y, &from, &to);
    if (!bind_call(b, n, bind_kernel(b, "clamp", 1, &e), &p, sizeof p, 2, (int[]){from, to}))
        return false;
    bind_in_place(b, 0);
    return true;
}

static bool bind_float(Binder *b, const Node *n, Bounds r) {
    qk_clamp_f32_params p = {.n = bind_count(n->in[X]), .lo = r.lo, .hi = r.hi};
    int from, to;
    if (bind_clamped(b, n, n->out[0], n->in[X], r.lo, r.hi))
        return true;
    bind_each(b, n, n->in[X], n->out[0], &from, &to);
    if (!bind_call(b, n, "qk_clamp_f32", &p, sizeof p, 2, (int[]){from, to}))
        return false;
    bind_in_place(b, 0);
    return true;
}

static int32_t to_int(double v) {
    return v <= INT32_MIN ? INT32_MIN : v >= INT32_MAX ? INT32_MAX : (int32_t)v;
}

/* Plain integers, as ONNX's types allow. */
static bool bind_plain_int(Binder *b, const Node *n, double lo, double hi) {
    ElemType e = n->in[X]->type.elem;
    qk_clamp_params p = {.n = bind_count(n->in[X]), .lo = to_int(lo), .hi = to_int(hi)};
    return bind_first(b, n, bind_kernel(b, "clamp", 1, &e), &p, sizeof p);
}

static bool bind_bounds(Binder *b, const Node *n, double lo, double hi) {
    if (lo > hi)
        lo = hi; /* Clip: max wins */
    Bounds r = {(float)lo, (float)hi};
    if (op_quant(n->in[X]))
        return bind_quant(b, n, r);
    if (op_quant(n->out[0]))
        return bind_in_double(b, n);
    if (n->in[X]->type.elem != bind_real(b))
        return bind_plain_int(b, n, lo, hi);
    return bind_float(b, n, r);
}

static bool relu_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind_bounds(b, n, 0, (double)INFINITY);
}

static bool relu_clamp(const OpCtx *c, float *lo, float *hi) {
    (void)c;
    *lo = 0;
    *hi = INFINITY;
    return true;
}

const OpDef op_Relu = {
    .domain = "",
    .name = "Relu",
    .infer = op_same_type,
    .slices = op_slices_each,
    .quant = {.kind = QUANT_CLAMP,
              .data = 1u << X,
              .scaled.homogeneous = true,
              .clamp = relu_clamp,
              .cuts_at_zero = true},
    .bind = relu_bind,
};

/* ---- Clip ---- */

typedef struct ClipAttrs {
    float min, max; /* opset 6 */
} ClipAttrs;

static const AttrSpec clip_attrs[] = {
    A_FLOAT(ClipAttrs, min, -FLT_MAX),
    A_FLOAT(ClipAttrs, max, FLT_MAX),
    A_END,
};

static bool clip_verify(const OpCtx *c) {
    for (size_t i = MIN; i <= MAX; i++) {
        Type t = op_type(c, i);
        if (t.rank > 1 || (t.rank == 1 && t.dims[0].value >= 0 && t.dims[0].value != 1))
            return op_error_in(c, i, "%s must be a scalar", i == MIN ? "min" : "max");
    }
    return true;
}

static bool clip_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)d;
    if (from >= 11 || to < 11)
        return true;
    upgrade_float_attr(n, "min", MIN, names);
    upgrade_float_attr(n, "max", MAX, names);
    return true;
}

/* False where it is computed; `beyond` is where nothing lies that NaN would cut off. */
static bool read_bound(const OpCtx *c, size_t i, double beyond, double *out) {
    const Tensor *t = op_const(c, i);
    if (!op_in(c, i))
        return true;
    if (!t || !t->data || t->count != 1)
        return false;
    double bound = tensor_float(t, 0);
    *out = isnan(bound) ? beyond : bound;
    return true;
}

/* The bounds that attributes state, before opset 11; infinite where they state none. */
static void attr_bounds(const OpCtx *c, float *lo, float *hi) {
    const ClipAttrs *a = c->attrs;
    *lo = a->min > -FLT_MAX ? a->min : -INFINITY;
    *hi = a->max < FLT_MAX ? a->max : INFINITY;
}

/* The largest number of the type that the node has, which may be bound on floats in its place. */
static double largest_number(const Binder *b, const Node *n) {
    ElemType e = bind_original(b, n)->in[X]->type.elem;
    FloatGrid small;
    if (e == ELEM_DOUBLE)
        return DBL_MAX;
    return (double)(elem_is_half(e) && float_grid(e, &small) ? small.most : FLT_MAX);
}

/* The buffer of bound i, which computed numbers are held against: -1 where it cuts nothing off. */
static int bound_buffer(Binder *b, const Node *n, const OpCtx *c, size_t i) {
    double bound = 0, most = largest_number(b, n);
    if (op_in(c, i))
        return read_bound(c, i, NAN, &bound) && isnan(bound) ? -1 : bind_value(b, n->in[i]);
    double own = i == MIN ? -most : most;
    switch (bind_elem(n->out[0])) {
    case ELEM_DOUBLE: return bind_const(b, ELEM_DOUBLE, 1, &own, "bound");
    case ELEM_FLOAT: return bind_const(b, ELEM_FLOAT, 1, &(float){(float)own}, "bound");
    default: return -1;
    }
}

/* y = min(max(x, MIN), MAX) by the kernels of Max and Min: bounds that are computed, or which a
 * float does not hold. */
static bool bind_by_operands(Binder *b, const Node *n, const OpCtx *c) {
    static const char *const names[] = {[MIN] = "max", [MAX] = "min"};
    const Value *y = n->out[0];
    ElemType e = bind_elem(y);
    int32_t count = bind_count(y);
    int x = bind_value(b, n->in[X]);
    const int bounds[] = {[MIN] = bound_buffer(b, n, c, MIN), [MAX] = bound_buffer(b, n, c, MAX)};
    for (size_t i = MIN; i <= MAX; i++) {
        if (bounds[i] < 0)
            continue;
        Broadcast s = {.rank = 1, .dim = {count}, .as = {1}};
        if (!bind_binary(b, n, names[i], e, s, (int[]){x, bounds[i], bind_value(b, y)}))
            return false;
        bind_in_place(b, 0);
        x = bind_value(b, y);
    }
    return x != bind_value(b, n->in[X]) || bind_alias(b, n, y, n->in[X]);
}

/* Where no bound is stated the type's own is, so that an infinity becomes the largest number. */
static bool clip_bind(Binder *b, const Node *n, const OpCtx *c) {
    const ClipAttrs *a = c->attrs;
    double most = largest_number(b, n), infinite = (double)INFINITY;
    double lo = fmax((double)a->min, -most), hi = fmin((double)a->max, most);
    bool known = read_bound(c, MIN, -infinite, &lo) && read_bound(c, MAX, infinite, &hi);
    if (bind_any_quant(n))
        return known ? bind_bounds(b, n, lo, hi) : bind_in_double(b, n);
    return known && n->in[X]->type.elem == ELEM_FLOAT ? bind_bounds(b, n, lo, hi)
                                                      : bind_by_operands(b, n, c);
}

/* One bound: an operand from opset 11 on, an attribute before. */
static bool constant_bound(const OpCtx *c, size_t i, float *v) {
    if (!op_in(c, i))
        return true;
    const Tensor *t = op_const(c, i);
    if (!t || t->count != 1 || !elem_is_float(t->elem))
        return false;
    *v = (float)tensor_float(t, 0);
    return true;
}

static bool clip_clamp(const OpCtx *c, float *lo, float *hi) {
    attr_bounds(c, lo, hi);
    return constant_bound(c, MIN, lo) && constant_bound(c, MAX, hi) && *lo <= *hi;
}

const OpDef op_Clip = {
    .domain = "",
    .name = "Clip",
    .attrs_size = sizeof(ClipAttrs),
    .attrs = clip_attrs,
    .verify = clip_verify,
    .infer = op_same_type,
    .slices = op_slices_each,
    .quant = {.kind = QUANT_CLAMP, .data = 1u << X, .clamp = clip_clamp},
    .upgrade = clip_upgrade,
    .bind = clip_bind,
};
