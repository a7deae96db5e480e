//! kernel reducemax
//! template T=s8,u8,s16,u16,s32,s64,f32
//! also f64
//! uses walk row_at
// y = the largest over the reduced dimensions of x, NaN where there is one: ONNX ReduceMax. Dimensions
// are given with their strides in x, in elements; the kept ones are those of y.
typedef struct {
    int32_t kept, kdim[8], kstride[8];
    int32_t reduced, rdim[8], rstride[8];
} qk_reducemax_params;

static $T $NAME_one(const qk_reducemax_params *p, const $T *x) {
    int32_t index[8] = {0}, last = p->reduced - 1, inner = p->reduced ? p->rdim[last] : 1, i;
    ptrdiff_t rows = qk_rows(p->rdim, last), step = p->reduced ? p->rstride[last] : 0, row;
    //! if T=f32
    float zero = 0.0f, found = -1.0f / zero;
    //! else
    $T found = $TMIN;
    //! end
    for (row = 0; row < rows; row++) {
        const $T *u = x + qk_row_at(index, p->rstride, last);
        for (i = 0; i < inner; i++, u += step)
            //! if T=f32
            found = *u > found || *u != *u ? *u : found;
            //! else
            found = *u > found ? *u : found;
            //! end
        qk_next_row(index, p->rdim, last);
    }
    return found;
}

static void $NAME(const qk_reducemax_params *p, const $T *x, $T *y) {
    int32_t index[8] = {0};
    ptrdiff_t n = qk_rows(p->kdim, p->kept), i;
    for (i = 0; i < n; i++) {
        y[i] = $NAME_one(p, x + qk_row_at(index, p->kstride, p->kept));
        qk_next_row(index, p->kdim, p->kept);
    }
}
