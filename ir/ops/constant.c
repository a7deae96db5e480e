/* Constant and ConstantOfShape. Constant: 11 added sparse_value, 12 value_int(s), value_float(s),
 * value_string(s). ConstantOfShape: only types (20, 21, ...). */
#include "ir/ops/bind.h"

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
    const void *data = t->data;
    ElemType e = bind_elem(n->out[0]);
    if (e != t->elem) { /* packed below 8 bits */
        uint8_t *bytes = arena_alloc(binder_arena(b), t->count);
        for (size_t i = 0; i < t->count; i++)
            elem_store_int(e, bytes, i, elem_load_int(t->elem, t->data, i));
        data = bytes;
    }
    int buffer = bind_const(b, e, t->count, data, NULL);
    binder_program(b)->buffers[buffer].value = n->out[0];
    binder_program(b)->value_buffer[n->out[0]->id] = buffer;
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
    Type s = op_type(c, 0);
    Ints shape;
    c->out[0] = type_tensor(e, -1, NULL);
    bool known = op_ints(c, 0, &shape);
    int64_t rank = known ? (int64_t)shape.n : s.rank == 1 ? s.dims[0].value : -1;
    if (rank < 0 || rank > MAX_RANK)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank + 1);
    for (int i = 0; i < rank; i++) {
        dims[i] = known ? dim_of(shape.v[i]) : dim_unknown();
        if (known && shape.v[i] < 0)
            return op_error(c, "dimension %d is %lld", i, (long long)shape.v[i]);
    }
    c->out[0] = type_tensor(e, (int)rank, dims);
    return true;
}

static bool fill_bind(Binder *b, const Node *n, const OpCtx *c) {
    const FillAttrs *a = c->attrs;
    ElemType e = bind_elem(n->out[0]);
    qk_fill_params p = {.n = bind_count(n->out[0])};
    if (a->value && a->value->data && elem_bits(a->value->elem) >= 8)
        memcpy(&p.value, a->value->data, (size_t)elem_bits(a->value->elem) / 8);
    else if (a->value && a->value->data && elem_is_int(a->value->elem))
        p.value = tensor_int(a->value, 0);
    else if (a->value)
        return bind_unsupported(b, n, "its value is not a number at hand");
    return bind_call(b, n, bind_kernel(b, "fill", 1, &e), &p, sizeof p, 1,
                     (int[]){bind_value(b, n->out[0])});
}

const OpDef op_ConstantOfShape = {
    .domain = "",
    .name = "ConstantOfShape",
    .attrs_size = sizeof(FillAttrs),
    .attrs = fill_attrs,
    .verify = fill_verify,
    .infer = fill_infer,
    .bind = fill_bind,
};
