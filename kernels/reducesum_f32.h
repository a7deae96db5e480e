//! kernel reducesum_f32
//! also f64
//! math
//! uses walk row_at
// y = sum / divisor over the reduced dimensions of x, each number as it is (what = 0), its absolute
// value (1) or its square (2): ONNX ReduceSum, ReduceMean, ReduceL1, ReduceSumSquare. Dimensions are
// given with their strides in x, in elements; the kept ones are those of y. Rounding errors are
// carried along (Kahan).
typedef struct {
    int32_t kept, kdim[8], kstride[8];
    int32_t reduced, rdim[8], rstride[8];
    int32_t what;
    float divisor;
} qk_reducesum_f32_params;

static float $NAME_one(const qk_reducesum_f32_params *p, const float *x) {
    int32_t index[8] = {0}, last = p->reduced - 1, inner = p->reduced ? p->rdim[last] : 1, i;
    ptrdiff_t rows = qk_rows(p->rdim, last), step = p->reduced ? p->rstride[last] : 0, row;
    float sum = 0.0f, lost = 0.0f;
    for (row = 0; row < rows; row++) {
        const float *u = x + qk_row_at(index, p->rstride, last);
        for (i = 0; i < inner; i++, u += step) {
            float v = p->what == 2 ? *u * *u : p->what == 1 ? fabsf(*u) : *u;
            float add = v - lost, next = sum + add;
            lost = (next - sum) - add;
            lost = lost != lost ? 0.0f : lost; /* infinities have no rounding error */
            sum = next;
        }
        qk_next_row(index, p->rdim, last);
    }
    return sum;
}

static void $NAME(const qk_reducesum_f32_params *p, const float *x, float *y) {
    int32_t index[8] = {0};
    ptrdiff_t n = qk_rows(p->kdim, p->kept), i;
    for (i = 0; i < n; i++) {
        y[i] = $NAME_one(p, x + qk_row_at(index, p->kstride, p->kept)) / p->divisor;
        qk_next_row(index, p->kdim, p->kept);
    }
}
