//! kernel resize_linear_q
//! template X=s8,u8,s16,u16 Y=s8,u8,s16,u16
//! uses saturate round_scaled
// Linear interpolation as resize_linear_f32, from one grid to another:
// y = saturate(round_half_even(sum (x - xz) * weight * sx / sy) + yz), rounded once. down and right
// are in 1 / 2^rf and 1 / 2^cf, together at most 2^44 (8-bit x: 2^48). sx / sy = n / d * 2^e with
// s = rf + cf - e (requant_scaled prepares them): of these weights and scales the result is exact.
typedef struct {
    int32_t outer, ih, iw, inner, oh, ow;
    int32_t rf, cf, n, d, s;
    int32_t xz, yz, lo, hi;
} qk_resize_linear_q_params;

static void $NAME(const qk_resize_linear_q_params *p, const $X *x, const int32_t *rows,
                  const int32_t *down, const int32_t *columns, const int32_t *right, $Y *y) {
    int32_t o, r, c, i, inner = p->inner, n = p->n, d = p->d, s = p->s;
    int64_t row_one = (int64_t)1 << p->rf, column_one = (int64_t)1 << p->cf;
    int64_t zero = p->xz * row_one * column_one;
    for (o = 0; o < p->outer; o++, x += (ptrdiff_t)p->ih * p->iw * inner)
        for (r = 0; r < p->oh; r++) {
            const $X *top = x + (ptrdiff_t)rows[r] * p->iw * inner;
            const $X *bottom = x + (ptrdiff_t)rows[p->oh + r] * p->iw * inner;
            int64_t b = down[r], t = row_one - b;
            for (c = 0; c < p->ow; c++, y += inner) {
                ptrdiff_t lc = (ptrdiff_t)columns[c] * inner;
                ptrdiff_t rc = (ptrdiff_t)columns[p->ow + c] * inner;
                int64_t rw = right[c], lw = column_one - rw;
                for (i = 0; i < inner; i++) {
                    int64_t sum = t * (lw * top[lc + i] + rw * top[rc + i]) +
                                  b * (lw * bottom[lc + i] + rw * bottom[rc + i]) - zero;
                    y[i] = ($Y)qk_saturate(qk_round_scaled(sum, n, d, s) + p->yz, p->lo, p->hi);
                }
            }
        }
}
