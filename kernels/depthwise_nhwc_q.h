//! kernel depthwise_nhwc_q
//! template X=s8,u8 W=s8,p8 Y=s8,u8,s16,u16,f32,s32 R=exact,single,double,shift
//! skip R!=exact Y!=s8,u8
//! uses depthwise_tile_$x requant_tile_$y$r
//! uses depthwise_beside if Y=s8,u8
//! uses unpack4 if W=p8
// depthwise_q on tensors whose channels come last, [n, h, w, c], for one output channel each and
// 8-bit weights with zero point 0 of at most 64 taps. Weights: pairs of taps, [(kh * kw + 1) / 2]
// [c][2], the odd one filled up with zeros; those of 4 bits as kernels/unpack4.h says, c filled up to a
// multiple of 4. The bias makes up for the zero point of x, which also
// stands for the padding: bias - xz * sum of w. Tables have 16 entries more than there are
// channels. Scratch: pad holds c elements. Sums wrap like int32.
// Works front to back, four positions at a time, whose windows are read while their results are
// written: y may lie over x.
typedef struct {
    int32_t n, c, ih, iw;           /* input [n, ih, iw, c] */
    int32_t oh, ow;                 /* output [n, oh, ow, c] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t xz, yz, lo, hi;
} qk_depthwise_nhwc_q_params;

/* Where each tap of the window at (iy, ix) begins; `pad` where it lies outside. `inside` has that of a
 * window inside the input as a distance from its first. */
static void $NAME_taps(const qk_depthwise_nhwc_q_params *p, const $X *x, int32_t iy, int32_t ix,
                       const $X *pad, const ptrdiff_t *inside, const $X **tap) {
    ptrdiff_t from = ((ptrdiff_t)iy * p->iw + ix) * p->c, step = (ptrdiff_t)p->dw * p->c;
    ptrdiff_t down = (ptrdiff_t)p->dh * p->iw * p->c;
    int32_t taps = p->kh * p->kw, ky, kx;
    if (iy >= 0 && ix >= 0 && iy + (p->kh - 1) * p->dh < p->ih &&
        ix + (p->kw - 1) * p->dw < p->iw) {
        for (kx = 0; kx <= taps; kx++)
            tap[kx] = x + (from + inside[kx]);
        return;
    }
    for (ky = 0; ky < p->kh; ky++, iy += p->dh, from += down) {
        uint32_t columns = iy >= 0 && iy < p->ih ? (uint32_t)p->iw : 0, at = (uint32_t)ix;
        ptrdiff_t to = from;
        for (kx = 0; kx < p->kw; kx++, at += (uint32_t)p->dw, to += step)
            *tap++ = at < columns ? x + to : pad;
    }
    *tap = tap[-1];
}

/* `rows` windows, at most four, the first at (oy, ox); taps of one 66 after those of another. Where
 * all four lie side by side inside the input, those of the first and the distance from one to the next
 * are enough, which is returned; else 0. */
static ptrdiff_t $NAME_windows(const qk_depthwise_nhwc_q_params *p, const $X *x, int32_t oy,
                               int32_t ox, int32_t rows, const $X *pad, const ptrdiff_t *inside,
                               const $X **tap) {
    int32_t iy = oy * p->sh - p->pt, ix = ox * p->sw - p->pl, r;
    int together = rows == 4 && ox + 4 <= p->ow && iy >= 0 && ix >= 0 &&
                   iy + (p->kh - 1) * p->dh < p->ih &&
                   ix + 3 * p->sw + (p->kw - 1) * p->dw < p->iw;
    for (r = 0; r < (together ? 1 : rows); r++, tap += 66) {
        $NAME_taps(p, x, oy * p->sh - p->pt, ox * p->sw - p->pl, pad, inside, tap);
        if (++ox == p->ow) {
            ox = 0;
            oy++;
        }
    }
    return together ? (ptrdiff_t)p->sw * p->c : 0;
}

//! if Y=s8,u8
#if defined(QK_BESIDE)
/* How many windows of a row lie inside the input, from (oy, ox) on, each a column behind the one
 * before. */
static int32_t $NAME_row(const qk_depthwise_nhwc_q_params *p, int32_t oy, int32_t ox) {
    int32_t iy = oy * p->sh - p->pt, ix = ox - p->pl, reach = p->iw - (p->kw - 1) * p->dw - ix;
    if (iy < 0 || ix < 0 || iy + (p->kh - 1) * p->dh >= p->ih)
        return 0;
    return reach < p->ow - ox ? reach : p->ow - ox;
}
#endif
//! end

//! if W=p8
/* The weights of channels [from, from + n), from a multiple of 4, to [pairs][..][2]; returns for how
 * many channels. */
static int32_t $NAME_unpack(const qk_depthwise_nhwc_q_params *p, const $W *w, int32_t from,
                            int32_t n, int8_t *to) {
    int32_t pairs = (p->kh * p->kw + 1) / 2, all = (p->c + 3) / 4 * 4, t;
    n = (n + 3) / 4 * 4;
    for (t = 0, w += from; t < pairs; t++, w += all, to += 2 * (ptrdiff_t)n)
        qk_unpack4(w, 2 * (ptrdiff_t)n, to);
    return n;
}
//! end

static void $NAME(const qk_depthwise_nhwc_q_params *p, const $X *x, const $W *w,
                  const int32_t *bias,
                  //! if Y=f32
                  const float *scale,
                  //! end
                  //! if Y!=f32,s32
                  const int32_t *mul, const int32_t *shift,
                  //! end
                  $Y *y, $X *pad) {
    const $X *tap[264];
    ptrdiff_t inside[65], apart;
    int32_t b, i, c, rows, plane = p->oh * p->ow, taps = p->kh * p->kw;
    QK_LINE int32_t acc[128];
    int32_t step = p->kh == 3 && p->kw == 3 && p->dw == 1 && p->sw <= 2 ? p->sw : 0;
    int32_t wide = p->c >= 32 ? 32 : p->c >= 16 ? 16 : p->c >= 8 ? 8 : p->c;
    //! if W=p8
    int8_t part[QK_UNPACKED];
    int32_t channels;
    //! end
    //! if Y=s8,u8
#if defined(QK_BESIDE)
    qk_beside beside;
    //! if W=p8
    int32_t many = p->sw == 1 && p->c % 4 == 0 && p->c <= 16;
    if (many) {
        $NAME_unpack(p, w, 0, p->c, part);
        many = qk_beside_each(&beside, p->c, taps, part, bias, mul, shift);
    }
    //! else
    int32_t many = p->sw == 1 ? qk_beside_each(&beside, p->c, taps, w, bias, mul, shift) : 0;
    //! end
#endif
    //! end
    //! if W=p8
    while (wide >= 8 && (wide + 4) * (taps + 1) > QK_UNPACKED)
        wide /= 2;
    //! end
    for (c = 0; c < p->c; c++)
        pad[c] = ($X)p->xz;
    for (c = 0; c < 128; c++) /* all of it is read, even where there are fewer channels */
        acc[c] = 0;
    for (i = 0; i <= taps; i++) { /* the last twice, to make pairs */
        int32_t t = i < taps ? i : taps - 1;
        inside[i] = ((ptrdiff_t)(t / p->kw) * p->dh * p->iw + (ptrdiff_t)(t % p->kw) * p->dw) * p->c;
    }
    for (b = 0; b < p->n && p->c > 0; b++, x += (ptrdiff_t)p->ih * p->iw * p->c)
        for (i = 0; i < plane; i += rows, y += (ptrdiff_t)rows * p->c) {
            int32_t left = plane - i;
            //! if Y=s8,u8
#if defined(QK_BESIDE)
            rows = many ? $NAME_row(p, i / p->ow, i % p->ow) / many : 0;
            if (rows > 0) {
                rows = rows < 4 ? rows : 4;
                $NAME_taps(p, x, i / p->ow * p->sh - p->pt, i % p->ow - p->pl, pad, inside,
                           tap);
                qk_depthwise_tile_$x(tap, 32, step ? 3 : 0, rows, (taps + 1) / 2, 0, 32, beside.w,
                                     32, acc);
                qk_requant_tile_$y$r(acc, rows, 32, beside.bias, beside.mul, beside.shift, p->yz,
                                   p->lo, p->hi, y, 32);
                rows *= many;
                continue;
            }
#endif
            //! end
#if defined(QK_VNNI) /* windows of a row share columns */
            left = step ? p->ow - i % p->ow : left;
#endif
            rows = left < 4 ? left : 4;
            apart = $NAME_windows(p, x, i / p->ow, i % p->ow, rows, pad, inside, tap);
            for (c = 0;;) { /* the last step reaches back, so that all are equally wide */
                //! if W=p8
                channels = $NAME_unpack(p, w, c / 4 * 4, wide + c % 4, part);
                qk_depthwise_tile_$x(tap, apart, step, rows, (taps + 1) / 2, c, wide,
                                     part + 2 * (ptrdiff_t)(c % 4), channels, acc);
                //! else
                qk_depthwise_tile_$x(tap, apart, step, rows, (taps + 1) / 2, c, wide,
                                     w + 2 * (ptrdiff_t)c, p->c, acc);
                //! end
                //! if Y=f32
                qk_requant_tile_$y(acc, rows, wide, bias + c, scale + c, y + c, p->c);
                //! end
                //! if Y=s32
                qk_requant_tile_$y(acc, rows, wide, bias + c, y + c, p->c);
                //! end
                //! if Y!=f32,s32
                qk_requant_tile_$y$r(acc, rows, wide, bias + c, mul + c, shift + c, p->yz, p->lo,
                                   p->hi, y + c, p->c);
                //! end
                if (c + wide >= p->c)
                    break;
                c = c + 2 * wide <= p->c ? c + wide : p->c - wide;
            }
        }
}
