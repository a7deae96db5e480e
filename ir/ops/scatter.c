/* ScatterElements, Scatter (its name until opset 10) and ScatterND: a copy of the data with
 * elements or slices at computed places changed. Opset 16 added reductions add and mul, opset 18
 * max and min. */
#include "ir/ops/bind.h"
#include "kernels/requant_host.h"

enum { DATA, INDICES, UPDATES };

typedef struct ScatterAttrs {
    int64_t axis; /* ScatterElements */
    Str reduction;
} ScatterAttrs;

static const AttrSpec elements_attrs[] = {
    A_INT(ScatterAttrs, axis, 0),
    A_WORD(ScatterAttrs, reduction, "none", "none add mul max min"),
    A_END,
};

static const AttrSpec nd_attrs[] = {
    A_WORD(ScatterAttrs, reduction, "none", "none add mul max min"),
    A_END,
};

/* Its number for the kernels, -1 where there is none. Of truths a sum is the larger one and a
 * product the smaller one: what they hold stays 0 or 1. */
static int32_t reduction(const OpCtx *c) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const ScatterAttrs *a = c->attrs;
    bool truths = op_type(c, DATA).elem == ELEM_BOOL;
    for (int32_t i = 0; i < 5; i++)
        if (str_is(a->reduction, names[i]))
            return truths && (i == 1 || i == 2) ? i + 2 : i;
    return -1;
}

enum { SUM = 1, PRODUCT = 2 };

/* Sums and products of integers are not the integers of sums and products. */
static bool computes(const Node *n) {
    const ScatterAttrs *a = n->typed;
    return str_is(a->reduction, "add") || str_is(a->reduction, "mul");
}

/* Whether all are integers on one grid, or can be brought to that of the result: elements leave the
 * places that parameters along an axis belong to. */
static bool fits_kernel(const Node *n, const OpCtx *c) {
    const Quant *x = op_quant(n->in[DATA]), *u = op_quant(n->in[UPDATES]), *y = op_quant(n->out[0]);
    if (!x && !u && !y)
        return true;
    bool narrow = quant_plain(x) && quant_plain(u) && quant_plain(y);
    bool sums = reduction(c) == SUM || reduction(c) == PRODUCT;
    return narrow && (!sums || elem_bits(bind_elem(n->out[0])) <= 16);
}

/* An operand in steps of the result and 2^-shift. */
static int bind_term(Binder *b, const Node *n, const Value *x, int64_t m) {
    ElemType e = bind_elem(x);
    qk_addend_q_params p = {
        .rank = 1, .dim = {bind_count(x)}, .xs = {1}, .xz = quant_zero(op_quant(x)), .m = m};
    int sum = bind_temp(b, ELEM_INT64, (size_t)bind_count(x));
    bind_call(b, n, bind_kernel(b, "addend_q", 1, &e), &p, sizeof p, 2,
              (int[]){bind_value(b, x), sum});
    return sum;
}

/* What ScatterElements and ScatterND call. */
typedef struct Scatter {
    const char *kernel;
    const void *params;
    size_t size;
    const int32_t *lengths;
    int n_lengths;
    int32_t meet; /* indices that an element may have */
} Scatter;

static bool call_kernel(Binder *b, const Node *n, const Scatter *s, ElemType e, const char *form,
                        int updates, int y) {
    ElemType types[] = {e, bind_elem(n->in[INDICES])};
    const char *kernel =
        arena_strf(binder_arena(b), "%s%s", bind_kernel(b, s->kernel, 2, types), form).s;
    if (!bind_call(b, n, kernel, s->params, s->size, 3,
                   (int[]){updates, bind_value(b, n->in[INDICES]), y}))
        return false;
    bind_within(b, n->in[INDICES], true, s->lengths, s->n_lengths);
    return true;
}

/* Sums of the data and the updates, rounded once as those of Sum are. */
static bool bind_computed(Binder *b, const Node *n, const Scatter *s) {
    const Value *x = n->in[DATA], *u = n->in[UPDATES], *y = n->out[0];
    ElemType e = bind_elem(y);
    float scale[] = {quant_scale(op_quant(x), 0), quant_scale(op_quant(u), 0)};
    int64_t m[2];
    qk_round_sum_q_params p = {.n = bind_count(y), RESULT_PARAMS(op_quant(y))};
    requant_terms(scale, 2, (size_t)s->meet + 1, (double)quant_scale(op_quant(y), 0), 16, m,
                  &p.shift);
    int sum = bind_term(b, n, x, m[0]), updates = bind_term(b, n, u, m[1]);
    return call_kernel(b, n, s, ELEM_INT64, "", updates, sum) &&
           bind_call(b, n, bind_kernel(b, "round_sum_q", 1, &e), &p, sizeof p, 2,
                     (int[]){sum, bind_value(b, y)});
}

