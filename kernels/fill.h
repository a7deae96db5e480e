//! kernel fill
//! template T=x8,x16,x32,x64
// dst[0..n) = the low bits of value.
typedef struct {
    int64_t n, value;
} qk_fill_params;

static void $NAME(const qk_fill_params *p, $T *dst) {
    int64_t n = p->n, i;
    $T v = ($T)p->value;
    for (i = 0; i < n; i++)
        dst[i] = v;
}
