//! kernel argmax
//! template T=s8,u8,s16,u16,s32,s64,f32
// y[o, i] = the index k of the largest of x[o, k, i], of the smallest with `least`; of equal ones the
// first, or the last with `last` (ONNX ArgMax, ArgMin).
typedef struct {
    int32_t outer, n, inner, least, last;
} qk_argmax_params;

static void $NAME(const qk_argmax_params *p, const $T *x, int64_t *y) {
    int32_t o, i, k;
    for (o = 0; o < p->outer; o++, x += (ptrdiff_t)p->n * p->inner)
        for (i = 0; i < p->inner; i++) {
            int32_t at = 0;
            $T best = x[i];
            for (k = 1; k < p->n; k++) {
                $T v = x[(ptrdiff_t)k * p->inner + i];
                if ((p->least ? v < best : v > best) || (p->last && v == best)) {
                    best = v;
                    at = k;
                }
            }
            *y++ = at;
        }
}
