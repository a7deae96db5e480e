//! kernel lut8
//! template X=s8,u8 Y=s8,u8,s16,u16,f32
// y = table[x - lowest x]: any function of one 8-bit value; the table has 256 entries, for
// QuantizeLinear(f(DequantizeLinear(x))). Works front to back: y may lie over x.
typedef struct {
    int64_t n;
} qk_lut8_params;

static void $NAME(const qk_lut8_params *p, const $X *x, const $Y *table, $Y *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        y[i] = table[x[i] - ($XMIN)];
}
