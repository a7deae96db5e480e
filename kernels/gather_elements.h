//! kernel gather_elements
//! template T=x8,x16,x32,x64 I=s32,s64
//! uses walk row_at
// y[i] = x[i with index[i] on one axis] (ONNX GatherElements); index and y are contiguous of shape
// dim[0..rank), xs are the strides of x, 0 on the axis, where they are `step` and its length `length`.
// Negative indices count from the end; those that lie outside are taken as the nearest that does not.
typedef struct {
    int32_t rank, dim[8], xs[8];
    int32_t length, step;
} qk_gather_elements_params;

static void $NAME(const qk_gather_elements_params *p, const $T *x, const $I *index, $T *y) {
    int32_t at[8] = {0};
    ptrdiff_t n = qk_rows(p->dim, p->rank), i;
    for (i = 0; i < n && p->length > 0; i++) {
        $I k = index[i] < 0 ? index[i] + p->length : index[i];
        k = k < 0 ? 0 : k >= p->length ? p->length - 1 : k;
        y[i] = x[qk_row_at(at, p->xs, p->rank) + (ptrdiff_t)k * p->step];
        qk_next_row(at, p->dim, p->rank);
    }
}
