//! kernel resize_taps_f32
//! also f64
// One axis of ONNX Resize: y[o][i][j] = sum over k < taps of w[i][k] * x[o][at[i][k]][j], or
// `outside` where at[i][0] is negative.
typedef struct {
    int32_t outer, in, out, inner, taps; /* x [outer, in, inner], y [outer, out, inner] */
    float outside;
} qk_resize_taps_f32_params;

static void $NAME(const qk_resize_taps_f32_params *p, const float *x, const int32_t *at,
                  const float *w, float *y) {
    int32_t o, i, j, k;
    for (o = 0; o < p->outer; o++, x += (ptrdiff_t)p->in * p->inner)
        for (i = 0; i < p->out; i++, y += p->inner) {
            const int32_t *from = at + (ptrdiff_t)i * p->taps;
            const float *by = w + (ptrdiff_t)i * p->taps;
            for (j = 0; j < p->inner; j++)
                y[j] = from[0] < 0 ? p->outside : 0.0f;
            for (k = 0; k < p->taps && from[0] >= 0; k++) {
                const float *row = x + (ptrdiff_t)from[k] * p->inner;
                for (j = 0; j < p->inner; j++)
                    y[j] += by[k] * row[j];
            }
        }
}