/* An operand times `scale`, as factors. */
static int bind_factors(Binder *b, const Node *n, const Value *x, double scale) {
    ElemType e = bind_elem(x);
    int32_t shift;
    qk_factor_q_params p = {.n = bind_count(x), .xz = quant_zero(op_quant(x))};
    requant_real(scale, &p.m, &shift);
    p.e = -shift;
    int to = bind_temp(b, ELEM_INT64, (size_t)p.n);
    bind_call(b, n, bind_kernel(b, "factor_q", 1, &e), &p, sizeof p, 2,
              (int[]){bind_value(b, x), to});
    return to;
}

/* How many updates an element is multiplied by only the indices tell: each brings its scale. */
static bool bind_products(Binder *b, const Node *n, const Scatter *s) {
    const Value *x = n->in[DATA], *u = n->in[UPDATES], *y = n->out[0];
    ElemType e = bind_elem(y);
    double to = (double)quant_scale(op_quant(y), 0);
    qk_round_factor_q_params p = {.n = bind_count(y), RESULT_PARAMS(op_quant(y))};
    int product = bind_factors(b, n, x, (double)quant_scale(op_quant(x), 0) / to);
    int updates = bind_factors(b, n, u, (double)quant_scale(op_quant(u), 0));
    return call_kernel(b, n, s, ELEM_INT64, "_times", updates, product) &&
           bind_call(b, n, bind_kernel(b, "round_factor_q", 1, &e), &p, sizeof p, 2,
                     (int[]){product, bind_value(b, y)});
}

/* The data first: what nothing changes stays. */
static bool bind_placed(Binder *b, const Node *n, const Scatter *s) {
    bool ok = true;
    int x = bind_joined(b, n, n->in[DATA], &ok), u = bind_joined(b, n, n->in[UPDATES], &ok);
    int y = bind_value(b, n->out[0]);
    bind_copy(b, n, x, y);
    return ok && call_kernel(b, n, s, bind_elem(n->out[0]), "", u, y);
}

static bool bind_scatter(Binder *b, const Node *n, const Scatter *s, int32_t reduction) {
    if (!bind_any_quant(n) || (reduction != SUM && reduction != PRODUCT))
        return bind_placed(b, n, s);
    return reduction == SUM ? bind_computed(b, n, s) : bind_products(b, n, s);
}

#define JOINS                                                                                      \
    {.kind = QUANT_JOIN, .data = 1u << DATA | 1u << UPDATES, .prefers_float = GAINS_NOTHING}
#define COMPUTES                                                                                   \
    {.kind = QUANT_COMPUTE, .data = 1u << DATA | 1u << UPDATES, .prefers_float = GAINS_NOTHING}

/* ---- ScatterElements ---- */

static bool elements_verify(const OpCtx *c) {
    const ScatterAttrs *a = c->attrs;
    Type i = op_type(c, INDICES), u = op_type(c, UPDATES);
    if (i.rank >= 0 && u.rank >= 0 &&
        !(i.rank == u.rank && (!type_is_static(i) || !type_is_static(u) || type_same_shape(i, u))))
        return op_error_in(c, UPDATES, "updates are %s, indices %s", type_text(c->arena, u),
                           type_text(c->arena, i));
    return op_elements_fit(c, DATA, INDICES, a->axis);
}

static bool elements_bind(Binder *b, const Node *n, const OpCtx *c) {
    const ScatterAttrs *a = c->attrs;
    Type x = n->in[DATA]->type, i = n->in[INDICES]->type;
    int axis;
    if (!fits_kernel(n, c))
        return bind_in_double(b, n);
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    if (!type_same_shape(i, n->in[UPDATES]->type))
        return bind_unsupported(b, n, "updates and indices differ in shape");
    qk_scatter_elements_params p = {.rank = x.rank,
                                    .length = (int32_t)x.dims[axis].value,
                                    .step = bind_extent(x, axis + 1, x.rank),
                                    .reduction = reduction(c)};
    if (!op_indices_fit(c, INDICES, &p.length, 1))
        return false;
    for (int k = 0; k < x.rank; k++) {
        p.dim[k] = (int32_t)i.dims[k].value;
        p.ys[k] = k == axis ? 0 : bind_extent(x, k + 1, x.rank);
    }
    Scatter s = {"scatter_elements", &p, sizeof p, &p.length, 1, (int32_t)i.dims[axis].value};
    return bind_scatter(b, n, &s, p.reduction);
}

