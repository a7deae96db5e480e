//! kernel lpnorm_f32
//! also f64
//! math
// y = x / |x| along the middle one of [outer, n, inner], with the sum of absolute values as norm or with
// p = 2 the root of the sum of squares; where that is 0 it stays 0 (ONNX LpNormalization).
typedef struct {
    int32_t outer, n, inner, p;
} qk_lpnorm_f32_params;

static void $NAME(const qk_lpnorm_f32_params *p, const float *x, float *y) {
    int32_t o, i, k;
    for (o = 0; o < p->outer; o++)
        for (i = 0; i < p->inner; i++) {
            ptrdiff_t at = (ptrdiff_t)o * p->n * p->inner + i, step = p->inner;
            float sum = 0.0f;
            for (k = 0; k < p->n; k++)
                sum += p->p == 2 ? x[at + k * step] * x[at + k * step] : fabsf(x[at + k * step]);
            sum = p->p == 2 ? sqrtf(sum) : sum;
            for (k = 0; k < p->n; k++)
                y[at + k * step] = sum == 0.0f ? 0.0f : x[at + k * step] / sum;
        }
}
