//! kernel put_at
//! template T=x8,x16,x32,x64
// y[outer, at, inner] of y[outer, axis, inner] = x[outer, inner], from the end where `reverse` (what
// the body of Loop or Scan yields each time). `at` is one number, within the axis.
typedef struct {
    int32_t outer, axis, inner, reverse;
} qk_put_at_params;

static void $NAME(const qk_put_at_params *p, const $T *x, const int64_t *at, $T *y) {
    ptrdiff_t inner = p->inner, place = (ptrdiff_t)(p->reverse ? p->axis - 1 - *at : *at);
    int32_t o;
    for (o = 0; o < p->outer && inner > 0; o++)
        memcpy(y + ((ptrdiff_t)o * p->axis + place) * inner, x + o * inner,
               (size_t)inner * sizeof *y);
}
