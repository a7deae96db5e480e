//! kernel copy_nd
//! template T=x8,x16,x32,x64
// dst[dst_offset + i . ds] = src[src_offset + i . ss] for every index i of the box dim[0..rank).
// Strides and offsets count elements and strides may be negative or, in src, 0. Serves Transpose,
// Concat, Expand, Slice, Split and the inside of Pad.
typedef struct {
    int32_t rank, dim[8], ss[8], ds[8];
    int64_t src_offset, dst_offset;
} qk_copy_nd_params;

static void $NAME(const qk_copy_nd_params *p, const $T *src, $T *dst) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, d, i;
    ptrdiff_t s = (ptrdiff_t)p->src_offset, t = (ptrdiff_t)p->dst_offset, rows = 1, row;
    ptrdiff_t ss = p->rank ? p->ss[last] : 0, ds = p->rank ? p->ds[last] : 0;
    for (d = 0; d < last; d++)
        rows *= p->dim[d];
    for (row = 0; row < rows && inner > 0; row++) {
        if (ss == 1 && ds == 1)
            memcpy(dst + t, src + s, (size_t)inner * sizeof *dst);
        else
            for (i = 0; i < inner; i++)
                dst[t + i * ds] = src[s + i * ss];
        for (d = last - 1; d >= 0; d--) {
            s += p->ss[d];
            t += p->ds[d];
            if (++index[d] < p->dim[d])
                break;
            s -= (ptrdiff_t)p->ss[d] * p->dim[d];
            t -= (ptrdiff_t)p->ds[d] * p->dim[d];
            index[d] = 0;
        }
    }
}
