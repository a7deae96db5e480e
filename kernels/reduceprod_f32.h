//! kernel reduceprod_f32
//! also f64
//! uses walk row_at
// y = the product over the reduced dimensions of x (ONNX ReduceProd). Dimensions are given with their
// strides in x, in elements; the kept ones are those of y.
typedef struct {
    int32_t kept, kdim[8], kstride[8];
    int32_t reduced, rdim[8], rstride[8];
} qk_reduceprod_f32_params;

static float $NAME_one(const qk_reduceprod_f32_params *p, const float *x) {
    int32_t index[8] = {0}, last = p->reduced - 1, inner = p->reduced ? p->rdim[last] : 1, i;
    ptrdiff_t rows = qk_rows(p->rdim, last), step = p->reduced ? p->rstride[last] : 0, row;
    float product = 1.0f;
    for (row = 0; row < rows; row++) {
        const float *u = x + qk_row_at(index, p->rstride, last);
        for (i = 0; i < inner; i++, u += step)
            product *= *u;
        qk_next_row(index, p->rdim, last);
    }
    return product;
}

static void $NAME(const qk_reduceprod_f32_params *p, const float *x, float *y) {
    int32_t index[8] = {0};
    ptrdiff_t n = qk_rows(p->kdim, p->kept), i;
    for (i = 0; i < n; i++) {
        y[i] = $NAME_one(p, x + qk_row_at(index, p->kstride, p->kept));
        qk_next_row(index, p->kdim, p->kept);
    }
}
