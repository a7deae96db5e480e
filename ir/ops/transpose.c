/* Transpose. Opsets 13, 21, 23, ...: only types. */
#include "ir/ops/bind.h"

typedef struct TransposeAttrs {
    Ints perm; /* absent: all axes reversed */
} TransposeAttrs;

static const AttrSpec attrs[] = {
    A_INTS(TransposeAttrs, perm),
    A_END,
};

static int source(const OpCtx *c, int rank, int i) {
    const TransposeAttrs *a = c->attrs;
    return a->perm.v ? (int)a->perm.v[i] : rank - 1 - i;
}

static bool verify(const OpCtx *c) {
    const TransposeAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    bool seen[MAX_RANK] = {false};
    if (x.rank < 0 || !a->perm.v)
        return true;
    if (a->perm.n != (size_t)x.rank)
        return op_error_attr(c, "perm", "perm has %zu numbers, the input rank %d", a->perm.n,
                             x.rank);
    for (size_t i = 0; i < a->perm.n; i++) {
        if (a->perm.v[i] < 0 || a->perm.v[i] >= x.rank || seen[a->perm.v[i]])
            return op_error_attr(c, "perm", "perm is no permutation of 0 to %d", x.rank - 1);
        seen[a->perm.v[i]] = true;
    }
    return true;
}

static bool infer(OpCtx *c) {
    Type x = op_type(c, 0);
    if (x.rank < 0)
        return op_same_type(c);
    if (!verify(c))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++)
        dims[i] = x.dims[source(c, x.rank, i)];
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static int move_axis(const OpCtx *c, int axis) {
    int rank = op_type(c, 0).rank;
    for (int i = 0; i < rank; i++)
        if (source(c, rank, i) == axis)
            return i;
    return -1;
}

/* Whether it takes channels from the last axis to the second (`to_front`), or from there to the
 * last, and leaves the order of the others. */
static bool moves_channels(const OpCtx *c, int rank, bool to_front) {
    for (int i = 0; i < rank; i++) {
        int from = i == 0 ? 0 : to_front ? (i == 1 ? rank - 1 : i - 1) : i == rank - 1 ? 1 : i + 1;
        if (source(c, rank, i) != from)
            return false;
    }
    return rank >= 3;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[0]->type, y = n->out[0]->type;
    int64_t stride[MAX_RANK], step = 1, out = 1;
    int moved = 0, last = -1;
    for (int i = x.rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= x.dims[i].value;
    }
    qk_copy_nd_params p = {.rank = y.rank};
    for (int i = y.rank - 1; i >= 0; i--) {
        int from = source(c, x.rank, i);
        p.dim[i] = (int32_t)y.dims[i].value;
        p.ss[i] = (int32_t)stride[from];
        p.ds[i] = (int32_t)out;
        out *= y.dims[i].value;
    }
    for (int i = 0; i < y.rank; i++) { /* axes of length 1 may go anywhere */
        int from = source(c, x.rank, i);
        if (x.dims[from].value == 1)
            continue;
        moved += from < last;
        last = from;
    }
    if (moved == 0)
        return bind_alias(b, n, n->out[0], n->in[0]);
    bool to_front = moves_channels(c, x.rank, true);
    if ((to_front || moves_channels(c, x.rank, false)) &&
        bind_moved(b, n->out[0], n->in[0], to_front))
        return true;
    ElemType e = bind_elem(n->in[0]);
    return bind_first(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p);
}

const OpDef op_Transpose = {
    .domain = "",
    .name = "Transpose",
    .attrs_size = sizeof(TransposeAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .quant = {.kind = QUANT_MOVE, .data = 1, .move.axis = move_axis},
    .bind = bind,
};
