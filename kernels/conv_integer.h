//! kernel conv_integer
//! template X=s8,u8 W=s8,u8 E=s16,s32
//! widen A = E
//! uses dot_$e_$e
// ONNX ConvInteger, NCHW, weights [oc, ic / group, kh, kw]: y = sum (x - xz) * (w - wz[c]), which
// wraps like int32; padding counts as xz. xz and wz may be NULL (0). With E=s16 a sum has at most
// 2^15 terms. The input is unfolded `tile` positions at a time. Scratch: col holds tile * terms
// elements, rows 4 * terms, acc 4 * tile.
typedef struct {
    int32_t n, ic, ih, iw;          /* input [n, ic, ih, iw] */
    int32_t oc, oh, ow;             /* output [n, oc, oh, ow] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t group, tile;
    int32_t wz_step; /* 0 per tensor, 1 per channel */
} qk_conv_integer_params;

static void $NAME_unfold(const qk_conv_integer_params *p, const $X *x, int32_t zero, int32_t first,
                         int32_t count, int32_t channels, $E *col) {
    ptrdiff_t plane = (ptrdiff_t)p->ih * p->iw;
    int32_t i, c, ky, kx;
    for (i = first; i < first + count; i++) {
        int32_t y0 = i / p->ow * p->sh - p->pt, x0 = i % p->ow * p->sw - p->pl;
        for (c = 0; c < channels; c++)
            for (ky = 0; ky < p->kh; ky++) {
                int32_t iy = y0 + ky * p->dh;
                int real = iy >= 0 && iy < p->ih;
                const $X *row = x + (real ? c * plane + (ptrdiff_t)iy * p->iw : 0);
                for (kx = 0; kx < p->kw; kx++) {
                    int32_t ix = x0 + kx * p->dw;
                    *col++ = ($E)(real && ix >= 0 && ix < p->iw ? row[ix] - zero : 0);
                }
            }
    }
}

static void $NAME(const qk_conv_integer_params *p, const $X *x, const $W *w, const $X *xz,
                  const $W *wz, int32_t *y, $E *col, $E *rows, $A *acc) {
    int32_t icg = p->ic / p->group, ocg = p->oc / p->group, len = icg * p->kh * p->kw;
    int32_t plane = p->oh * p->ow, b, g, first, i, j, k, r;
    for (b = 0; b < p->n; b++)
        for (g = 0; g < p->group; g++)
            for (first = 0; first < plane; first += p->tile) {
                int32_t count = plane - first < p->tile ? plane - first : p->tile;
                $NAME_unfold(p, x + ((ptrdiff_t)b * p->ic + (ptrdiff_t)g * icg) * p->ih * p->iw,
                             xz ? xz[0] : 0, first, count, icg, col);
                for (j = 0; j < ocg; j += 4) {
                    int32_t width = ocg - j < 4 ? ocg - j : 4;
                    for (r = 0; r < width; r++) {
                        int32_t o = g * ocg + j + r, zero = wz ? wz[o * p->wz_step] : 0;
                        for (k = 0; k < len; k++)
                            rows[(ptrdiff_t)r * len + k] = ($E)(w[(ptrdiff_t)o * len + k] - zero);
                    }
                    qk_dot_$e_$e(col, count, rows, width, len, acc);
                    for (r = 0; r < width; r++) {
                        int32_t *out = y + ((ptrdiff_t)b * p->oc + g * ocg + j + r) * plane + first;
                        for (i = 0; i < count; i++)
                            out[i] = (int32_t)(uint32_t)acc[(ptrdiff_t)r * count + i];
                    }
                }
            }
}
