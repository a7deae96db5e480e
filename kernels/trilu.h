//! kernel trilu
//! template T=x8,x16,x32,x64
// y = x[batch, rows, columns] with zeros below the k-th diagonal where `upper`, else above it (ONNX Trilu).
typedef struct {
    int32_t batch, rows, columns, upper;
    int64_t k;
} qk_trilu_params;

static void $NAME(const qk_trilu_params *p, const $T *x, $T *y) {
    int32_t b, r, c;
    for (b = 0; b < p->batch; b++)
        for (r = 0; r < p->rows; r++)
            for (c = 0; c < p->columns; c++, x++, y++)
                *y = (p->upper ? c - r >= p->k : c - r <= p->k) ? *x : 0;
}
