//! kernel prelu_f32
//! also f64
//! uses walk row_at
// y = a < 0 ? a * b : a (ONNX PRelu); y is contiguous of shape
// dim[0..rank), as and bs are the strides of a and b in elements, 0 where they are broadcast.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
} qk_prelu_f32_params;

static void $NAME(const qk_prelu_f32_params *p, const float *a, const float *b, float *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, i;
    ptrdiff_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    ptrdiff_t rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++, y += inner) {
        const float *u = a + qk_row_at(index, p->as, last), *v = b + qk_row_at(index, p->bs, last);
        for (i = 0; i < inner; i++, u += sa, v += sb)
            y[i] = *u < 0.0f ? *u * *v : *u;
        qk_next_row(index, p->dim, last);
    }
}
