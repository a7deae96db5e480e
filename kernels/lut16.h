//! kernel lut16
//! template X=s16,u16 Y=s8,u8,s16,u16
// y = table[x - lowest x]: any function of one 16-bit value; the table has 65536 entries. Works front to
// back: y may lie over x.
typedef struct {
    int64_t n;
} qk_lut16_params;

static void $NAME(const qk_lut16_params *p, const $X *x, const $Y *table, $Y *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        y[i] = table[x[i] - ($XMIN)];
}
