//! kernel clamp
//! template T=s8,u8,s16,u16,s32
// y = min(max(x, lo), hi): Relu and Clip on integers of unchanged scale. y may be x.
typedef struct {
    int64_t n;
    int32_t lo, hi;
} qk_clamp_params;

static void $NAME(const qk_clamp_params *p, const $T *x, $T *y) {
    int64_t n = p->n, i;
    int32_t lo = p->lo, hi = p->hi;
    for (i = 0; i < n; i++)
        y[i] = ($T)(x[i] < lo ? lo : x[i] > hi ? hi : x[i]);
}
