//! kernel gather_nd
//! template T=x8,x16,x32,x64 I=s32,s64
// y[b, i] = x[b, index[b, i, 0], index[b, i, 1], ...] (ONNX GatherND): slices of `inner` elements of
// x[batch, dim[0], ..., dim[k - 1], inner], n a batch. Negative indices count from the end; those that
// lie outside are taken as the nearest that does not.
typedef struct {
    int32_t batch, n, k, dim[8], inner;
} qk_gather_nd_params;

static void $NAME(const qk_gather_nd_params *p, const $T *x, const $I *index, $T *y) {
    ptrdiff_t whole = p->inner;
    int32_t b, i, d;
    for (d = 0; d < p->k; d++)
        whole *= p->dim[d];
    for (b = 0; b < p->batch && whole > 0; b++, x += whole)
        for (i = 0; i < p->n; i++, index += p->k, y += p->inner) {
            ptrdiff_t at = 0;
            for (d = 0; d < p->k; d++) {
                $I v = index[d] < 0 ? index[d] + p->dim[d] : index[d];
                v = v < 0 ? 0 : v >= p->dim[d] ? p->dim[d] - 1 : v;
                at = at * p->dim[d] + (ptrdiff_t)v;
            }
            memcpy(y, x + at * p->inner, (size_t)p->inner * sizeof *y);
        }
}
