//! kernel truth
//! template T=s8,u8,s16,u16,s32,u32,s64,u64,f32,f64
// y = x != 0 (ONNX Cast to bool).
typedef struct {
    int64_t n;
} qk_truth_params;

static void $NAME(const qk_truth_params *p, const $T *x, uint8_t *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        y[i] = x[i] != 0;
}
