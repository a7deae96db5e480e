/* Reshape, Flatten and Identity: other dimensions over the same bytes. Reshape: 14 added allowzero.
 * Flatten: 11 allowed a negative axis. All else: types. */
#include "ir/ops/reshape.h"

static const AttrSpec no_attrs[] = {A_END};

/* The result's type: while inferring what was just inferred, afterwards what stands there. */
static Type result(const OpCtx *c) {
    if (c->out[0].kind == TYPE_TENSOR)
        return c->out[0];
    return c->node->n_out && c->node->out[0] ? c->node->out[0]->type : TYPE_UNKNOWN;
}

/* Elements in dims [0, n) as a number times a product of at most one symbol. */
static bool prefix(Type t, int n, int64_t *number, Dim *symbol) {
    *number = 1;
    *symbol = dim_of(1);
    for (int i = 0; i < n; i++) {
        if (t.dims[i].value >= 0)
            *number = dim_mul(*number, t.dims[i].value);
        else if (symbol->value != 1 || !t.dims[i].param.s)
            return false;
        else
            *symbol = t.dims[i];
    }
    return true;
}

int reshape_move_axis(const OpCtx *c, int axis) {
    Type x = op_type(c, 0), y = result(c);
    int64_t xn, yn;
    Dim xs, ys;
    if (type_same_shape(x, y))
        return axis; /* among several of length 1 that one */
    if (x.rank <= axis || y.rank < 0 || !prefix(x, axis, &xn, &xs))
        return -1;
    for (int i = 0; i < y.rank; i++)
        if (dim_equal(y.dims[i], x.dims[axis]) && prefix(y, i, &yn, &ys) && xn == yn &&
            dim_equal(xs, ys))
            return i;
    return -1;
}

bool reshape_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    const Value *x = n->in[0], *y = n->out[0];
    const Quant *p = op_quant(x), *q = op_quant(y);
    if (!p != !q || (p && quant_is_per_tensor(p) && !quant_equal(p, q)))
        return bind_unsupported(b, n, "operand and result are quantized differently");
    return bind_alias(b, n, y, x);
}

/* ---- Reshape ---- */

typedef struct ReshapeAttrs {
    int64_t allowzero;
} ReshapeAttrs;

static const AttrSpec reshape_attrs[] = {
    A_FLAG(ReshapeAttrs, allowzero, 0),
    A_END,
};

/* Both sides hold as many elements; what one dimension must be follows from the others. The same
 * symbol on both sides cancels. */
static Dim missing_dim(Type x, const Dim *dims, int rank, int missing, bool *bad) {
    int64_t have = 1, want = 1;
    bool used[MAX_RANK] = {false};
    Dim left = dim_of(1);
    for (int i = 0; i < rank; i++) {
        if (i == missing)
            continue;
        if (dims[i].value >= 0) {
            want = dim_mul(want, dims[i].value);
            continue;
        }
        int k = 0;
        while (k < x.rank && (used[k] || !dim_equal(x.dims[k], dims[i])))
            k++;
        if (k == x.rank)
            return dim_unknown();
        used[k] = true;
    }
    for (int k = 0; k < x.rank; k++) {
        if (used[k])
            continue;
        if (x.dims[k].value >= 0)
            have = dim_mul(have, x.dims[k].value);
        else if (left.value == 1)
            left = x.dims[k];
        else
            return dim_unknown();
    }
    if (left.value != 1)
        return have == want ? left : dim_unknown();
    *bad = want == 0 ? have != 0 : have % want != 0;
    return dim_of(want == 0 ? missing < 0 : *bad ? 0 : have / want);
}

static bool reshape_dims(const OpCtx *c, Type x, Ints shape, Dim *dims) {
    const ReshapeAttrs *a = c->attrs;
    int missing = -1;
    bool bad = false;
    for (int i = 0; i < (int)shape.n; i++) {
        int64_t d = shape.v[i];
        dims[i] = dim_of(d);
        if (d < -1)
            return op_error_param(c, "shape", 1, "dimension %d of the new shape is %lld", i,
                                  (long long)d);
        if (d == -1 && missing >= 0)
            return op_error_param(c, "shape", 1, "the new shape has more than one -1");
        if (d == -1)
            missing = i;
        if (d == 0 && !a->allowzero) {
            if (x.rank >= 0 && i >= x.rank)
                return op_error_param(
                    c, "shape", 1, "dimension %d of the new shape is 0, but the input has rank %d",
                    i, x.rank);
            dims[i] = x.rank >= 0 ? x.dims[i] : dim_unknown();
        }
    }
    if (x.rank < 0)
        return true;
    Dim d = missing_dim(x, dims, (int)shape.n, missing, &bad);
    if (missing >= 0)
        dims[missing] = d;
    else
        bad = bad || (d.value >= 0 && d.value != 1);
    if (bad)
        return op_error_param(c, "shape", 1, "%s does not fit the new shape",
                              type_text(c->arena, x));
    return true;
}

/* One number that only a run tells follows from the others, as -1 does: true where that one is all
 * that is missing. */
