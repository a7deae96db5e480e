//! kernel cast
//! template X=s8,u8,s16,u16,s32,u32,s64,f32 Y=s8,u8,s16,u16,s32,u32,s64,f32
// y = x in another type (ONNX Cast): integers modulo the range of Y, floats cut off towards 0 and held
// within +-2^62 first, NaN as 0.
typedef struct {
    int64_t n;
} qk_cast_params;

static void $NAME(const qk_cast_params *p, const $X *x, $Y *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        //! if X=f32
        //! if Y=f32
        y[i] = x[i];
        //! else
        float v = x[i] != x[i] ? 0.0f : x[i];
        v = v > 4611686018427387904.0f ? 4611686018427387904.0f : v;
        v = v < -4611686018427387904.0f ? -4611686018427387904.0f : v;
        y[i] = ($Y)(int64_t)v;
        //! end
        //! else
        y[i] = ($Y)x[i];
        //! end
    }
}
