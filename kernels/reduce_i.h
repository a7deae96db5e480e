//! kernel reduce_i
//! template T=s8,u8,s16,u16,s32,u32,s64,u64
//! uses walk row_at
// y = the sum, or the product where `product`, over the reduced dimensions of x, modulo the range (ONNX
// ReduceSum, ReduceProd of integers). Dimensions are given with their strides in x, in elements; the
// kept ones are those of y.
typedef struct {
    int32_t kept, kdim[8], kstride[8];
    int32_t reduced, rdim[8], rstride[8];
    int32_t product;
} qk_reduce_i_params;

static $T $NAME_one(const qk_reduce_i_params *p, const $T *x) {
    int32_t index[8] = {0}, last = p->reduced - 1, inner = p->reduced ? p->rdim[last] : 1, i;
    ptrdiff_t rows = qk_rows(p->rdim, last), step = p->reduced ? p->rstride[last] : 0, row;
    uint64_t found = p->product ? 1 : 0;
    for (row = 0; row < rows; row++) {
        const $T *u = x + qk_row_at(index, p->rstride, last);
        for (i = 0; i < inner; i++, u += step)
            found = p->product ? found * (uint64_t)*u : found + (uint64_t)*u;
        qk_next_row(index, p->rdim, last);
    }
    return ($T)found;
}

static void $NAME(const qk_reduce_i_params *p, const $T *x, $T *y) {
    int32_t index[8] = {0};
    ptrdiff_t n = qk_rows(p->kdim, p->kept), i;
    for (i = 0; i < n; i++) {
        y[i] = $NAME_one(p, x + qk_row_at(index, p->kstride, p->kept));
        qk_next_row(index, p->kdim, p->kept);
    }
}
