//! kernel logsoftmax_f32
//! also f64
//! math
// y = x - max - log(sum exp(x - max)) along the middle one of [outer, n, inner] (ONNX LogSoftmax). y may be
// x.
typedef struct {
    int32_t outer, n, inner;
} qk_logsoftmax_f32_params;

static void $NAME(const qk_logsoftmax_f32_params *p, const float *x, float *y) {
    int32_t o, i, k;
    for (o = 0; o < p->outer; o++)
        for (i = 0; i < p->inner && p->n > 0; i++) {
            ptrdiff_t at = (ptrdiff_t)o * p->n * p->inner + i, step = p->inner;
            float max = x[at], sum = 0.0f;
            for (k = 1; k < p->n; k++)
                max = x[at + k * step] > max ? x[at + k * step] : max;
            for (k = 0; k < p->n; k++)
                sum += expf(x[at + k * step] - max);
            sum = logf(sum);
            for (k = 0; k < p->n; k++)
                y[at + k * step] = x[at + k * step] - max - sum;
        }
}
