//! kernel resize_linear_f32
//! also f64
// Linear interpolation along the two axes of [outer, ih, iw, inner] (ONNX Resize): the result at
// (y, x) lies between rows top[y] and bottom[y], the latter with weight down[y], and columns likewise.
// The tables hold oh (ow) entries of the first, then of the second.
typedef struct {
    int32_t outer, ih, iw, inner, oh, ow;
} qk_resize_linear_f32_params;

static void $NAME(const qk_resize_linear_f32_params *p, const float *x, const int32_t *rows,
                  const float *down, const int32_t *columns, const float *right, float *y) {
    int32_t o, r, c, i, inner = p->inner;
    for (o = 0; o < p->outer; o++, x += (ptrdiff_t)p->ih * p->iw * inner)
        for (r = 0; r < p->oh; r++) {
            const float *top = x + (ptrdiff_t)rows[r] * p->iw * inner;
            const float *bottom = x + (ptrdiff_t)rows[p->oh + r] * p->iw * inner;
            float b = down[r], t = 1.0f - b;
            for (c = 0; c < p->ow; c++, y += inner) {
                ptrdiff_t lc = (ptrdiff_t)columns[c] * inner;
                ptrdiff_t rc = (ptrdiff_t)columns[p->ow + c] * inner;
                float rw = right[c], lw = 1.0f - rw;
                for (i = 0; i < inner; i++)
                    y[i] = t * (lw * top[lc + i] + rw * top[rc + i]) +
                           b * (lw * bottom[lc + i] + rw * bottom[rc + i]);
            }
        }
}
