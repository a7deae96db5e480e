//! kernel lrn_f32
//! math
// y = x / (bias + alpha / size * sum of squares over `size` channels around)^beta, on [n, c, inner]
// (ONNX LRN).
// Works front to back: y may lie over x.
typedef struct {
    int32_t n, c, inner, size;
    float alpha, beta, bias;
} qk_lrn_f32_params;

static void $NAME(const qk_lrn_f32_params *p, const float *x, float *y) {
    int32_t b, c, i, k;
    for (b = 0; b < p->n; b++)
        for (c = 0; c < p->c; c++) {
            int32_t first = c - (p->size - 1) / 2, end = first + p->size;
            ptrdiff_t at = ((ptrdiff_t)b * p->c + c) * p->inner;
            first = first < 0 ? 0 : first;
            end = end > p->c ? p->c : end;
            for (i = 0; i < p->inner; i++) {
                float sum = 0.0f;
                for (k = first; k < end; k++) {
                    float v = x[((ptrdiff_t)b * p->c + k) * p->inner + i];
                    sum += v * v;
                }
                y[at + i] = x[at + i] / powf(p->bias + p->alpha / (float)p->size * sum, p->beta);
            }
        }
}
