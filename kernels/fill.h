//! kernel fill
//! template T=x8,x16,x32,x64
// dst[0..n) = the low bits of value.
typedef struct {
    int64_t n, value;
} qk_fill_params;

static void $NAME(const qk_fill_params *p, $T *dst) {
    int64_t i;
    for (i = 0; i < p->n; i++)
        dst[i] = ($T)p->value;
}
