/* Movers that map each axis by itself (Tile, Resize to the nearest, Pad with what is there), and
 * those that are told by indices (Gather and the like). */
#include "ir/ops/bind.h"

bool bind_take(Binder *b, const Node *n, const Value *x, const Value *y, int64_t *const *from) {
    Type t = x->type;
    qk_take_nd_params p = {.rank = t.rank};
    size_t count = 0;
    for (int i = 0; i < t.rank; i++) {
        p.dim[i] = (int32_t)y->type.dims[i].value;
        count += (size_t)p.dim[i];
    }
    int32_t *table = NEW_ARRAY(binder_arena(b), int32_t, count + 1), *at = table + count;
    int64_t step = 1;
    for (int i = t.rank - 1; i >= 0; i--) {
        at -= p.dim[i];
        for (int32_t k = 0; k < p.dim[i]; k++)
            at[k] = (int32_t)(from[i][k] * step);
        step *= t.dims[i].value;
    }
    if (bind_count(y) == 0)
        p = (qk_take_nd_params){.rank = 1, .dim = {0}};
    ElemType e = bind_elem(x);
    return bind_call(b, n, bind_kernel(b, "take_nd", 1, &e), &p, sizeof p, 3,
                     (int[]){bind_value(b, x),
                             bind_const(b, ELEM_INT32, count, table, "where elements come from"),
                             bind_value(b, y)});
}

bool bind_indexed(Binder *b, const Node *n, const char *kernel, const void *params, size_t size,
                  bool from_end, const int32_t *lengths, int n_lengths) {
    const Value *x = n->in[0], *at = n->in[1];
    ElemType types[] = {bind_elem(x), bind_elem(at)};
    if (!bind_call(b, n, bind_kernel(b, kernel, 2, types), params, size, 3,
                   (int[]){bind_value(b, x), bind_value(b, at), bind_value(b, n->out[0])}))
        return false;
    bind_within(b, at, from_end, lengths, n_lengths);
    return true;
}

bool bind_gather(Binder *b, const Node *n, int axis, bool from_end) {
    Type x = n->in[0]->type;
    qk_gather_params p = {.outer = bind_extent(x, 0, axis),
                          .length = (int32_t)x.dims[axis].value,
                          .inner = bind_extent(x, axis + 1, x.rank),
                          .n = bind_count(n->in[1])};
    if (p.length == 0 && bind_count(n->out[0]) > 0)
        return bind_unsupported(b, n, "the axis is empty");
    return bind_indexed(b, n, "gather", &p, sizeof p, from_end, &p.length, 1);
}
