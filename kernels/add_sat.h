//! kernel add_sat
//! uses walk row_at
// y = a + b of int32, saturating: accumulators and the biases that are added to them. Shapes and
// strides as in add_i; y may be a or b where that has y's shape.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
} qk_add_sat_params;

static void $NAME(const qk_add_sat_params *p, const int32_t *a, const int32_t *b, int32_t *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, i;
    ptrdiff_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    ptrdiff_t rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++, y += inner) {
        const int32_t *u = a + qk_row_at(index, p->as, last), *v = b + qk_row_at(index, p->bs, last);
        for (i = 0; i < inner; i++, u += sa, v += sb) {
            int64_t sum = (int64_t)*u + *v;
            y[i] = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t)sum;
        }
        qk_next_row(index, p->dim, last);
    }
}
