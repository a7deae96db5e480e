/* Crop, which opsets before 10 had on trial: what is within a border of an image [N, C, H, W]. From
 * opset 10 on it is Slice. */
#include "ir/ops/bind.h"
#include "ir/provenance.h"

typedef struct CropAttrs {
    Ints border; /* left, top, right, bottom */
    Ints scale;  /* height and width to keep; without it all up to the border */
} CropAttrs;

static const AttrSpec attrs[] = {
    A_INTS_REQUIRED(CropAttrs, border),
    A_INTS(CropAttrs, scale),
    A_END,
};

enum { HEIGHT = 2, WIDTH = 3 };

/* Elements [*start, *end) of an axis remain; an end below 1 counts from the axis's. */
static void part(const CropAttrs *a, int axis, int64_t *start, int64_t *end) {
    *start = a->border.v[WIDTH - axis];
    *end = a->scale.n ? *start + a->scale.v[axis - HEIGHT] : -a->border.v[WIDTH - axis + 2];
}

static bool within(const OpCtx *c, int axis) {
    const CropAttrs *a = c->attrs;
    int64_t start, end, length = op_type(c, 0).dims[axis].value;
    part(a, axis, &start, &end);
    return length < 0 || (end > 0 ? end : length + end) <= length ||
           op_error_attr(c, "scale", "axis %d of length %lld has no elements up to %lld", axis,
                         (long long)length, (long long)end);
}

static bool verify(const OpCtx *c) {
    const CropAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    if (a->border.n != 4)
        return op_error_attr(c, "border", "the border has %zu numbers, must have 4", a->border.n);
    if (a->scale.n && a->scale.n != 2)
        return op_error_attr(c, "scale", "the scale has %zu numbers, must have 2", a->scale.n);
    for (size_t i = 0; i < 4 + a->scale.n; i++) {
        int64_t v = i < 4 ? a->border.v[i] : a->scale.v[i - 4];
        if (v < 0 || v > INT32_MAX)
            return op_error_attr(c, i < 4 ? "border" : "scale", "%lld is out of range",
                                 (long long)v);
    }
    if (x.rank >= 0 && x.rank != 4)
        return op_error_in(c, 0, "input must have rank 4, not %d", x.rank);
    return x.rank < 0 || (within(c, HEIGHT) && within(c, WIDTH));
}

static bool infer(OpCtx *c) {
    Type x = op_type(c, 0);
    if (x.rank != 4)
        return op_same_type(c);
    Dim *dims = arena_copy(c->arena, x.dims, 4 * sizeof *dims);
    for (int i = HEIGHT; i <= WIDTH; i++) {
        int64_t start, end, length = dims[i].value;
        part(c->attrs, i, &start, &end);
        end += end > 0 ? 0 : length;
        if (start || end != length)
            dims[i] = length < 0 ? dim_unknown() : dim_of(end > start ? end - start : 0);
    }
    c->out[0] = type_tensor(type_real_elem(x), 4, dims);
    return true;
}

static bool upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    const CropAttrs *a = n->typed;
    int64_t axes[] = {HEIGHT, WIDTH}, starts[2], ends[2];
    (void)d;
    if (from >= 10 || to < 10 || !a)
        return true;
    for (int i = 0; i < 2; i++) {
        part(a, (int)axes[i], &starts[i], &ends[i]);
        ends[i] = ends[i] ? ends[i] : INT64_MAX;
    }
    n->op = STR("Slice");
    node_add_input(n, upgrade_ints(n, "starts", (Ints){starts, 2}, names));
    node_add_input(n, upgrade_ints(n, "ends", (Ints){ends, 2}, names));
    node_add_input(n, upgrade_ints(n, "axes", (Ints){axes, 2}, names));
    node_drop_attr(n, "border");
    node_drop_attr(n, "scale");
    node_becomes(n, "upgrade");
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind_unsupported(b, n, "it has to become Slice first (-target-opset=13)");
}

const OpDef op_Crop = {
    .domain = "",
    .name = "Crop",
    .attrs_size = sizeof(CropAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .upgrade = upgrade,
    .bind = bind,
};
