/* PRelu: x, or slope * x where x is negative. From opset 9 the slope broadcasts to x in one
 * direction as in numpy. On 8-bit integers it is a table, like LeakyRelu, or one for each slope; of
 * 16 bits several slopes are products. */
#include "ir/ops/bind.h"
#include "ir/ops/overlay.h"
#include "kernels/requant_host.h"

enum { X, SLOPE, MOST_SLOPES = 4096 };

static bool verify(const OpCtx *c) {
    Type x = op_type(c, X), s = op_type(c, SLOPE);
    if (x.rank < 0 || s.rank < 0 || c->opset < 9)
        return true;
    if (s.rank > x.rank)
        return op_error_in(c, SLOPE, "the slope has rank %d, the input %d", s.rank, x.rank);
    for (int i = 0; i < s.rank; i++) {
        int64_t have = s.dims[i].value, dim = x.dims[i + x.rank - s.rank].value;
        if (have >= 0 && have != 1 && dim >= 0 && dim != have)
            return op_error_in(c, SLOPE, "slope %s does not broadcast to %s",
                               type_text(c->arena, s), type_text(c->arena, x));
    }
    return true;
}

static const Tensor *known_slope(const OpCtx *c) {
    const Tensor *t = op_const(c, SLOPE);
    return t && t->data && elem_is_float(t->elem) ? t : NULL;
}

/* The axes of x, first to last, along which slopes differ: no other lies between them. */
static bool slope_axes(Type x, const Tensor *slope, int *first, int *last) {
    int before = x.rank - slope->rank;
    *first = *last = -1;
    for (int i = before < 0 ? 0 : before; i < x.rank; i++)
        if (slope->dims[i - before] != 1) {
            *first = *first < 0 ? i : *first;
            *last = i;
        }
    for (int i = *first; i >= 0 && i < *last; i++)
        if (slope->dims[i - before] == 1 && x.dims[i].value != 1)
            return false;
    return *first >= 0;
}

static const char *integer_refusal(const OpCtx *c, const Quant *x) {
    int first, last;
    (void)x;
    const Tensor *slope = known_slope(c);
    if (!slope)
        return "its slope is not a float constant";
    if (slope->count == 1 ||
        (slope->count <= MOST_SLOPES && slope_axes(op_type(c, X), slope, &first, &last)))
        return NULL;
    return "it has too many slopes, or along axes with others between them";
}

static bool upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)names;
    const Value *s = node_input(n, SLOPE);
    Type x = n->in[X]->type;
    bool channels = s && s->type.rank == 1 && x.rank > 2 && s->type.dims[0].value != 1;
    if (from < 9 && to >= 9 && channels) /* opset 7 let one number a channel broadcast */
        return diag_error(d, n->loc,
                          "PRelu of opset %lld with one slope a channel of shape [C] "
                          "must be written [C,1,1]",
                          (long long)from);
    return true;
}

/* One table for x from its zero point on, where the slope does not matter, and one below it for
 * each. */
static int slope_tables(Binder *b, const Node *n, const Tensor *slope) {
    const Quant *in = op_quant(n->in[X]), *out = op_quant(n->out[0]);
    ElemType e = bind_elem(n->in[X]), to = bind_elem(n->out[0]);
    int32_t lowest = (int32_t)elem_min(e), below = quant_zero(in) - lowest;
    size_t count = 256 + slope->count * (size_t)below;
    uint8_t *table = arena_alloc(binder_arena(b), elem_bytes(to, count));
    for (size_t i = 0; i < count; i++) {
        size_t k = i < 256 || below == 0 ? 0 : (i - 256) / (size_t)below;
        int32_t x = lowest + (int32_t)(i < 256 ? i : (i - 256) % (size_t)below);
        float v = (float)(x - quant_zero(in)) * quant_scale(in, 0);
        v = v < 0 ? (float)tensor_float(slope, k) * v : v;
        elem_store_int(to, table, i, quant_of_real(out, 0, v));
    }
    return bind_const(b, to, count, table, "tables");
}

