//! kernel where
//! template T=x8,x16,x32,x64
//! uses walk row_at
// y = c ? a : b (ONNX Where); y is contiguous of shape dim[0..rank), cs, as and bs are the strides of
// the operands in elements, 0 where they are broadcast.
typedef struct {
    int32_t rank, dim[8], cs[8], as[8], bs[8];
} qk_where_params;

static void $NAME(const qk_where_params *p, const uint8_t *c, const $T *a, const $T *b, $T *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, i;
    ptrdiff_t sc = p->rank ? p->cs[last] : 0;
    ptrdiff_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    ptrdiff_t rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++, y += inner) {
        const uint8_t *t = c + qk_row_at(index, p->cs, last);
        const $T *u = a + qk_row_at(index, p->as, last), *v = b + qk_row_at(index, p->bs, last);
        for (i = 0; i < inner; i++, t += sc, u += sa, v += sb)
            y[i] = *t ? *u : *v;
        qk_next_row(index, p->dim, last);
    }
}
