//! kernel hardmax
//! template X=s8,u8,s16,u16 Y=s8,u8,s16,u16
// y = `on` for the first largest along the middle one of [outer, n, inner], else `off` (ONNX Hardmax
// on integers of one positive scale).
typedef struct {
    int32_t outer, n, inner, on, off;
} qk_hardmax_params;

static void $NAME(const qk_hardmax_params *p, const $X *x, $Y *y) {
    int32_t o, i, k;
    for (o = 0; o < p->outer; o++)
        for (i = 0; i < p->inner && p->n > 0; i++) {
            ptrdiff_t at = (ptrdiff_t)o * p->n * p->inner + i, step = p->inner;
            int32_t best = 0;
            for (k = 1; k < p->n; k++)
                best = x[at + k * step] > x[at + best * step] ? k : best;
            for (k = 0; k < p->n; k++)
                y[at + k * step] = ($Y)(k == best ? p->on : p->off);
        }
}