/* The numbers that prelu_q multiplies by. */
static int rises(Binder *b, const Node *n, const Tensor *slope, int32_t *shift) {
    const Quant *in = op_quant(n->in[X]), *out = op_quant(n->out[0]);
    double ratio = (double)quant_scale(in, 0) / (double)quant_scale(out, 0);
    double *each = NEW_ARRAY(binder_arena(b), double, slope->count + 1);
    int64_t *rise = NEW_ARRAY(binder_arena(b), int64_t, slope->count + 1);
    each[0] = ratio;
    for (size_t i = 0; i < slope->count; i++)
        each[1 + i] = ratio * tensor_float(slope, i);
    requant_ratios(each, slope->count + 1, 17, rise, shift);
    return bind_const(b, ELEM_INT64, slope->count + 1, rise, "slopes");
}

/* What both kernels for several slopes have in their params. */
typedef struct Slopes {
    int32_t outer, channels, inner;
    int args[3];
} Slopes;

static Slopes slopes_of(Binder *b, const Node *n, int first, int last) {
    const Value *x = n->in[X], *y = n->out[0];
    Slopes s = {.outer = bind_extent(x->type, 0, first),
                .channels = bind_extent(x->type, first, last + 1),
                .inner = bind_extent(x->type, last + 1, x->type.rank)};
    bool channels_last = first == 1 && last == 1 && bind_is_last(b, x);
    if (channels_last) {
        s.outer *= s.inner;
        s.inner = 1;
    }
    s.args[0] = channels_last ? bind_last(b, n, x) : bind_value(b, x);
    s.args[2] = channels_last ? bind_last(b, n, y) : bind_value(b, y);
    return s;
}

static bool bind_rises(Binder *b, const Node *n, const Tensor *slope, Slopes *s,
                       const ElemType *types) {
    const Quant *out = op_quant(n->out[0]);
    qk_prelu_q_params p = {.outer = s->outer,
                           .channels = s->channels,
                           .inner = s->inner,
                           .xz = quant_zero(op_quant(n->in[X])),
                           .yz = quant_zero(out)};
    quant_range(out, &p.lo, &p.hi);
    s->args[1] = rises(b, n, slope, &p.shift);
    return bind_call(b, n, bind_kernel(b, "prelu_q", 2, types), &p, sizeof p, 3, s->args);
}

static bool bind_tables(Binder *b, const Node *n, const Tensor *slope, Slopes *s,
                        const ElemType *types) {
    qk_lut8_each_params p = {.outer = s->outer,
                             .channels = s->channels,
                             .inner = s->inner,
                             .xz = quant_zero(op_quant(n->in[X]))};
    s->args[1] = slope_tables(b, n, slope);
    return bind_call(b, n, bind_kernel(b, "lut8_each", 2, types), &p, sizeof p, 3, s->args);
}

static bool bind_slopes(Binder *b, const Node *n, const Tensor *slope) {
    const Value *x = n->in[X], *y = n->out[0];
    ElemType types[] = {bind_elem(x), bind_elem(y)};
    int first, last;
    if (!quant_plain(op_quant(x)) || !op_quant(y) || !quant_plain(op_quant(y)) ||
        elem_bits(types[0]) > 16 || elem_bits(types[1]) > 16 || slope->count > MOST_SLOPES ||
        !slope_axes(x->type, slope, &first, &last))
        return bind_in_double(b, n);
    Slopes s = slopes_of(b, n, first, last);
    if (!(elem_bits(types[0]) == 8 ? bind_tables : bind_rises)(b, n, slope, &s, types))
        return false;
    bind_over_each(b, 0, bind_count(x), types[0], types[1]);
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const Tensor *slope = known_slope(c);
    if (op_quant(n->in[X])) {
        if (!slope)
            return bind_in_double(b, n);
        if (slope->count != 1)
            return bind_slopes(b, n, slope);
        qk_leakyrelu_f32_params p = {.alpha = (float)tensor_float(slope, 0)};
        return bind_unary(b, n, "qk_leakyrelu_f32", &p, sizeof p);
    }
    int args[3];
    bool plain = elem_is_int(n->in[X]->type.elem);
    if (!plain && !bind_floats_only(b, n))
        return false;
    Broadcast s = bind_pair(b, n, args);
    return bind_binary(b, n, "prelu", plain ? bind_elem(n->in[X]) : ELEM_FLOAT, s, args);
}

const OpDef op_PRelu = {
    .domain = "",
    .name = "PRelu",
    .verify = verify,
    .infer = op_same_type,
    .slices = op_slices_each,
    .quant = {.kind = QUANT_COMPUTE,
              .data = 1u << X,
              .scaled.homogeneous = true,
              .integer_refusal = integer_refusal},
    .upgrade = upgrade,
    .bind = bind,
};
