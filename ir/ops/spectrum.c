/* See ir/ops/spectrum.h. */
#include "ir/ops/spectrum.h"

enum { X, FACTORS = 32 /* of an int32, with the 0 behind them */ };

bool spectrum_length(const OpCtx *c, size_t i, int64_t absent, int64_t *out) {
    const Tensor *t = op_const(c, i);
    *out = op_in(c, i) ? -1 : absent;
    if (!t || !t->data || t->count != 1)
        return true;
    *out = tensor_int(t, 0);
    return (*out >= 1 && *out <= INT32_MAX) ||
           op_error_in(c, i, "must be from 1 to 2147483647, not %lld", (long long)*out);
}

bool spectrum_parts(const OpCtx *c, Type x, int64_t *parts) {
    *parts = x.dims[x.rank - 1].value;
    return *parts < 0 || *parts == 1 || *parts == 2 ||
           op_error_in(c, X, "its last dimension is %lld, not 1 (real) or 2 (complex)",
                       (long long)*parts);
}

int64_t spectrum_half(int64_t n) {
    return n < 0 ? -1 : n / 2 + 1;
}

bool spectrum_known(Binder *b, const Node *n, const OpCtx *c, size_t i) {
    const Tensor *t = op_const(c, i);
    return !op_in(c, i) || (t && t->data && t->count == 1) ||
           bind_unsupported(b, n, "its %s is not one constant",
                            onnx_schema_param(node_schema(n), false, (int)i)->name);
}

/* Tables for a length that is known: those that a run would make. */
static void tables(Binder *b, int64_t n, int *turn, int *radix) {
    double *turns = NEW_ARRAY(binder_arena(b), double, 2 * (size_t)n);
    int32_t told[] = {0, (int32_t)n}, factors[FACTORS] = {0};
    size_t count = 0;
    kernel_invoke(kernel_find("qk_dft_turns"), &(qk_dft_turns_params){.most = n},
                  (void *const[]){told, turns, factors});
    while (factors[count])
        count++;
    *turn = bind_const(b, ELEM_DOUBLE, 2 * (size_t)n, turns, "turns of a Fourier transform");
    *radix = bind_const(b, ELEM_INT32, count + 1, factors, "factors of its length");
}

bool spectrum_call(Binder *b, const Node *n, const qk_dft_params *p, const Value *window, int told,
                   int64_t most) {
    ElemType e = bind_elem(n->in[X]);
    int scratch = bind_scratch(b, ELEM_DOUBLE, 4 * (size_t)most), turn, radix;
    if (told < 0) {
        tables(b, most, &turn, &radix);
    } else {
        qk_dft_turns_params t = {.most = most};
        turn = bind_temp(b, ELEM_DOUBLE, 2 * (size_t)most);
        radix = bind_temp(b, ELEM_INT32, FACTORS);
        if (!bind_call(b, n, "qk_dft_turns", &t, sizeof t, 3, (int[]){told, turn, radix}))
            return false;
    }
    int args[] = {
        bind_value(b, n->in[X]), window ? bind_value(b, window) : -1, told, turn, radix, scratch,
        bind_value(b, n->out[0])};
    return bind_call(b, n, bind_kernel(b, "dft", 1, &e), p, sizeof *p, 7, args);
}

bool spectrum_too_long(Binder *b, const Node *n, int64_t length) {
    return length > SPECTRUM_LONGEST &&
           !bind_unsupported(b, n, "transforms of %lld elements", (long long)length);
}

bool spectrum_is_told(const OpCtx *c, size_t i) {
    return op_in(c, i) && !op_const(c, i);
}

bool spectrum_one_number(Binder *b, const Node *n, size_t i) {
    size_t count;
    return (type_count(n->in[i]->type, &count) && count == 1) ||
           bind_unsupported(b, n, "its %s is not one number",
                            onnx_schema_param(node_schema(n), false, (int)i)->name);
}
