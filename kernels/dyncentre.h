//! kernel dyncentre
// y = x - params[1], the zero point: what the products take.
typedef struct {
    int64_t n;
} qk_dyncentre_params;

static void $NAME(const qk_dyncentre_params *p, const uint8_t *x, const float *params, int16_t *y) {
    int32_t zp = (int32_t)params[1];
    int64_t i;
    for (i = 0; i < p->n; i++)
        y[i] = (int16_t)(x[i] - zp);
}
