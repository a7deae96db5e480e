//! chunk depthwise_float
//! template V=floats,floats4
//! uses floats floats4
/* A vector of channels at up to 8 positions, `step` elements apart: y[r * ldy + i] = bias[i] + sum
 * over the taps [rows][columns] of x[r * step + row * down + column * across + i] times the weight,
 * w[row * below + column * ldy + i]. */
#if defined(QK_FLOATS)
typedef struct {
    int32_t rows, columns;
    ptrdiff_t step, down, across, below, ldy;
} qk_taps$v;

/* Compilers make code of its own for each constant `count`, with the sums in registers. */
__attribute__((always_inline)) static inline void
qk_tap_sums$v(const qk_taps$v *t, const float *x, const float *w, const float *bias,
               int32_t count, float *y) {
    qk$v sum[8], v;
    int32_t i, j, r;
#pragma GCC unroll 8
    for (r = 0; r < count; r++)
        sum[r] = qk_load$v(bias);
    for (i = 0; i < t->rows; i++, x += t->down, w += t->below)
        for (j = 0; j < t->columns; j++) {
            const float *u = x + j * t->across;
            v = qk_load$v(w + j * t->ldy);
#pragma GCC unroll 8
            for (r = 0; r < count; r++)
                sum[r] += qk_load$v(u + r * t->step) * v;
        }
#pragma GCC unroll 8
    for (r = 0; r < count; r++)
        qk_store$v(y + r * t->ldy, sum[r]);
}

static void qk_tap_tile$v(const qk_taps$v *t, const float *x, const float *w, const float *bias,
                           int32_t count, float *y) {
    if (count == 8)
        qk_tap_sums$v(t, x, w, bias, 8, y);
    else if (count == 4)
        qk_tap_sums$v(t, x, w, bias, 4, y);
    else if (count == 2)
        qk_tap_sums$v(t, x, w, bias, 2, y);
    else
        qk_tap_sums$v(t, x, w, bias, 1, y);
}
#endif
