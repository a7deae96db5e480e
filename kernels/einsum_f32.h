//! kernel einsum_f32
//! also f64
//! uses walk row_at
// y[kept] = sum over the reduced indices of a[...] * b[...] (ONNX Einsum of one or two operands; b may be
// NULL): dimensions with their strides in a and b, 0 where they do not occur. The kept ones are those of y.
// Rounding errors are carried along (Kahan).
typedef struct {
    int32_t kept, kdim[8], ka[8], kb[8];
    int32_t reduced, rdim[8], ra[8], rb[8];
} qk_einsum_f32_params;

static float $NAME_one(const qk_einsum_f32_params *p, const float *a, const float *b) {
    int32_t index[8] = {0}, last = p->reduced - 1, inner = p->reduced ? p->rdim[last] : 1, i;
    ptrdiff_t rows = qk_rows(p->rdim, last), row;
    ptrdiff_t sa = p->reduced ? p->ra[last] : 0, sb = p->reduced ? p->rb[last] : 0;
    float sum = 0.0f, lost = 0.0f;
    for (row = 0; row < rows; row++) {
        const float *u = a + qk_row_at(index, p->ra, last);
        const float *v = b ? b + qk_row_at(index, p->rb, last) : b;
        for (i = 0; i < inner; i++, u += sa, v = v ? v + sb : v) {
            float add = (v ? *u * *v : *u) - lost, next = sum + add;
            lost = (next - sum) - add;
            lost = lost != lost ? 0.0f : lost; /* infinities have no rounding error */
            sum = next;
        }
        qk_next_row(index, p->rdim, last);
    }
    return sum;
}

static void $NAME(const qk_einsum_f32_params *p, const float *a, const float *b, float *y) {
    int32_t index[8] = {0};
    ptrdiff_t n = qk_rows(p->kdim, p->kept), i;
    for (i = 0; i < n; i++) {
        ptrdiff_t at = qk_row_at(index, p->ka, p->kept);
        y[i] = $NAME_one(p, a + at, b ? b + qk_row_at(index, p->kb, p->kept) : b);
        qk_next_row(index, p->kdim, p->kept);
    }
}
