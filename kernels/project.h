//! kernel project
//! template R=s8,u8
//! uses recur_q_$r
// y[part, row, i] = bias[i] + (x[row] - xz) . (w[part, i] - zp[part, i]) * (sx * scale[part, i]) on rows of
// `len` integers; params holds sx and xz, computed at run time. bias may be absent. row holds len numbers.
typedef struct {
    int32_t rows, columns, len, part;
} qk_project_params;

static void $NAME(const qk_project_params *p, const uint8_t *x, const float *params, const $R *w,
                  const float *scale, const int32_t *zp, const float *bias, float *y,
                  int16_t *row) {
    int32_t r, i, xz = (int32_t)params[1];
    w += (ptrdiff_t)p->part * p->columns * p->len;
    scale += (ptrdiff_t)p->part * p->columns;
    zp += (ptrdiff_t)p->part * p->columns;
    y += (ptrdiff_t)p->part * p->rows * p->columns;
    for (r = 0; r < p->rows; r++, x += p->len, y += p->columns) {
        for (i = 0; i < p->len; i++)
            row[i] = (int16_t)(x[i] - xz);
        for (i = 0; i < p->columns; i++)
            y[i] = bias ? bias[i] : 0.0f;
        qk_recur_q_$r(row, w, scale, zp, params[0], p->columns, p->len, y);
    }
}
