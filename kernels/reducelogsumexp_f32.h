//! kernel reducelogsumexp_f32
//! also f64
//! math
//! uses walk row_at
// y = max + log(sum exp(x - max)) over the reduced dimensions of x (ONNX ReduceLogSumExp). Dimensions
// are given with their strides in x, in elements; the kept ones are those of y.
typedef struct {
    int32_t kept, kdim[8], kstride[8];
    int32_t reduced, rdim[8], rstride[8];
} qk_reducelogsumexp_f32_params;

static float $NAME_one(const qk_reducelogsumexp_f32_params *p, const float *x) {
    int32_t last = p->reduced - 1, inner = p->reduced ? p->rdim[last] : 1, i, pass;
    ptrdiff_t rows = qk_rows(p->rdim, last), step = p->reduced ? p->rstride[last] : 0, row;
    float zero = 0.0f, max = -1.0f / zero, sum = 0.0f;
    for (pass = 0; pass < 2; pass++) {
        int32_t index[8] = {0};
        float shift = max - max == 0.0f ? max : 0.0f; /* of infinities there is nothing to take */
        for (row = 0; row < rows; row++) {
            const float *u = x + qk_row_at(index, p->rstride, last);
            for (i = 0; i < inner; i++, u += step) {
                if (pass == 0)
                    max = *u > max ? *u : max;
                else
                    sum += expf(*u - shift);
            }
            qk_next_row(index, p->rdim, last);
        }
    }
    return (max - max == 0.0f ? max : 0.0f) + logf(sum);
}

static void $NAME(const qk_reducelogsumexp_f32_params *p, const float *x, float *y) {
    int32_t index[8] = {0};
    ptrdiff_t n = qk_rows(p->kdim, p->kept), i;
    for (i = 0; i < n; i++) {
        y[i] = $NAME_one(p, x + qk_row_at(index, p->kstride, p->kept));
        qk_next_row(index, p->kdim, p->kept);
    }
}
