//! kernel mul_f32
//! also f64
// y = a * b elementwise (ONNX Mul); y is contiguous of shape dim[0..rank), as and bs are the
// strides of a and b in elements, 0 where they are broadcast. y may be a or b when that is
// contiguous too.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
} qk_mul_f32_params;

static void $NAME(const qk_mul_f32_params *p, const float *a, const float *b, float *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, d, i;
    int32_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    ptrdiff_t ia = 0, ib = 0, rows = 1, row;
    for (d = 0; d < last; d++)
        rows *= p->dim[d];
    for (row = 0; row < rows; row++) {
        if (sa == 1 && sb == 1)
            for (i = 0; i < inner; i++)
                y[i] = a[ia + i] * b[ib + i];
        else if (sa == 1 && sb == 0)
            for (i = 0; i < inner; i++)
                y[i] = a[ia + i] * b[ib];
        else if (sa == 0 && sb == 1)
            for (i = 0; i < inner; i++)
                y[i] = a[ia] * b[ib + i];
        else
            for (i = 0; i < inner; i++)
                y[i] = a[ia + (ptrdiff_t)i * sa] * b[ib + (ptrdiff_t)i * sb];
        y += inner;
        for (d = last - 1; d >= 0; d--) {
            ia += p->as[d];
            ib += p->bs[d];
            if (++index[d] < p->dim[d])
                break;
            ia -= (ptrdiff_t)p->as[d] * p->dim[d];
            ib -= (ptrdiff_t)p->bs[d] * p->dim[d];
            index[d] = 0;
        }
    }
}
