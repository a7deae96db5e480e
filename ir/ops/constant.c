/* Constant and ConstantOfShape. Constant: 11 added sparse_value, 12 value_int(s), value_float(s),
 * value_string(s). ConstantOfShape: only types (20, 21, ...). */
#include "ir/ops/told.h"

#include <math.h>

typedef struct ConstantAttrs {
    const Tensor *value;
    Ints value_ints;
    Floats value_floats;
} ConstantAttrs;

static const AttrSpec constant_attrs[] = {
    A_TENSOR(ConstantAttrs, value),
    A_INTS(ConstantAttrs, value_ints),
    A_FLOATS(ConstantAttrs, value_floats),
    A_END,
};

static const Tensor *list(const Node *n, ElemType e, const void *v, size_t count, bool scalar) {
    Arena *a = n->graph->module->arena;
    int64_t dims[] = {(int64_t)count};
    return tensor_of(a, e, scalar ? 0 : 1, dims, v);
}

static const Tensor *constant_data(const Node *n) {
    const ConstantAttrs *a = n->typed;
    if (!a)
        return NULL;
    if (a->value)
        return a->value;
    if (a->value_ints.v)
        return list(n, ELEM_INT64, a->value_ints.v, a->value_ints.n, false);
    if (a->value_floats.v)
        return list(n, ELEM_FLOAT, a->value_floats.v, a->value_floats.n, false);
    const Attr *i = node_attr(n, "value_int"), *f = node_attr(n, "value_float");
    if (attr_holds(i, ATTR_INT))
        return list(n, ELEM_INT64, i->v.i, 1, true);
    if (attr_holds(f, ATTR_FLOAT))
        return list(n, ELEM_FLOAT, f->v.f, 1, true);
    return NULL; /* strings and sparse tensors */
}

static bool constant_verify(const OpCtx *c) {
    return c->node->n_attrs == 1 ||
           op_error(c, "needs exactly one attribute with a value, not %zu", c->node->n_attrs);
}

static bool constant_infer(OpCtx *c) {
    const Tensor *t = constant_data(c->node);
    if (t)
        c->out[0] = tensor_type(c->arena, t);
    return true;
}

static bool constant_bind(Binder *b, const Node *n, const OpCtx *c) {
    const Tensor *t = constant_data(n);
    (void)c;
    if (!t || (!t->data && t->count) || t->elem == ELEM_STRING)
        return bind_unsupported(b, n, "its value is neither a dense tensor of numbers nor at hand");
    bind_is(b, bind_tensor(b, t, n->out[0]), n->out[0]);
    return true;
}

const OpDef op_Constant = {
    .domain = "",
    .name = "Constant",
    .attrs_size = sizeof(ConstantAttrs),
    .attrs = constant_attrs,
    .verify = constant_verify,
    .infer = constant_infer,
    .constant = constant_data,
    .bind = constant_bind,
};

/* ---- Range ---- */

enum { START, LIMIT, DELTA };

/* One number that is a constant; NULL where it is none. */
static const Tensor *number(const OpCtx *c, size_t i) {
    const Tensor *t = op_const(c, i);
    return t && t->data && t->count == 1 ? t : NULL;
}

/* Of integers, whose differences a double may not hold. */
static double steps_of_integers(int64_t start, int64_t limit, int64_t delta) {
    uint64_t from = (uint64_t)start, to = (uint64_t)limit, step = (uint64_t)delta;
    if (delta > 0 ? start >= limit : start <= limit)
        return 0;
    return (double)(delta > 0 ? (to - from - 1) / step + 1 : (from - to - 1) / (0 - step) + 1);
}

static bool range_infer(OpCtx *c) {
    Type t = op_type(c, START);
    const Tensor *start = number(c, START), *limit = number(c, LIMIT), *delta = number(c, DELTA);
    double n = -1;
    Dim *dims = NEW_ARRAY(c->arena, Dim, 1);
    if (start && limit && delta) {
        if (tensor_float(delta, 0) == 0)
            return op_error_in(c, DELTA, "delta is 0");
        double span = tensor_float(limit, 0) - tensor_float(start, 0);
        bool single = t.kind == TYPE_TENSOR && type_real_elem(t) == ELEM_FLOAT;
        n = ceil((single ? (double)(float)span : span) /
                 tensor_float(delta, 0)); /* as onnxruntime rounds it */
        if (elem_is_int(start->elem) && elem_is_int(limit->elem) && elem_is_int(delta->elem))
            n = steps_of_integers(tensor_int(start, 0), tensor_int(limit, 0), tensor_int(delta, 0));
        n = n > 0 ? n : 0; /* NaN, too */
    }
    dims[0] = n < 0 || n > INT32_MAX ? dim_unknown() : dim_of((int64_t)n);
    if (t.kind == TYPE_TENSOR)
        c->out[0] = type_tensor(type_real_elem(t), 1, dims);
    return true;
}

static bool range_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    ElemType e = bind_elem(n->out[0]);
    qk_range_params p = {.n = bind_count(n->out[0])};
    return bind_call(b, n, bind_kernel(b, "range", 1, &e), &p, sizeof p, 3,
                     (int[]){bind_value(b, n->in[START]), bind_value(b, n->in[DELTA]),
                             bind_value(b, n->out[0])});
}

static bool range_bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    (void)c;
    ElemType e = bind_elem(n->out[0]);
    qk_range_length_params p = {.most = bind_bound(b, n, INT32_MAX)};
    return bind_call(b, n, bind_kernel(b, "range_length", 1, &e), &p, sizeof p, 4,
                     (int[]){bind_value(b, n->in[START]), bind_value(b, n->in[LIMIT]),
                             bind_value(b, n->in[DELTA]), length});
}

