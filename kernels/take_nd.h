//! kernel take_nd
//! template T=x8,x16,x32,x64
//! uses walk
// y[i] = x[sum over d of the table's entry for i[d]], y contiguous of shape dim[0..rank): for each
// dimension, one after the other, the table holds where each of its indices stands in x, in elements.
// Serves Tile, Resize to the nearest, and Pad with what is there.
typedef struct {
    int32_t rank, dim[8];
} qk_take_nd_params;

static void $NAME(const qk_take_nd_params *p, const $T *x, const int32_t *table, $T *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, d, i;
    ptrdiff_t rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++, y += inner) {
        const int32_t *entry = table;
        const $T *from = x;
        for (d = 0; d < last; entry += p->dim[d], d++)
            from += entry[index[d]];
        for (i = 0; i < inner; i++)
            y[i] = from[p->rank ? entry[i] : 0];
        qk_next_row(index, p->dim, last);
    }
}
