//! kernel tensor_scatter
//! template T=x8,x16,x32,x64
// y[b, o, at[b] + s] becomes x[b, o, s] (ONNX TensorScatter): slices of `inner` elements of x[batch, outer,
// steps, inner] into y[batch, outer, length, inner], from the start again where `circular`; else those that
// lie outside do nothing.
typedef struct {
    int32_t batch, outer, steps, length, inner, circular;
} qk_tensor_scatter_params;

static void $NAME(const qk_tensor_scatter_params *p, const $T *x, const int64_t *at, $T *y) {
    ptrdiff_t inner = p->inner, row = (ptrdiff_t)p->length * inner;
    int32_t b, o, s;
    for (b = 0; b < p->batch && p->length > 0 && inner > 0; b++)
        for (o = 0; o < p->outer; o++, y += row)
            for (s = 0; s < p->steps; s++, x += inner) {
                int64_t first = p->circular ? at[b] % p->length : at[b], k;
                k = first > p->length ? p->length : first < -s - 1 ? -1 : first + s;
                if (p->circular)
                    k = ((first + s) % p->length + p->length) % p->length;
                if (k >= 0 && k < p->length)
                    memcpy(y + (ptrdiff_t)k * inner, x, (size_t)inner * sizeof *y);
            }
}
