//! kernel onehot
//! template T=x8,x16,x32,x64 I=u8,s32,s64,f32
// y[o, j, i] = values[1] where index[o, i] is j, else values[0], for 0 <= j < depth (ONNX OneHot).
// Negative indices count from the end; those that lie outside are none.
typedef struct {
    int32_t outer, depth, inner;
} qk_onehot_params;

static void $NAME(const qk_onehot_params *p, const $I *index, const $T *values, $T *y) {
    int32_t o, i, j;
    for (o = 0; o < p->outer; o++, index += p->inner)
        for (j = 0; j < p->depth; j++)
            for (i = 0; i < p->inner; i++) {
                //! if I=u8
                *y++ = values[index[i] == j];
                //! else
                $I at = index[i] < 0 ? index[i] + ($I)p->depth : index[i];
                *y++ = values[at == ($I)j];
                //! end
            }
}
