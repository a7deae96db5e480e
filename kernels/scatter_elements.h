//! kernel scatter_elements
//! template T=s8,u8,s16,u16,s32,u32,s64,u64,f32,f64 I=s32,s64
//! uses walk row_at scatter_one_$t
// y[i with index[i] on one axis] becomes x[i] (ONNX ScatterElements), or with `reduction` their sum (1),
// product (2), the larger (3) or smaller one (4); x and index are contiguous of shape dim[0..rank), ys
// are the strides of y, 0 on the axis, where they are `step` and its length `length`. Negative indices
// count from the end; those that lie outside do nothing.
typedef struct {
    int32_t rank, dim[8], ys[8];
    int32_t length, step, reduction;
} qk_scatter_elements_params;

static void $NAME(const qk_scatter_elements_params *p, const $T *x, const $I *index, $T *y) {
    int32_t at[8] = {0};
    ptrdiff_t n = qk_rows(p->dim, p->rank), i;
    for (i = 0; i < n; i++) {
        $I k = index[i] < 0 ? index[i] + p->length : index[i];
        if (k >= 0 && k < p->length) {
            $T *to = y + qk_row_at(at, p->ys, p->rank) + (ptrdiff_t)k * p->step;
            *to = qk_scatter_one_$t(*to, x[i], p->reduction);
        }
        qk_next_row(at, p->dim, p->rank);
    }
}