const OpDef op_Range = {.domain = "",
                        .name = "Range",
                        .fixed = 7,
                        .infer = range_infer,
                        .bind_length = range_bind_length,
                        .bind = range_bind};

/* ---- EyeLike ---- */

typedef struct EyeAttrs {
    int64_t dtype, k;
} EyeAttrs;

static const AttrSpec eye_attrs[] = {
    A_INT(EyeAttrs, dtype, 0),
    A_INT(EyeAttrs, k, 0),
    A_END,
};

static bool eye_infer(OpCtx *c) {
    const EyeAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    if (x.rank >= 0 && x.rank != 2)
        return op_error_in(c, 0, "a matrix has rank 2, not %d", x.rank);
    if (!op_same_type(c))
        return false;
    if (a->dtype && !elem_known((int)a->dtype))
        return op_error_attr(c, "dtype", "there is no element type %lld", (long long)a->dtype);
    if (a->dtype && c->out[0].kind == TYPE_TENSOR)
        c->out[0].elem = (ElemType)a->dtype;
    return true;
}

static bool eye_bind(Binder *b, const Node *n, const OpCtx *c) {
    const EyeAttrs *a = c->attrs;
    Type y = n->out[0]->type;
    ElemType e = bind_elem(n->out[0]);
    uint8_t *data = arena_alloc(binder_arena(b), elem_bytes(e, (size_t)bind_count(n->out[0])));
    if (y.rank != 2)
        return bind_unsupported(b, n, "of rank %d", y.rank);
    if (op_quant(n->out[0]))
        return bind_unsupported(b, n, "its result is quantized");
    for (int64_t i = 0; i < y.dims[0].value; i++)
        for (int64_t k = 0; k < y.dims[1].value; k++) {
            size_t at = (size_t)(i * y.dims[1].value + k);
            bool one = k - i == a->k;
            if (e == ELEM_FLOAT)
                ((float *)(void *)data)[at] = one;
            else if (e == ELEM_DOUBLE)
                ((double *)(void *)data)[at] = one;
            else
                elem_store_int(e, data, at, one);
        }
    int diagonal = bind_const(b, e, (size_t)bind_count(n->out[0]), data, "diagonal");
    bind_copy(b, n, diagonal, bind_value(b, n->out[0]));
    return true;
}

const OpDef op_EyeLike = {
    .domain = "",
    .name = "EyeLike",
    .attrs_size = sizeof(EyeAttrs),
    .attrs = eye_attrs,
    .infer = eye_infer,
    .bind = eye_bind,
};

/* ---- ConstantOfShape ---- */

typedef struct FillAttrs {
    const Tensor *value; /* one element; absent: float 0 */
} FillAttrs;

static const AttrSpec fill_attrs[] = {
    A_TENSOR(FillAttrs, value),
    A_END,
};

static bool fill_verify(const OpCtx *c) {
    const FillAttrs *a = c->attrs;
    return !a->value || a->value->count == 1 ||
           op_error(c, "value must have one element, not %zu", a->value->count);
}

static bool fill_infer(OpCtx *c) {
    const FillAttrs *a = c->attrs;
    ElemType e = a->value ? a->value->elem : ELEM_FLOAT;
    SomeInts shape;
    c->out[0] = type_tensor(e, -1, NULL);
    if (!op_some_ints(c, 0, &shape) || shape.n > MAX_RANK)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, shape.n + 1);
    for (size_t i = 0; i < shape.n; i++) {
        dims[i] = shape.known[i] ? dim_of(shape.v[i]) : dim_unknown();
        if (shape.known[i] && shape.v[i] < 0)
            return op_error(c, "dimension %zu is %lld", i, (long long)shape.v[i]);
    }
    c->out[0] = type_tensor(e, (int)shape.n, dims);
    return true;
}

static bool fill_bind(Binder *b, const Node *n, const OpCtx *c) {
    const FillAttrs *a = c->attrs;
    ElemType e = bind_elem(n->out[0]);
    qk_fill_params p = {.n = bind_count(n->out[0])};
    float real = a->value && a->value->data ? (float)tensor_float(a->value, 0) : 0;
    if (a->value && a->value->data && e == ELEM_FLOAT) /* float16 is one here */
        memcpy(&p.value, &real, sizeof real);
    else if (a->value && a->value->data && elem_bits(a->value->elem) >= 8)
        memcpy(&p.value, a->value->data, (size_t)elem_bits(a->value->elem) / 8);
    else if (a->value && a->value->data && elem_is_int(a->value->elem))
        p.value = tensor_int(a->value, 0);
    else if (a->value)
        return bind_unsupported(b, n, "its value is not a number at hand");
    return bind_call(b, n, bind_kernel(b, "fill", 1, &e), &p, sizeof p, 1,
                     (int[]){bind_value(b, n->out[0])});
}

static bool fill_bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    (void)c;
    return bind_expanded_length(b, n, type_tensor(ELEM_FLOAT, 0, NULL), n->in[0], length);
}

const OpDef op_ConstantOfShape = {
    .domain = "",
    .name = "ConstantOfShape",
    .shapes = 1,
    .fixed = 1,
    .bind_length = fill_bind_length,
    .attrs_size = sizeof(FillAttrs),
    .attrs = fill_attrs,
    .verify = fill_verify,
    .infer = fill_infer,
    .bind = fill_bind,
};
