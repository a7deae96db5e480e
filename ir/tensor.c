/* Elements of constants: their size, reading and writing one, whether data fits a type. */
#include <assert.h>

#include "ir/ir.h"
#include "ir/minifloat.h"
#include "support/store.h"

bool tensor_count(int rank, const int64_t *dims, size_t *count) {
    const int64_t limit = INT32_MAX;
    int64_t n = 1;
    bool zero = false, large = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return false;
        zero |= dims[i] == 0;
        large |= __builtin_mul_overflow(n, dims[i], &n) || n > limit;
        if (large)
            n = 1; /* refused below unless another dim is 0 */
    }
    *count = zero ? 0 : (size_t)n;
    return zero || !large;
}

static Tensor *tensor_head(Arena *a, ElemType elem, int rank, const int64_t *dims) {
    Tensor *t = NEW(a, Tensor);
    t->elem = elem;
    t->rank = rank;
    t->dims = arena_copy(a, dims, (size_t)rank * sizeof *dims);
    bool ok = tensor_count(rank, dims, &t->count);
    (void)ok;
    t->bytes = elem_bytes(elem, t->count);
    return t;
}

Tensor *tensor_new(Arena *a, ElemType elem, int rank, const int64_t *dims, uint8_t **bytes) {
    Tensor *t = tensor_head(a, elem, rank, dims);
    *bytes = arena_alloc(a, t->bytes);
    t->data = *bytes;
    return t;
}

Tensor *tensor_begin(Arena *a, ElemType elem, int rank, const int64_t *dims, uint8_t **bytes) {
    Tensor *t = tensor_head(a, elem, rank, dims);
    *bytes = store_begin(a, t->bytes);
    t->data = *bytes;
    return t;
}

Tensor *tensor_end(Arena *a, Tensor *t) {
    t->data = store_end(a, (void *)(uintptr_t)t->data, t->bytes);
    return t;
}

Tensor *tensor_as(Arena *a, Tensor *t, ElemType e) {
    if (t->elem == e)
        return t;
    uint8_t *bytes;
    Tensor *to = tensor_new(a, e, t->rank, t->dims, &bytes);
    for (size_t i = 0; i < t->count; i++)
        elem_store_int(e, bytes, i, tensor_int(t, i));
    return to;
}

Tensor *tensor_transposed(Arena *a, const Tensor *t) {
    size_t rows = (size_t)t->dims[t->rank - 2], columns = (size_t)t->dims[t->rank - 1];
    size_t bits = (size_t)elem_bits(t->elem), bytes = bits / 8;
    int64_t *dims = arena_copy(a, t->dims, (size_t)t->rank * sizeof *dims);
    dims[t->rank - 2] = (int64_t)columns;
    dims[t->rank - 1] = (int64_t)rows;
    uint8_t *out;
    const uint8_t *in = t->data;
    Tensor *to = tensor_new(a, t->elem, t->rank, dims, &out);
    for (size_t i = 0; i < t->count; i++) {
        size_t matrix = i / (rows * columns), k = i % (rows * columns);
        size_t at = (matrix * columns + k % columns) * rows + k / columns;
        if (bits % 8 == 0)
            memcpy(out + at * bytes, in + i * bytes, bytes);
        else
            elem_store_int(t->elem, out, at, tensor_int(t, i));
    }
    return to;
}

Tensor *tensor_of(Arena *a, ElemType elem, int rank, const int64_t *dims, const void *data) {
    Tensor *t = tensor_head(a, elem, rank, dims);
    t->data = data;
    return t;
}

Tensor *tensor_copy(Arena *a, const Tensor *t) {
    const void *bytes = t->bytes ? arena_copy(a, t->data, t->bytes) : "";
    return tensor_of(a, t->elem, t->rank, t->dims, bytes);
}

Type tensor_type(Arena *a, const Tensor *t) {
    return type_fixed(a, t->elem, t->rank, t->dims);
}

bool tensor_is_absent(const Tensor *t) {
    return !t->data && !t->later && !t->strings && t->count > 0;
}

