/* Squeeze and Unsqueeze: from 13 the axes are an operand; 11 allowed negative ones. */
#include "ir/ops/reshape.h"

typedef struct AxesAttrs {
    Ints axes; /* before 13 */
} AxesAttrs;

static const AttrSpec axes_attrs[] = {
    A_INTS(AxesAttrs, axes),
    A_END,
};

/* False where the axes are computed at run time. */
static bool read_axes(const OpCtx *c, Ints *axes, bool *given) {
    const AxesAttrs *a = c->attrs;
    *axes = a->axes;
    *given = a->axes.v != NULL || op_in(c, 1);
    return a->axes.v || !op_in(c, 1) || op_ints(c, 1, axes);
}

static bool axes_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)d;
    if (from < 13 && to >= 13)
        upgrade_ints_attr(n, "axes", 1, names);
    return true;
}

static bool squeeze_infer(OpCtx *c) {
    Type x = op_type(c, 0);
    Ints axes;
    bool given, drop[MAX_RANK] = {false};
    if (x.rank < 0 || !read_axes(c, &axes, &given))
        return true;
    if (given && !op_axes(c, axes, 1, x.rank, drop))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    int rank = 0;
    for (int i = 0; i < x.rank; i++) {
        int64_t d = x.dims[i].value;
        if (!given && d < 0)
            return true; /* whether it is 1 shows at run time only */
        if (drop[i] && d >= 0 && d != 1)
            return op_error_param(c, "axes", 1, "axis %d has length %lld, not 1", i, (long long)d);
        if (given ? !drop[i] : d != 1)
            dims[rank++] = x.dims[i];
    }
    c->out[0] = type_tensor(type_real_elem(x), rank, dims);
    return true;
}

static bool unsqueeze_infer(OpCtx *c) {
    Type x = op_type(c, 0);
    Ints axes;
    bool given, added[MAX_RANK];
    if (x.rank < 0 || !read_axes(c, &axes, &given))
        return true;
    if (!given)
        return op_error(c, "needs axes");
    if (axes.n > (size_t)(MAX_RANK - x.rank))
        return true;
    int rank = x.rank + (int)axes.n, from = 0;
    if (!op_axes(c, axes, 1, rank, added))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank + 1);
    for (int i = 0; i < rank; i++)
        dims[i] = added[i] ? dim_of(1) : x.dims[from++];
    c->out[0] = type_tensor(type_real_elem(x), rank, dims);
    return true;
}

static bool squeeze_bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[0]->type, y = n->out[0]->type;
    return (!node_shape_operand(n) || bind_check_axes(b, n, 1, x, y)) && reshape_bind(b, n, c);
}

static bool unsqueeze_bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[0]->type, y = n->out[0]->type;
    return (!node_shape_operand(n) || bind_check_axes(b, n, 1, y, x)) && reshape_bind(b, n, c);
}

const OpDef op_Squeeze = {
    .domain = "",
    .name = "Squeeze",
    .fixed = 1u << 1,
    .attrs_size = sizeof(AxesAttrs),
    .attrs = axes_attrs,
    .infer = squeeze_infer,
    .flat = true,
    .quant = {RESHAPE_MOVER},
    .upgrade = axes_upgrade,
    .bind = squeeze_bind,
};

const OpDef op_Unsqueeze = {
    .domain = "",
    .name = "Unsqueeze",
    .fixed = 1u << 1,
    .attrs_size = sizeof(AxesAttrs),
    .attrs = axes_attrs,
    .infer = unsqueeze_infer,
    .flat = true,
    .quant = {RESHAPE_MOVER},
    .upgrade = axes_upgrade,
    .bind = unsqueeze_bind,
};
