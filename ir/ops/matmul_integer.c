/* MatMulInteger: int32 sums of products of 8-bit integers, each less its zero point. Opset 10.
 * Where its result becomes float, passes raise it to MatMul on quantized types; what they leave
 * runs as it stands. */
#include "ir/ops/bind.h"

enum { A, B, A_ZP, B_ZP, TILE = 64, MOST_TERMS = 1 << 15 };

extern const OpDef op_MatMul;

/* ---- laws ---- */

/* One number, one for each row of A or column of B, or an array that broadcasts so. */
static bool check_zero_point(const OpCtx *c, size_t i, const char *what) {
    bool rows = i == A_ZP;
    Type z = op_type(c, i), x = op_type(c, rows ? A : B);
    if (z.rank < 1 || x.rank < 0 || (z.rank == 1 && z.dims[0].value == 1))
        return true;
    if (z.rank > x.rank)
        return op_error_in(c, i, "its rank is %d, that of its operand %d", z.rank, x.rank);
    for (int k = 0; k < z.rank; k++) {
        bool summed = z.rank > 1 && k == (rows ? z.rank - 1 : z.rank - 2);
        int at = z.rank == 1 ? x.rank - (rows ? 2 : 1) : x.rank - z.rank + k;
        int64_t have = z.dims[k].value, want = summed || at < 0 ? 1 : x.dims[at].value;
        if (x.rank == 1)
            want = 1;
        if (dim_differ(have, want) && (have != 1 || z.rank == 1))
            return op_error_in(c, i, "a zero point for each %s: dimension %d is %lld, must be %lld",
                               what, k, (long long)have, (long long)want);
    }
    return true;
}

static bool verify(const OpCtx *c) {
    return check_zero_point(c, A_ZP, "row of A") && check_zero_point(c, B_ZP, "column of B");
}

static bool infer(OpCtx *c) {
    OpCtx product = *c;
    product.n_in = c->n_in < 2 ? c->n_in : 2;
    if (!op_MatMul.infer(&product))
        return false;
    if (c->out[0].kind == TYPE_TENSOR)
        c->out[0].elem = ELEM_INT32;
    return true;
}

/* ---- binding ---- */

/* As a matrix, or a stack of them: what has one dimension is a row or a column. */
static Type as_matrix(Arena *a, Type t, bool column) {
    if (t.rank != 1)
        return t;
    Dim *dims = NEW_ARRAY(a, Dim, 2);
    dims[column] = dim_of(1);
    dims[!column] = t.dims[0];
    return type_tensor(t.elem, 2, dims);
}

/* Strides of the batch, and of the last two dimensions. */
static void strides(Binder *b, const Value *v, bool column, int batch, int32_t *outer,
                    int32_t inner[2]) {
    int32_t all[MAX_RANK + 2] = {0};
    if (v && v->type.rank > 0)
        bind_strides(as_matrix(binder_arena(b), v->type, column), batch + 2, all);
    memcpy(outer, all, (size_t)batch * sizeof *outer);
    memcpy(inner, all + batch, 2 * sizeof *inner);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const Value *a = n->in[A], *w = n->in[B], *y = n->out[0];
    Type x = as_matrix(binder_arena(b), a->type, false);
    Type t = as_matrix(binder_arena(b), w->type, true);
    qk_matmul_integer_params p = {.rank = (x.rank > t.rank ? x.rank : t.rank) - 2,
                                  .m = (int32_t)x.dims[x.rank - 2].value,
                                  .k = (int32_t)x.dims[x.rank - 1].value,
                                  .n = (int32_t)t.dims[t.rank - 1].value};
    int32_t as[2], bs[2], azs[2], bzs[2];
    strides(b, a, false, p.rank, p.as, as);
    strides(b, w, true, p.rank, p.bs, bs);
    strides(b, op_in(c, A_ZP), true, p.rank, p.azs, azs);
    strides(b, op_in(c, B_ZP), false, p.rank, p.bzs, bzs);
    for (int i = 0; i < p.rank; i++)
        p.dim[i] = (int32_t)y->type.dims[i].value;
    p.am = as[0];
    p.bk = bs[0];
    p.bn = bs[1];
    p.azm = azs[0];
    p.bzn = bzs[1];
    p.tile = p.m < TILE ? p.m : TILE;
    ElemType e = p.k > MOST_TERMS ? ELEM_INT32 : ELEM_INT16;
    ElemType types[] = {bind_elem(a), bind_elem(w), e};
    bind_macs(b, (int64_t)bind_count(y) * p.k);
    int args[] = {bind_value(b, a),
                  bind_value(b, w),
                  bind_value(b, op_in(c, A_ZP)),
                  bind_value(b, op_in(c, B_ZP)),
                  bind_value(b, y),
                  bind_scratch(b, e, (size_t)p.tile * (size_t)p.k),
                  bind_scratch(b, e, 4 * (size_t)p.k),
                  bind_scratch(b, e == ELEM_INT16 ? ELEM_INT32 : ELEM_INT64, 4 * (size_t)p.tile)};
    return bind_call(b, n, bind_kernel(b, "matmul_integer", 3, types), &p, sizeof p, 8, args);
}

/* Zero points may be one for each row. */
static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    return op_MatMul.slices(c, i, axis, result);
}

const OpDef op_MatMulInteger = {
    .domain = "",
    .name = "MatMulInteger",
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .bind = bind,
};
