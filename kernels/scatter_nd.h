//! kernel scatter_nd
//! template T=s8,u8,s16,u16,s32,u32,s64,u64,f32,f64 I=s32,s64
//! uses scatter_one_$t
// y[index[i, 0], index[i, 1], ...] becomes x[i] (ONNX ScatterND), or with `reduction` their sum (1),
// product (2), the larger (3) or smaller one (4): n slices of `inner` elements of y[dim[0], ...,
// dim[k - 1], inner]. Negative indices count from the end; slices that lie outside do nothing.
typedef struct {
    int32_t n, k, dim[8], inner, reduction;
} qk_scatter_nd_params;

static void $NAME(const qk_scatter_nd_params *p, const $T *x, const $I *index, $T *y) {
    int32_t i, d, j;
    for (i = 0; i < p->n; i++, index += p->k, x += p->inner) {
        ptrdiff_t at = 0;
        int32_t inside = 1;
        for (d = 0; d < p->k; d++) {
            $I v = index[d] < 0 ? index[d] + p->dim[d] : index[d];
            inside &= v >= 0 && v < p->dim[d];
            at = at * p->dim[d] + (inside ? (ptrdiff_t)v : 0);
        }
        for (j = 0; j < p->inner && inside; j++)
            y[at * p->inner + j] = qk_scatter_one_$t(y[at * p->inner + j], x[j], p->reduction);
    }
}
