//! chunk row_at
/* Where the row of a broadcast operation with this index begins in an operand of these strides;
 * `last` is the dimension that a row runs along. */
static ptrdiff_t qk_row_at(const int32_t *index, const int32_t *stride, int32_t last) {
    ptrdiff_t at = 0;
    int32_t d;
    for (d = 0; d < last; d++)
        at += (ptrdiff_t)index[d] * stride[d];
    return at;
}
