//! kernel globalavgpool_q
//! template T=s8,u8,s16,u16 R=exact,single,double
//! skip R!=exact T!=s8,u8
//! uses saturate requant$r
// y[o] = saturate(round_half_even(sum over inner of (x - xz) * m) + yz), with m = c * 2^k =
// float32(sx / float32(sy * inner)) applied as in requant: ONNX Runtime's QLinearGlobalAveragePool.
typedef struct {
    int32_t outer, inner, xz, yz, lo, hi, c, k;
} qk_globalavgpool_q_params;

static void $NAME(const qk_globalavgpool_q_params *p, const $T *x, $T *y) {
    int32_t o, i;
    for (o = 0; o < p->outer; o++, x += p->inner) {
        int64_t sum = 0;
        for (i = 0; i < p->inner; i++)
            sum += x[i] - p->xz;
        y[o] = ($T)qk_saturate(qk_requant$r(sum, p->c, p->k) + p->yz, p->lo, p->hi);
    }
}
