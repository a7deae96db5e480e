//! kernel multithreshold_f32
// y = table[how many of the n thresholds of its channel x reaches], on [outer, channels, inner] with
// thresholds [channels, n] (QONNX MultiThreshold). NaN reaches none. y may be x.
typedef struct {
    int32_t outer, channels, inner, n;
} qk_multithreshold_f32_params;

static void $NAME(const qk_multithreshold_f32_params *p, const float *x, const float *thresholds,
                  const float *table, float *y) {
    int32_t o, c, i, k, n = p->n;
    for (o = 0; o < p->outer; o++)
        for (c = 0; c < p->channels; c++) {
            const float *t = thresholds + (ptrdiff_t)c * n;
            for (i = 0; i < p->inner; i++) {
                int32_t count = 0;
                for (k = 0; k < n; k++)
                    count += *x >= t[k];
                *y++ = table[count];
                x++;
            }
        }
}
