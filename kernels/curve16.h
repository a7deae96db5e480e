//! kernel curve16
//! template X=s16,u16 Y=s8,u8,s16,u16
//! uses saturate round_fixed
// y = saturate(round_half_even(f(x)) + yz) of 16-bit numbers, where f is a straight line between entries of
// the table, which are in 2^-bits of a step of y. The numbers from first + i * 2^part on have their entries at
// table + (table[i] >> 4), one for each 2^(table[i] & 15) numbers; behind the last of all is one more. Works
// front to back: y may lie over x.
typedef struct {
    int64_t n;
    int32_t first, part, bits, yz, lo, hi;
} qk_curve16_params;

static void $NAME(const qk_curve16_params *p, const $X *x, const int32_t *table, $Y *y) {
    int32_t first = p->first, part = p->part, bits = p->bits;
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        int32_t at = (int32_t)x[i] - first, head = table[at >> part], shift = head & 15;
        const int32_t *t = table + (head >> 4) + ((at & ((1 << part) - 1)) >> shift);
        int64_t v = (int64_t)t[0] * ((int64_t)1 << shift);
        v += (int64_t)(t[1] - t[0]) * (at & ((1 << shift) - 1));
        y[i] = ($Y)qk_saturate(qk_round_fixed(v, shift + bits) + p->yz, p->lo, p->hi);
    }
}
