//! kernel addend_q
//! template T=s8,u8,s16,u16
//! uses walk row_at
// sum = (x - xz) * m, or that much more than before where `more`: one operand of Sum and Mean. x broadcasts
// to dim[0..rank) with strides xs, sum is contiguous; round_sum_q makes the result of it (requant_terms
// prepares m).
typedef struct {
    int32_t rank, dim[8], xs[8];
    int32_t xz, more;
    int64_t m;
} qk_addend_q_params;

static void $NAME(const qk_addend_q_params *p, const $T *x, int64_t *sum) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, i;
    ptrdiff_t step = p->rank ? p->xs[last] : 0, rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++) {
        const $T *u = x + qk_row_at(index, p->xs, last);
        for (i = 0; i < inner; i++, sum++)
            *sum = (p->more ? *sum : 0) + ((int64_t)u[i * step] - p->xz) * p->m;
        qk_next_row(index, p->dim, last);
    }
}