/* Where all three have it whole. */
static int elements_slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const ScatterAttrs *a = c->attrs;
    Type x = op_type(c, DATA), at = op_type(c, INDICES);
    int along;
    (void)i;
    (void)result;
    return op_axis(c, a->axis, x.rank, &along) && axis != along && axis < at.rank &&
                   dim_equal(x.dims[axis], at.dims[axis])
               ? axis
               : -1;
}

#define ELEMENTS                                                                                   \
    .domain = "", .attrs_size = sizeof(ScatterAttrs), .attrs = elements_attrs,                     \
    .verify = elements_verify, .infer = op_same_type, .slices = elements_slices,                   \
    .picks = 1u << INDICES, .bind = elements_bind

static const OpDef *elements_form(const Node *n);

const OpDef op_ScatterElements = {ELEMENTS, .name = "ScatterElements", .form = elements_form,
                                  .quant = JOINS};
static const OpDef elements_computed = {ELEMENTS, .name = "ScatterElements", .quant = COMPUTES};

static const OpDef *elements_form(const Node *n) {
    return computes(n) ? &elements_computed : &op_ScatterElements;
}

static bool take_new_name(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)names;
    (void)d;
    if (from < 11 && to >= 11)
        n->op = STR("ScatterElements");
    return true;
}

const OpDef op_Scatter = {ELEMENTS, .name = "Scatter", .quant = JOINS, .upgrade = take_new_name};

/* ---- ScatterND ---- */

static bool nd_verify(const OpCtx *c) {
    Type x = op_type(c, DATA), i = op_type(c, INDICES), u = op_type(c, UPDATES);
    if (i.rank == 0)
        return op_error_in(c, INDICES, "the indices are a scalar");
    int64_t k = i.rank > 0 ? i.dims[i.rank - 1].value : -1;
    if (x.rank < 0 || k < 0)
        return true;
    if (k > x.rank)
        return op_error_in(c, INDICES, "an index has %lld numbers, the data %d dimensions",
                           (long long)k, x.rank);
    if (u.rank >= 0 && u.rank != i.rank - 1 + x.rank - k)
        return op_error_in(c, UPDATES, "updates have rank %d, must have %lld", u.rank,
                           (long long)(i.rank - 1 + x.rank - k));
    return true;
}

static bool nd_bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[DATA]->type, i = n->in[INDICES]->type;
    if (!fits_kernel(n, c))
        return bind_in_double(b, n);
    qk_scatter_nd_params p = {.n = bind_extent(i, 0, i.rank - 1),
                              .k = (int32_t)i.dims[i.rank - 1].value,
                              .reduction = reduction(c)};
    p.inner = bind_extent(x, p.k, x.rank);
    for (int k = 0; k < p.k; k++)
        p.dim[k] = (int32_t)x.dims[k].value;
    if (!op_indices_fit(c, INDICES, p.dim, (size_t)p.k))
        return false;
    if ((int64_t)p.n * p.inner != bind_count(n->in[UPDATES]))
        return bind_unsupported(b, n, "updates are %s, not %d slices of %d elements",
                                type_text(binder_arena(b), n->in[UPDATES]->type), p.n, p.inner);
    Scatter s = {"scatter_nd", &p, sizeof p, p.dim, p.k, p.n};
    return bind_scatter(b, n, &s, p.reduction);
}

#define ND                                                                                         \
    .domain = "", .name = "ScatterND", .attrs_size = sizeof(ScatterAttrs), .attrs = nd_attrs,      \
    .verify = nd_verify, .infer = op_same_type, .picks = 1u << INDICES, .bind = nd_bind

static const OpDef *nd_form(const Node *n);

const OpDef op_ScatterND = {ND, .form = nd_form, .quant = JOINS};
static const OpDef nd_computed = {ND, .quant = COMPUTES};

static const OpDef *nd_form(const Node *n) {
    return computes(n) ? &nd_computed : &op_ScatterND;
}
