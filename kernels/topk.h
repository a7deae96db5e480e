//! kernel topk
//! template T=s8,u8,s16,u16,s32,u32,s64,u64,f32,f64
// y[o, 0..k, i] = the k largest (with `least` the smallest) of x[o, 0..n, i] in order, `at` where they
// stand in x; of equal ones those that come first (ONNX TopK).
typedef struct {
    int32_t outer, n, inner, k, least;
} qk_topk_params;

static void $NAME(const qk_topk_params *p, const $T *x, $T *y, int64_t *at) {
    int32_t o, i, j, s, used;
    ptrdiff_t step = p->inner;
    for (o = 0; o < p->outer; o++, x += step * p->n, y += step * p->k, at += step * p->k)
        for (i = 0; i < p->inner; i++)
            for (j = 0, used = 0; j < p->n && p->k > 0; j++) {
                $T v = x[i + j * step];
                if (used == p->k && !(p->least ? v < y[i + (used - 1) * step] : v > y[i + (used - 1) * step]))
                    continue;
                used += used < p->k;
                for (s = used - 1; s > 0; s--) {
                    $T before = y[i + (s - 1) * step];
                    if (!(p->least ? v < before : v > before))
                        break;
                    y[i + s * step] = before;
                    at[i + s * step] = at[i + (s - 1) * step];
                }
                y[i + s * step] = v;
                at[i + s * step] = j;
            }
}
