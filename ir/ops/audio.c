/* HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix: tables that follow from a few
 * numbers. Where these are constants the tables are, too; windows of a length that only a run tells
 * are computed in it. Of opset 17. */
#include "ir/ops/bind.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

typedef struct TableAttrs {
    int64_t output_datatype, periodic;
} TableAttrs;

static const AttrSpec window_attrs[] = {
    A_INT(TableAttrs, output_datatype, ELEM_FLOAT),
    A_FLAG(TableAttrs, periodic, 1),
    A_END,
};

static const AttrSpec mel_attrs[] = {
    A_INT(TableAttrs, output_datatype, ELEM_FLOAT),
    A_END,
};

static bool verify_elem(const OpCtx *c) {
    const TableAttrs *a = c->attrs;
    return (a->output_datatype > 0 && a->output_datatype < 1000 &&
            elem_known((int)a->output_datatype)) ||
           op_error_attr(c, "output_datatype", "there is no element type %lld",
                         (long long)a->output_datatype);
}

/* A number of `least` or more; -1 where it is not known. */
static bool count_of(const OpCtx *c, size_t i, int64_t least, int64_t *out) {
    const Tensor *t = op_const(c, i);
    bool known = t && t->data && t->count == 1;
    *out = known ? tensor_int(t, 0) : -1;
    return !known || (*out >= least && *out <= INT32_MAX) ||
           op_error_in(c, i, "must be from %lld to 2147483647, not %lld", (long long)least,
                       (long long)*out);
}

static Dim dim_or_unknown(int64_t n) {
    return n < 0 ? dim_unknown() : dim_of(n);
}

enum { LARGEST = 1 << 24 }; /* elements of a table */

static bool fits(Binder *b, const Node *n) {
    int32_t count = bind_count(n->out[0]);
    return count <= LARGEST || bind_unsupported(b, n, "a table of %d elements", count);
}

/* The result, a table of these numbers; integers are what is before the point, where
 * 1 may be a sum that fails it by rounding errors. */
static bool bind_numbers(Binder *b, const Node *n, const double *x) {
    size_t count = (size_t)bind_count(n->out[0]);
    ElemType e = n->out[0]->type.elem;
    float *floats = NEW_ARRAY(binder_arena(b), float, count + 1);
    uint8_t *integers = NEW_ARRAY(binder_arena(b), uint8_t, elem_bytes(e, count) + 1);
    for (size_t i = 0; i < count && elem_is_int(e); i++)
        elem_store_int(e, integers, i, (int64_t)(float)x[i]);
    for (size_t i = 0; i < count; i++)
        floats[i] = (float)x[i];
    const void *real = e == ELEM_FLOAT ? (const void *)floats : x;
    int table = bind_const(b, e, count, elem_is_int(e) ? integers : real, "table");
    bind_copy(b, n, table, bind_value(b, n->out[0]));
    return true;
}

/* ---- windows ---- */

static bool window_verify(const OpCtx *c) {
    int64_t size;
    return verify_elem(c) && count_of(c, 0, 0, &size);
}

static bool window_infer(OpCtx *c) {
    const TableAttrs *a = c->attrs;
    int64_t size;
    Dim *dims = NEW_ARRAY(c->arena, Dim, 1);
    if (!count_of(c, 0, 0, &size))
        return false;
    dims[0] = dim_or_unknown(size);
    c->out[0] = type_tensor((ElemType)a->output_datatype, 1, dims);
    return true;
}

enum { TERMS = 3 };

/* c[0] - c[1] cos(2 pi k / m) + c[2] cos(4 pi k / m), as ONNX defines all three. */
static bool bind_window_table(Binder *b, const Node *n, int64_t size, bool periodic,
                              const double *c) {
    if (!fits(b, n))
        return false;
    double *x = NEW_ARRAY(binder_arena(b), double, (size_t)size + 1);
    double period = (double)(periodic ? size : size - 1);
    for (int64_t k = 0; k < size; k++) {
        double angle = 2 * PI * (double)k / period;
        x[k] = c[0] - c[1] * cos(angle) + c[2] * cos(2 * angle);
    }
    return bind_numbers(b, n, x);
}

static bool bind_window(Binder *b, const Node *n, const OpCtx *c, const double *terms) {
    const TableAttrs *a = c->attrs;
    ElemType e = bind_elem(n->out[0]);
    int64_t size;
    if (!count_of(c, 0, 0, &size))
        return false;
    if (size >= 0)
        return bind_window_table(b, n, size, a->periodic, terms);
    if (elem_is_int(e))
        return bind_unsupported(b, n, "its size is not constant, and its numbers are integers");
    qk_window_params p = {.n = bind_count(n->out[0]), .symmetric = !a->periodic};
    int table = bind_const(b, ELEM_DOUBLE, TERMS, terms, "terms of the window");
    return bind_call(b, n, bind_kernel(b, "window", 1, &e), &p, sizeof p, 2,
                     (int[]){table, bind_value(b, n->out[0])});
}

static bool window_bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    ElemType e = op_type(c, 0).elem;
    qk_length_in_params p = {.most = INT32_MAX};
    return bind_call(b, n, bind_kernel(b, "length_in", 1, &e), &p, sizeof p, 2,
                     (int[]){bind_value(b, n->in[0]), length});
}