bool tensor_required(const Tensor *t, Str name, Loc at, Diags *d) {
    if (!tensor_is_absent(t))
        return true;
    if (t->place != TENSOR_EXTERNAL)
        return diag_error(d, at, "tensor \"%s\" is elided: its elements are needed here",
                          diag_name(d, name));
    Str file = STR("");
    for (size_t i = 0; i < t->external.n; i++)
        if (str_is(t->external.items[i].key, "location"))
            file = t->external.items[i].value;
    return diag_error(d, at,
                      "tensor \"%s\" stands in file \"%s\", which is not there: its elements are "
                      "needed here",
                      diag_name(d, name), diag_name(d, file));
}

bool tensor_same_shape(const Tensor *x, const Tensor *y) {
    bool same = x->rank == y->rank;
    for (int i = 0; same && i < x->rank; i++)
        same = x->dims[i] == y->dims[i];
    return same;
}

/* ---- elements ---- */

/* The bits of element i, at any width up to 64. Data may be unaligned. */
static uint64_t load_bits(ElemType e, const uint8_t *data, size_t i) {
    size_t bits = (size_t)elem_bits(e);
    switch (bits) {
    case 8: return data[i];
    case 16: {
        uint16_t v;
        memcpy(&v, data + 2 * i, 2);
        return v;
    }
    case 32: {
        uint32_t v;
        memcpy(&v, data + 4 * i, 4);
        return v;
    }
    case 64: {
        uint64_t v;
        memcpy(&v, data + 8 * i, 8);
        return v;
    }
    default: {
        /* 1, 2, 4 or 6 bits; a 6-bit element may straddle two bytes. */
        size_t at = i * bits, shift = at % 8;
        unsigned v = data[at / 8];
        if (shift + bits > 8)
            v |= (unsigned)data[at / 8 + 1] << 8;
        return v >> shift & ((1u << bits) - 1);
    }
    }
}

int64_t elem_load_int(ElemType e, const uint8_t *data, size_t i) {
    uint64_t v = load_bits(e, data, i);
    if (!elem_is_signed(e))
        return (int64_t)v;
    int unused = 64 - elem_bits(e);
    return (int64_t)(v << unused) >> unused;
}

void elem_store_int(ElemType e, uint8_t *data, size_t i, int64_t v) {
    size_t bits = (size_t)elem_bits(e);
    if (bits >= 8) {
        memcpy(data + i * (bits / 8), &v, bits / 8); /* little-endian hosts only */
        return;
    }
    size_t at = i * bits;
    unsigned mask = (1u << bits) - 1;
    for (size_t done = 0; done < bits;) {
        size_t shift = (at + done) % 8, n = bits - done < 8 - shift ? bits - done : 8 - shift;
        unsigned part = ((1u << n) - 1) << shift;
        unsigned value = ((unsigned)v & mask) >> done << shift;
        uint8_t *byte = &data[(at + done) / 8];
        *byte = (uint8_t)((*byte & ~part) | (value & part));
        done += n;
    }
}

void elem_store_bytes(ElemType e, uint8_t *data, size_t i, const uint8_t *bytes, size_t n) {
    size_t done = 0;
    if (elem_bits(e) == 8) {
        memcpy(data + i, bytes, done = n);
    } else if (elem_bits(e) == 4 && i % 2 == 0) {
        row_pack4(bytes, n, data + i / 2);
        done = n / 2 * 2;
    }
    for (; done < n; done++)
        elem_store_int(e, data, i + done, bytes[done]);
}

void elem_load_bytes(ElemType e, const uint8_t *data, size_t i, uint8_t *bytes, size_t n) {
    size_t done = 0;
    if (elem_bits(e) == 8) {
        memcpy(bytes, data + i, done = n);
    } else if (elem_bits(e) == 4 && i % 2 == 0) {
        row_unpack4(data + i / 2, n, elem_is_signed(e), bytes);
        done = n / 2 * 2;
    }
    for (; done < n; done++)
        bytes[done] = (uint8_t)elem_load_int(e, data, i + done);
}

