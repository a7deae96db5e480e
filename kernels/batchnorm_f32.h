//! kernel batchnorm_f32
//! math
// y = (x - mean[c]) / sqrt(var[c] + eps) * scale[c] + bias[c] on [n, c, inner] (ONNX
// BatchNormalization, inference). y may be x.
typedef struct {
    int32_t n, c, inner;
    float eps;
} qk_batchnorm_f32_params;

static void $NAME(const qk_batchnorm_f32_params *p, const float *x, const float *scale,
                  const float *bias, const float *mean, const float *var, float *y) {
    int32_t inner = p->inner, b, c, i;
    for (b = 0; b < p->n; b++)
        for (c = 0; c < p->c; c++) {
            float factor = scale[c] / sqrtf(var[c] + p->eps), m = mean[c], add = bias[c];
            for (i = 0; i < inner; i++)
                y[i] = (x[i] - m) * factor + add;
            x += inner;
            y += inner;
        }
}
