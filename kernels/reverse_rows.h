//! kernel reverse_rows
//! template T=x8,x16,x32,x64
// y = x with the first lens[b] of the n steps of each sequence b in reverse order (ONNX ReverseSequence):
// slices of `inner` elements at b * bs + step * ns. Lengths outside of 0..n are taken as the nearest.
typedef struct {
    int32_t batch, n, inner, bs, ns;
} qk_reverse_rows_params;

static void $NAME(const qk_reverse_rows_params *p, const $T *x, const int64_t *lens, $T *y) {
    int32_t b, t;
    for (b = 0; b < p->batch && p->inner > 0; b++) {
        int32_t len = (int32_t)(lens[b] < 0 ? 0 : lens[b] > p->n ? p->n : lens[b]);
        for (t = 0; t < p->n; t++) {
            ptrdiff_t from = t < len ? len - 1 - t : t, at = (ptrdiff_t)b * p->bs;
            memcpy(y + at + (ptrdiff_t)t * p->ns, x + at + from * p->ns, (size_t)p->inner * sizeof *y);
        }
    }
}