ElemType elem_unpacked(ElemType e) {
    int bits = elem_bits(e);
    if (elem_is_float(e) && bits < 32)
        return ELEM_FLOAT;
    if (bits == 0 || bits >= 8 || !elem_is_int(e))
        return e;
    return elem_is_signed(e) ? ELEM_INT8 : ELEM_UINT8;
}

Tensor *tensor_unpacked(Arena *a, const Tensor *t) {
    uint8_t *bytes;
    Tensor *to = tensor_new(a, elem_unpacked(t->elem), t->rank, t->dims, &bytes);
    assert(to->elem != t->elem);
    if (to->elem != ELEM_FLOAT)
        elem_load_bytes(t->elem, t->data, 0, bytes, t->count);
    for (size_t i = 0; to->elem == ELEM_FLOAT && i < t->count; i++)
        ((float *)bytes)[i] = (float)tensor_float(t, i);
    return to;
}

int64_t tensor_int(const Tensor *t, size_t i) {
    return elem_is_float(t->elem) ? (int64_t)tensor_float(t, i)
                                  : elem_load_int(t->elem, t->data, i);
}

double elem_load_real(ElemType e, const uint8_t *data, size_t i) {
    if (e == ELEM_FLOAT)
        return (double)((const RowFloat *)data)[i];
    double v;
    memcpy(&v, data + 8 * i, 8);
    return v;
}

double tensor_float(const Tensor *t, size_t i) {
    if (t->elem == ELEM_FLOAT || t->elem == ELEM_DOUBLE)
        return elem_load_real(t->elem, t->data, i);
    if (!elem_is_float(t->elem)) {
        int64_t v = elem_load_int(t->elem, t->data, i);
        return t->elem == ELEM_UINT64 ? (double)(uint64_t)v : (double)v;
    }
    return float_decode(t->elem, load_bits(t->elem, t->data, i));
}

double tensor_steps(const Tensor *t, size_t i, const Quant *q, size_t entry) {
    return quant_is_integers(q) ? (double)(tensor_int(t, i) - quant_zp(q, entry))
                                : tensor_float(t, i);
}

const RowFloat *tensor_floats(const Tensor *t) {
    return (const RowFloat *)(const void *)t->data;
}

bool tensor_fits(const Tensor *t, Type type) {
    if (type.kind == TYPE_NONE)
        return true;
    bool elem = type.elem == t->elem || type.elem == ELEM_UNDEFINED || type.quant;
    if (type.kind != TYPE_TENSOR || !elem || (type.rank >= 0 && type.rank != t->rank))
        return false;
    for (int i = 0; i < type.rank; i++)
        if (type.dims[i].value >= 0 && type.dims[i].value != t->dims[i])
            return false;
    return true;
}

bool tensor_follows(const Tensor *t, Type type) {
    if (type.kind != TYPE_TENSOR || type.elem == ELEM_UNDEFINED || type.rank != t->rank)
        return false;
    for (int i = 0; i < type.rank; i++)
        if (type.dims[i].value < 0)
            return false;
    return tensor_fits(t, type);
}

/* ---- sparse ---- */

Type sparse_type(Arena *a, const SparseTensor *s) {
    Type whole = type_fixed(a, s->values->elem, s->rank, s->dims);
    return (Type){.kind = TYPE_SPARSE, .rank = -1, .sub = arena_copy(a, &whole, sizeof whole)};
}

/* The tensor without its elements. */
static Tensor whole_of(const SparseTensor *s) {
    return (Tensor){.elem = s->values->elem, .rank = s->rank, .dims = s->dims};
}

bool sparse_fits(const SparseTensor *s, Type type) {
    Tensor whole = whole_of(s);
    return tensor_fits(&whole, type.kind == TYPE_SPARSE ? *type.sub : type);
}

bool sparse_follows(const SparseTensor *s, Type type) {
    Tensor whole = whole_of(s);
    return tensor_follows(&whole, type.kind == TYPE_SPARSE ? *type.sub : type);
}
