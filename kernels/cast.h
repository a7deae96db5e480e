//! kernel cast
//! template X=s8,u8,s16,u16,s32,u32,s64,u64,f32,f64 Y=s8,u8,s16,u16,s32,u32,s64,u64,f32,f64
// y = x in another type (ONNX Cast): integers modulo the range of Y, floats cut off towards 0 and held
// within 64 bits first (within int64's range below 0), NaN as 0; between floats rounded.
typedef struct {
    int64_t n;
} qk_cast_params;

static void $NAME(const qk_cast_params *p, const $X *x, $Y *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        //! if X=f32,f64
        //! if Y=f32,f64
        y[i] = ($Y)x[i];
        //! else
        $X v = x[i] != x[i] ? 0 : x[i];
        v = v < -($X)9223372036854775808.0 ? -($X)9223372036854775808.0 : v;
        if (v < ($X)9223372036854775808.0)
            y[i] = ($Y)(int64_t)v;
        else
            //! if Y=s64
            y[i] = $YMAX;
            //! else
            //! if Y=u64
            y[i] = v < ($X)18446744073709551616.0 ? ($Y)v : $YMAX;
            //! else
            y[i] = 0; /* are its lowest bits */
            //! end
            //! end
        //! end
        //! else
        y[i] = ($Y)x[i];
        //! end
    }
}
