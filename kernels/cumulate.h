//! kernel cumulate
//! template T=s32,u32,s64,u64,f32,f64
// y[o, j, i] = the sum, or the product where `product`, of x[o, 0..j, i], without the j-th where
// `exclusive`, from the other end where `reverse` (ONNX CumSum, CumProd). Integers are modulo their range.
typedef struct {
    int32_t outer, n, inner, exclusive, reverse, product;
} qk_cumulate_params;

static void $NAME(const qk_cumulate_params *p, const $T *x, $T *y) {
    ptrdiff_t step = p->inner, o, i;
    int32_t j;
    for (o = 0; o < p->outer; o++)
        for (i = 0; i < p->inner; i++) {
            $T sum = ($T)(p->product != 0);
            for (j = 0; j < p->n; j++) {
                ptrdiff_t at = (o * p->n + (p->reverse ? p->n - 1 - j : j)) * step + i;
                $T v = x[at];
                if (p->exclusive)
                    y[at] = sum;
                //! if T=f32,f64
                sum = p->product ? sum * v : sum + v;
                //! else
                sum = ($T)(p->product ? (uint64_t)sum * (uint64_t)v : (uint64_t)sum + (uint64_t)v);
                //! end
                if (!p->exclusive)
                    y[at] = sum;
            }
        }
}
