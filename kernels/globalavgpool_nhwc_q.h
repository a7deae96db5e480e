//! kernel globalavgpool_nhwc_q
//! template T=s8,u8 R=exact,single,double
//! uses saturate requant$r
// globalavgpool_q with channels last, [n, plane, c], on planes of at most 2^22 elements. Scratch:
// sum holds c elements.
typedef struct {
    int32_t n, plane, channels, xz, yz, lo, hi, c, k;
} qk_globalavgpool_nhwc_q_params;

static void $NAME(const qk_globalavgpool_nhwc_q_params *p, const $T *x, $T *y, int32_t *sum) {
    int32_t b, i, j, channels = p->channels, xz = p->xz;
    for (b = 0; b < p->n; b++, y += channels) {
        for (j = 0; j < channels; j++)
            sum[j] = 0;
        for (i = 0; i < p->plane; i++, x += channels)
            for (j = 0; j < channels; j++)
                sum[j] += x[j] - xz;
        for (j = 0; j < channels; j++)
            y[j] = ($T)qk_saturate(qk_requant$r(sum[j], p->c, p->k) + p->yz, p->lo, p->hi);
    }
}
