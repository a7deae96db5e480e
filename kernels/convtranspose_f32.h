//! kernel convtranspose_f32
//! also f64
// y[n, oc, oh, ow] = ONNX ConvTranspose of x[n, ic, ih, iw] with w[ic, oc / group, kh, kw]: each
// output gathers the inputs that reach it.
typedef struct {
    int32_t n, ic, ih, iw;          /* input */
    int32_t oc, oh, ow;             /* output */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* cut off at the top and left */
    int32_t group, has_bias;
} qk_convtranspose_f32_params;

static float $NAME_one(const qk_convtranspose_f32_params *p, const float *x, const float *w,
                       int32_t oy, int32_t ox) {
    int32_t icg = p->ic / p->group, ocg = p->oc / p->group, ky, kx, i;
    ptrdiff_t plane = (ptrdiff_t)p->ih * p->iw, filter = (ptrdiff_t)ocg * p->kh * p->kw;
    float sum = 0.0f;
    for (ky = 0; ky < p->kh; ky++) {
        int32_t ty = oy + p->pt - ky * p->dh, iy = ty / p->sh;
        if (ty < 0 || ty % p->sh != 0 || iy >= p->ih)
            continue;
        for (kx = 0; kx < p->kw; kx++) {
            int32_t tx = ox + p->pl - kx * p->dw, ix = tx / p->sw;
            const float *u, *v;
            float part = 0.0f;
            if (tx < 0 || tx % p->sw != 0 || ix >= p->iw)
                continue;
            u = x + (ptrdiff_t)iy * p->iw + ix;
            v = w + (ptrdiff_t)ky * p->kw + kx;
            for (i = 0; i < icg; i++)
                part += u[i * plane] * v[i * filter];
            sum += part;
        }
    }
    return sum;
}

static void $NAME(const qk_convtranspose_f32_params *p, const float *x, const float *w,
                  const float *bias, float *y) {
    int32_t icg = p->ic / p->group, ocg = p->oc / p->group, b, o, oy, ox;
    for (b = 0; b < p->n; b++)
        for (o = 0; o < p->oc; o++) {
            int32_t first = b * p->ic + o / ocg * icg;
            const float *in = x + (ptrdiff_t)first * p->ih * p->iw;
            const float *filter =
                w + ((ptrdiff_t)(o / ocg) * icg * ocg + o % ocg) * p->kh * p->kw;
            for (oy = 0; oy < p->oh; oy++)
                for (ox = 0; ox < p->ow; ox++)
                    *y++ = $NAME_one(p, in, filter, oy, ox) + (p->has_bias ? bias[o] : 0.0f);
        }
}
