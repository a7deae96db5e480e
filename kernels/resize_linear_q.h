//! kernel resize_linear_q
//! template T=s8,u8,s16,u16
// resize_linear_f32 on integers whose parameters stay the same: weights are in 1/2^20, the sum is
// rounded half to even. Within 2^-19 of the type's range of the exact value before that.
typedef struct {
    int32_t outer, ih, iw, inner, oh, ow;
} qk_resize_linear_q_params;

static $T $NAME_round(int64_t sum) { /* sum / 2^40, half to even */
    int64_t whole = sum >> 40, rest = sum - whole * 1099511627776;
    return ($T)(whole + (rest > 549755813888 || (rest == 549755813888 && whole % 2 != 0)));
}

static void $NAME(const qk_resize_linear_q_params *p, const $T *x, const int32_t *rows,
                  const int32_t *down, const int32_t *columns, const int32_t *right, $T *y) {
    int32_t o, r, c, i, inner = p->inner;
    for (o = 0; o < p->outer; o++, x += (ptrdiff_t)p->ih * p->iw * inner)
        for (r = 0; r < p->oh; r++) {
            const $T *top = x + (ptrdiff_t)rows[r] * p->iw * inner;
            const $T *bottom = x + (ptrdiff_t)rows[p->oh + r] * p->iw * inner;
            int64_t b = down[r], t = 1048576 - b;
            for (c = 0; c < p->ow; c++, y += inner) {
                ptrdiff_t lc = (ptrdiff_t)columns[c] * inner;
                ptrdiff_t rc = (ptrdiff_t)columns[p->ow + c] * inner;
                int64_t rw = right[c], lw = 1048576 - rw;
                for (i = 0; i < inner; i++)
                    y[i] = $NAME_round(t * (lw * top[lc + i] + rw * top[rc + i]) +
                                       b * (lw * bottom[lc + i] + rw * bottom[rc + i]));
            }
        }
}
