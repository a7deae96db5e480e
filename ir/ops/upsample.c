/* Upsample, which became Resize with opset 10: scales are an attribute until 8, an operand at 9. */
#include "ir/ops/resize.h"
#include "ir/provenance.h"

typedef struct UpsampleAttrs {
    Str mode;
    Floats scales; /* before 9 */
} UpsampleAttrs;

static const AttrSpec attrs[] = {
    A_WORD(UpsampleAttrs, mode, "nearest", "nearest linear|bilinear cubic"),
    A_FLOATS(UpsampleAttrs, scales),
    A_END,
};

static bool upsample_infer(OpCtx *c) {
    const UpsampleAttrs *a = c->attrs;
    Type x = op_type(c, RESIZE_X);
    const Tensor *t = op_const(c, 1);
    size_t n = a->scales.v ? a->scales.n : t && t->data ? t->count : 0;
    if (x.rank < 0)
        return true;
    if (n && n != (size_t)x.rank)
        return op_error_param(c, "scales", 1, "%zu scales for rank %d", n, x.rank);
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++) {
        Extent e = {.in = x.dims[i].value};
        if (n &&
            !resize_scale(c, a->scales.v ? a->scales.v[i] : (float)tensor_float(t, (size_t)i), &e))
            return false;
        dims[i] = n && e.scale == 1 ? x.dims[i] : n && e.in >= 0 ? dim_of(e.out) : dim_unknown();
    }
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static bool upsample_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)from;
    (void)d;
    const UpsampleAttrs *a = n->typed;
    if (to < 9)
        return true;
    if (a && a->scales.v) {
        while (n->n_in < 2)
            node_add_input(n, NULL);
        n->in[1] = upgrade_floats(n, "scales", a->scales, names);
        node_drop_attr(n, "scales");
    }
    if (to < 10)
        return true;
    n->op = STR("Resize");
    node_becomes(n, "upgrade");
    if (to >= 11)
        resize_to_eleven(n, false, names);
    return true;
}

static bool upsample_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind_unsupported(b, n, "it has to become Resize first (-target-opset=13)");
}

const OpDef op_Upsample = {
    .domain = "",
    .name = "Upsample",
    .fixed = 2,
    .attrs_size = sizeof(UpsampleAttrs),
    .attrs = attrs,
    .infer = upsample_infer,
    .upgrade = upsample_upgrade,
    .bind = upsample_bind,
};