static bool hann_bind(Binder *b, const Node *n, const OpCtx *c) {
    static const double terms[TERMS] = {0.5, 0.5, 0};
    return bind_window(b, n, c, terms);
}

static bool hamming_bind(Binder *b, const Node *n, const OpCtx *c) {
    static const double terms[TERMS] = {25.0 / 46, 21.0 / 46, 0};
    return bind_window(b, n, c, terms);
}

static bool blackman_bind(Binder *b, const Node *n, const OpCtx *c) {
    static const double terms[TERMS] = {0.42, 0.5, 0.08};
    return bind_window(b, n, c, terms);
}

#define WINDOW_TABLE                                                                               \
    .domain = "", .attrs_size = sizeof(TableAttrs), .attrs = window_attrs,                         \
    .verify = window_verify, .infer = window_infer, .fixed = 1, .bind_length = window_bind_length

const OpDef op_HannWindow = {WINDOW_TABLE, .name = "HannWindow", .bind = hann_bind};
const OpDef op_HammingWindow = {WINDOW_TABLE, .name = "HammingWindow", .bind = hamming_bind};
const OpDef op_BlackmanWindow = {WINDOW_TABLE, .name = "BlackmanWindow", .bind = blackman_bind};

/* ---- MelWeightMatrix ---- */

enum { BANDS, LENGTH, RATE, LOWEST, HIGHEST };

typedef struct Mel {
    int64_t bands, length, rate; /* -1: not known */
} Mel;

static bool mel_of(const OpCtx *c, Mel *m) {
    return count_of(c, BANDS, 1, &m->bands) && count_of(c, LENGTH, 1, &m->length) &&
           count_of(c, RATE, 1, &m->rate);
}

static bool mel_verify(const OpCtx *c) {
    Mel m;
    return verify_elem(c) && mel_of(c, &m);
}

static bool mel_infer(OpCtx *c) {
    const TableAttrs *a = c->attrs;
    Mel m;
    Dim *dims = NEW_ARRAY(c->arena, Dim, 2);
    if (!mel_of(c, &m))
        return false;
    dims[0] = dim_or_unknown(m.length < 0 ? -1 : m.length / 2 + 1);
    dims[1] = dim_or_unknown(m.bands);
    c->out[0] = type_tensor((ElemType)a->output_datatype, 2, dims);
    return true;
}

static double mel_of_hertz(double f) {
    return 2595 * log10(1 + f / 700);
}

/* The bin in which edge k of the bands + 2 edges lies, equally far apart in mel. */
static double edge(const Mel *m, double low, double high, int64_t k) {
    double step = (high - low) / (double)(m->bands + 2);
    double hertz = 700 * (pow(10, (low + (double)k * step) / 2595) - 1);
    return floor((double)(m->length + 1) * hertz / (double)m->rate);
}

/* The triangle over the bins from `from` to `to`, 1 at `middle`, into one column. */
static void add_band(double *column, int64_t bands, int64_t from, int64_t middle, int64_t to) {
    for (int64_t j = from; j < middle; j++)
        column[j * bands] = (double)(j - from) / (double)(middle - from);
    column[middle * bands] = 1;
    for (int64_t j = middle + 1; j < to; j++)
        column[j * bands] = (double)(to - j) / (double)(to - middle);
}

static bool mel_bind(Binder *b, const Node *n, const OpCtx *c) {
    const Tensor *lowest = op_const(c, LOWEST), *highest = op_const(c, HIGHEST);
    Mel m;
    if (!mel_of(c, &m))
        return false;
    if (m.bands < 0 || m.length < 0 || m.rate < 0 || !lowest || !highest || !lowest->data ||
        !highest->data || lowest->count != 1 || highest->count != 1)
        return bind_unsupported(b, n, "its numbers are not all constant");
    double low = mel_of_hertz(tensor_float(lowest, 0)),
           high = mel_of_hertz(tensor_float(highest, 0));
    double first = edge(&m, low, high, 0), last = edge(&m, low, high, m.bands + 1);
    if (!(first >= 0 && last >= first && last <= (double)(m.length / 2 + 1)))
        return bind_unsupported(b, n, "its bands are not within the spectrum");
    if (!fits(b, n))
        return false;
    double *x = NEW_ARRAY(binder_arena(b), double, (size_t)bind_count(n->out[0]) + 1);
    for (int64_t i = 0; i < m.bands; i++) {
        int64_t middle = (int64_t)edge(&m, low, high, i + 1);
        if (middle > m.length / 2)
            return bind_unsupported(b, n, "its bands are not within the spectrum");
        add_band(x + i, m.bands, (int64_t)edge(&m, low, high, i), middle,
                 (int64_t)edge(&m, low, high, i + 2));
    }
    return bind_numbers(b, n, x);
}

const OpDef op_MelWeightMatrix = {
    .domain = "",
    .name = "MelWeightMatrix",
    .attrs_size = sizeof(TableAttrs),
    .attrs = mel_attrs,
    .verify = mel_verify,
    .infer = mel_infer,
    .fixed = 0x1f,
    .bind = mel_bind,
};
