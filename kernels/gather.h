//! kernel gather
//! template T=x8,x16,x32,x64 I=s32,s64
// y[o, k, i] = x[o, index[k], i] (ONNX Gather) on x[outer, length, inner]. Negative indices count
// from the end; those that lie outside are taken as the nearest that does not.
typedef struct {
    int32_t outer, length, inner, n;
} qk_gather_params;

static void $NAME(const qk_gather_params *p, const $T *x, const $I *index, $T *y) {
    int32_t o, k;
    for (o = 0; o < p->outer && p->length > 0; o++, x += (ptrdiff_t)p->length * p->inner)
        for (k = 0; k < p->n; k++, y += p->inner) {
            $I at = index[k] < 0 ? index[k] + p->length : index[k];
            at = at < 0 ? 0 : at >= p->length ? p->length - 1 : at;
            memcpy(y, x + (ptrdiff_t)at * p->inner, (size_t)p->inner * sizeof *y);
        }
}
