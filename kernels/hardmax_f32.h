//! kernel hardmax_f32
//! also f64
// y = 1 for the first largest along the middle one of [outer, n, inner], else 0 (ONNX Hardmax).
typedef struct {
    int32_t outer, n, inner;
} qk_hardmax_f32_params;

static void $NAME(const qk_hardmax_f32_params *p, const float *x, float *y) {
    int32_t o, i, k;
    for (o = 0; o < p->outer; o++)
        for (i = 0; i < p->inner && p->n > 0; i++) {
            ptrdiff_t at = (ptrdiff_t)o * p->n * p->inner + i, step = p->inner;
            int32_t best = 0;
            for (k = 1; k < p->n; k++)
                best = x[at + k * step] > x[at + best * step] ? k : best;
            for (k = 0; k < p->n; k++)
                y[at + k * step] = k == best ? 1.0f : 0.0f;
        }
}
