/* Movers that map each axis by itself: Tile, Resize to the nearest, Pad with what is there. */
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
