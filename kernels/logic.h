//! kernel logic
//! template T=u8
//! uses walk row_at
// y = bit 2a + b of the table (ONNX And, Or, Xor); y is contiguous of shape
// dim[0..rank), as and bs are the strides of a and b in elements, 0 where they are broadcast.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
    int32_t table;
} qk_logic_params;

static void $NAME(const qk_logic_params *p, const $T *a, const $T *b, $T *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, i;
    ptrdiff_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    ptrdiff_t rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++, y += inner) {
        const $T *u = a + qk_row_at(index, p->as, last), *v = b + qk_row_at(index, p->bs, last);
        for (i = 0; i < inner; i++, u += sa, v += sb)
            y[i] = (uint8_t)(p->table >> (2 * (*u != 0) + (*v != 0)) & 1);
        qk_next_row(index, p->dim, last);
    }
}