static bool fill_in(const OpCtx *c, SomeInts shape, Ints *list) {
    int64_t *v = arena_copy(c->arena, shape.v, (shape.n + 1) * sizeof *v);
    size_t open = 0;
    for (size_t i = 0; i < shape.n; i++) {
        open += !shape.known[i] || v[i] == -1;
        v[i] = shape.known[i] ? v[i] : -1;
    }
    for (size_t i = 0; i < shape.n && !op_all_known(shape); i++)
        if (v[i] == 0) /* then any number would do */
            return false;
    *list = (Ints){v, shape.n};
    return open <= 1 || op_all_known(shape);
}

/* Of a shape of which little is known only the rank may be. */
static Type of_rank(const OpCtx *c, Type x, Type shape) {
    int64_t rank = shape.rank == 1 ? shape.dims[0].value : -1;
    if (rank < 0 || rank > MAX_RANK)
        return type_tensor(type_real_elem(x), -1, NULL);
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank + 1);
    for (int i = 0; i < rank; i++)
        dims[i] = dim_unknown();
    return type_tensor(type_real_elem(x), (int)rank, dims);
}

static bool reshape_infer(OpCtx *c) {
    Type x = op_type(c, 0);
    SomeInts some;
    Ints shape;
    if (!op_ints(c, 1, &shape) && !(op_some_ints(c, 1, &some) && fill_in(c, some, &shape))) {
        if (x.kind == TYPE_TENSOR)
            c->out[0] = of_rank(c, x, op_type(c, 1));
        return true;
    }
    if (shape.n > MAX_RANK)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, shape.n + 1);
    if (!reshape_dims(c, x, shape, dims))
        return false;
    if (x.kind == TYPE_TENSOR)
        c->out[0] = type_tensor(type_real_elem(x), (int)shape.n, dims);
    return true;
}

static bool reshape_bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    const ReshapeAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    int rank = n->out[0]->type.rank;
    qk_reshape_dims_params p = {.rank = x.rank, .n = rank, .copies = !a->allowzero};
    bind_dims(x, p.from);
    int dims = bind_temp(b, ELEM_INT64, (size_t)rank);
    return bind_told_list(b, n, 1, (size_t)rank) &&
           bind_call(b, n, "qk_reshape_dims", &p, sizeof p, 2,
                     (int[]){bind_value(b, n->in[1]), dims}) &&
           bind_told_length(b, n, dims, length);
}

const OpDef op_Reshape = {
    .domain = "",
    .name = "Reshape",
    .shapes = 1u << 1,
    .fixed = 1u << 1,
    .attrs_size = sizeof(ReshapeAttrs),
    .attrs = reshape_attrs,
    .infer = reshape_infer,
    .flat = true,
    .quant = {RESHAPE_MOVER},
    .bind_length = reshape_bind_length,
    .bind = reshape_bind,
};

/* ---- Flatten ---- */

typedef struct FlattenAttrs {
    int64_t axis;
} FlattenAttrs;

static const AttrSpec flatten_attrs[] = {
    A_INT(FlattenAttrs, axis, 1),
    A_END,
};

static Dim product(Type x, int from, int to) {
    Dim d = dim_of(1);
    for (int i = from; i < to; i++) {
        if (x.dims[i].value == 1)
            continue;
        if (d.value == 1)
            d = x.dims[i];
        else if (d.value >= 0 && x.dims[i].value >= 0)
            d = dim_of(dim_mul(d.value, x.dims[i].value));
        else
            d = dim_unknown();
        if (d.value < 0 && !d.param.s)
            break;
    }
    return d;
}

static bool flatten_infer(OpCtx *c) {
    const FlattenAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    if (x.rank < 0)
        return true;
    if (a->axis < -x.rank || a->axis > x.rank)
        return op_error_attr(c, "axis", "axis %lld is out of range for rank %d", (long long)a->axis,
                             x.rank);
    int axis = (int)(a->axis < 0 ? a->axis + x.rank : a->axis);
    Dim *dims = NEW_ARRAY(c->arena, Dim, 2);
    dims[0] = product(x, 0, axis);
    dims[1] = product(x, axis, x.rank);
    c->out[0] = type_tensor(type_real_elem(x), 2, dims);
    return true;
}

const OpDef op_Flatten = {
    .domain = "",
    .name = "Flatten",
    .attrs_size = sizeof(FlattenAttrs),
    .attrs = flatten_attrs,
    .infer = flatten_infer,
    .flat = true,
    .quant = {RESHAPE_MOVER},
    .bind = reshape_bind,
};

/* ---- Identity ---- */

static bool identity_infer(OpCtx *c) {
    Type x = op_type(c, 0);
    if (x.kind == TYPE_TENSOR)
        return op_same_type(c);
    c->out[0] = x; /* sequences and optionals too */
    return true;
}

const OpDef op_Identity = {
    .domain = "",
    .name = "Identity",
    .attrs = no_attrs,
    .infer = identity_infer,
    .flat = true,
    .quant = {.kind = QUANT_MOVE, .data = 1},
    .bind = reshape_bind,
};
