/* Elements of values as real numbers. See exec/exec.h. */
#include "exec/exec.h"

/* What plain integers mean is recorded with ~; both kinds are read as the real numbers. */
static const Quant *meaning(Type t) {
    return t.quant && t.quant->n_scale && elem_is_int(t.elem) ? t.quant : NULL;
}

/* The elements of a value as programs hold them; `dims` has MAX_RANK entries. */
static Tensor view(Type t, const void *data, int64_t *dims) {
    return (Tensor){
        .elem = elem_unpacked(t.elem), .rank = type_lengths(t, dims), .dims = dims, .data = data};
}

static double real(const Tensor *t, const Quant *q, size_t i) {
    double x = tensor_float(t, i);
    if (!q)
        return x;
    size_t k = quant_is_per_tensor(q) ? 0 : quant_index(q, t->rank, t->dims, i);
    return (x - (double)quant_zp(q, k)) * (double)quant_scale(q, k);
}

/* What `real` makes of each, where one scale is that of all. */
static bool reals_of_bytes(const Tensor *t, const Quant *q, size_t n, double *out) {
    bool is_signed = t->elem == ELEM_INT8;
    if ((!is_signed && t->elem != ELEM_UINT8) || (q && !quant_is_per_tensor(q)))
        return false;
    double zp = q ? (double)quant_zp(q, 0) : 0, scale = q ? (double)quant_scale(q, 0) : 1;
    const uint8_t *bytes = t->data;
    for (size_t i = 0; i < n; i++) {
        int x = is_signed ? (int8_t)bytes[i] : bytes[i];
        out[i] = ((double)x - zp) * scale;
    }
    return true;
}

void type_reals(Type type, const void *data, size_t n, double *out) {
    const Quant *q = meaning(type);
    int64_t dims[MAX_RANK];
    Tensor t = view(type, data, dims);
    if (t.elem == ELEM_FLOAT) {
        for (size_t i = 0; i < n; i++)
            out[i] = (double)((const float *)data)[i];
        return;
    }
    if (reals_of_bytes(&t, q, n, out))
        return;
    for (size_t i = 0; i < n; i++)
        out[i] = real(&t, q, i);
}

void type_reals_at(Type type, const void *data, const size_t *at, size_t n, double *out) {
    const Quant *q = meaning(type);
    int64_t dims[MAX_RANK];
    Tensor t = view(type, data, dims);
    for (size_t i = 0; i < n; i++)
        out[i] = real(&t, q, at[i]);
}
