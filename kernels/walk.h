//! chunk walk
/* Rows of a broadcast operation: the index of the next one, and how many there are. `last` is the
 * dimension that a row runs along. */
static void qk_next_row(int32_t *index, const int32_t *dim, int32_t last) {
    int32_t d;
    for (d = last - 1; d >= 0; d--) {
        if (++index[d] < dim[d])
            return;
        index[d] = 0;
    }
}

static ptrdiff_t qk_rows(const int32_t *dim, int32_t last) {
    ptrdiff_t rows = 1;
    int32_t d;
    for (d = 0; d < last; d++)
        rows *= dim[d];
    return rows;
}
