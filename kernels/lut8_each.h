//! kernel lut8_each
//! template X=s8,u8 Y=s8,u8
// lut8 of [outer, channels, inner] with a function for each channel that is the same for all from xz
// on: y = table[x - lowest x] there, and below it the `xz - lowest x` entries of the channel, which
// follow the 256 of all. Works front to back: y may lie over x.
typedef struct {
    int32_t outer, channels, inner;
    int32_t xz;
} qk_lut8_each_params;

static void $NAME(const qk_lut8_each_params *p, const $X *x, const $Y *table, $Y *y) {
    int32_t below = p->xz - ($XMIN), o, c, i;
    for (o = 0; o < p->outer; o++) {
        const $Y *own = table + 256;
        for (c = 0; c < p->channels; c++, x += p->inner, y += p->inner, own += below)
            for (i = 0; i < p->inner; i++) {
                int32_t v = x[i] - ($XMIN);
                if (v < below)
                    y[i] = own[v];
                else
                    y[i] = table[v];
            }
    }
}
