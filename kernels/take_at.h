//! kernel take_at
//! template T=x8,x16,x32,x64
// y[outer, inner] = x[outer, at, inner] of x[outer, axis, inner], from the end where `reverse` (what
// Scan gives its body each time). `at` is one number, within the axis.
typedef struct {
    int32_t outer, axis, inner, reverse;
} qk_take_at_params;

static void $NAME(const qk_take_at_params *p, const $T *x, const int64_t *at, $T *y) {
    ptrdiff_t inner = p->inner, place = (ptrdiff_t)(p->reverse ? p->axis - 1 - *at : *at);
    int32_t o;
    for (o = 0; o < p->outer && inner > 0; o++)
        memcpy(y + o * inner, x + ((ptrdiff_t)o * p->axis + place) * inner,
               (size_t)inner * sizeof *y);
}
