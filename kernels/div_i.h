//! kernel div_i
//! template T=s8,u8,s16,u16,s32,u32,s64
//! uses walk row_at
// y = a / b of integers, towards 0 (ONNX Div), and 0 for b = 0; y is contiguous of shape dim[0..rank), as and
// bs are the strides of a and b in elements, 0 where they are broadcast.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
} qk_div_i_params;

/* The lowest number has no negative: modulo the range it is its own. */
static $T $NAME_one($T u, $T v) {
    //! if T=s8,s16,s32,s64
    if (v == -1)
        return ($T)(0 - (uint64_t)u);
    //! end
    return ($T)(u / v);
}

static void $NAME(const qk_div_i_params *p, const $T *a, const $T *b, $T *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, i;
    ptrdiff_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    ptrdiff_t rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++, y += inner) {
        const $T *u = a + qk_row_at(index, p->as, last), *v = b + qk_row_at(index, p->bs, last);
        for (i = 0; i < inner; i++, u += sa, v += sb)
            y[i] = *v == 0 ? 0 : $NAME_one(*u, *v);
        qk_next_row(index, p->dim, last);
    }
}
