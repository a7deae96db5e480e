//! kernel range
//! template T=s16,s32,s64,f32,f64
// y[i] = start + i * delta, two numbers (ONNX Range).
typedef struct {
    int64_t n;
} qk_range_params;

static void $NAME(const qk_range_params *p, const $T *start, const $T *delta, $T *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        //! if T=f32,f64
        y[i] = *start + ($T)i * *delta;
        //! else
        y[i] = ($T)((uint64_t)*start + (uint64_t)i * (uint64_t)*delta);
        //! end
}
