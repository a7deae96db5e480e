//! kernel compare
//! template T=s8,u8,s16,u16,s32,u32,s64,u64,f32,f64
//! uses walk row_at
// y = less, equal or greater, whichever relation a has to b, and 0 for NaN (ONNX Less, Equal...); y is contiguous of shape
// dim[0..rank), as and bs are the strides of a and b in elements, 0 where they are broadcast.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
    int32_t less, equal, greater;
} qk_compare_params;

static void $NAME(const qk_compare_params *p, const $T *a, const $T *b, uint8_t *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, i;
    ptrdiff_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    ptrdiff_t rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++, y += inner) {
        const $T *u = a + qk_row_at(index, p->as, last), *v = b + qk_row_at(index, p->bs, last);
        for (i = 0; i < inner; i++, u += sa, v += sb)
            y[i] = (uint8_t)(*u < *v ? p->less : *u == *v ? p->equal : *u > *v ? p->greater : 0);
        qk_next_row(index, p->dim, last);
    }
}
