/* See exec/sample_files.h. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "exec/sample_files.h"
#include "ir/minifloat.h"

/* ---- files ---- */

static int by_name(const void *x, const void *y) {
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static bool is_array_file(Str name) {
    return str_ends(name, ".npz") || str_ends(name, ".npy");
}

static bool add_folder(Arena *a, const char *path, SampleFiles *out, Diags *d) {
    size_t first = out->n;
    bool onnx = false;
    DIR *dir = opendir(path);
    if (!dir)
        return diag_error(d, LOC_NONE, "cannot read folder '%s': %s", diag_name(d, str_from(path)),
                          strerror(errno));
    for (struct dirent *e; (e = readdir(dir));) {
        Str name = str_from(e->d_name);
        onnx |= str_ends(name, ".pb") || str_starts(name, "test_data_set");
        if (is_array_file(name))
            ARENA_PUSH(a, out->paths, out->n, out->cap, arena_strf(a, "%s/%s", path, e->d_name).s);
    }
    closedir(dir);
    if (out->n > first)
        qsort(out->paths + first, out->n - first, sizeof *out->paths, by_name);
    else if (onnx)
        return diag_error(d, LOC_NONE,
                          "folder '%s' is an ONNX data set (input_N.pb), which is not read yet",
                          diag_name(d, str_from(path)));
    else
        return diag_error(d, LOC_NONE, "no .npz or .npy file in folder '%s'",
                          diag_name(d, str_from(path)));
    return true;
}

bool sample_files(Arena *a, const char *const *paths, size_t n, SampleFiles *out, Diags *d) {
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        if (stat(paths[i], &st))
            ok = diag_error(d, LOC_NONE, "cannot open '%s': %s", diag_name(d, str_from(paths[i])),
                            strerror(errno));
        else if (S_ISDIR(st.st_mode))
            ok &= add_folder(a, paths[i], out, d);
        else
            ARENA_PUSH(a, out->paths, out->n, out->cap, paths[i]);
    }
    return ok;
}

/* ---- whose array ---- */

size_t sample_inputs(const Graph *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_in; i++)
        n += !g->in[i]->data;
    return n;
}

SampleLayout sample_layout(Type t, const NpyArray *a) {
    bool batch = t.rank > 0 && (t.dims[0].value == 1 || t.dims[0].value < 0);
    if (t.rank < 0 || (a->rank != t.rank && a->rank != t.rank + 1))
        return (SampleLayout){0};
    if (a->rank > t.rank)
        return (SampleLayout){.fits = true, .extra = true, .data = 1, .n = a->dims[0]};
    if (!batch || a->dims[0] == t.dims[0].value)
        return (SampleLayout){.fits = true, .whole = true, .n = 1};
    return (SampleLayout){.fits = true, .type = 1, .data = 1, .n = a->dims[0]};
}

int sample_array_of(const Npz *npz, const char *path, const Value *v, size_t n_inputs) {
    int i = npz_find(npz, v->name);
    if (i >= 0 || n_inputs != 1 || npz_size(npz) != 1)
        return i;
    bool unnamed = !str_ends(str_from(path), ".npz") || str_is(npz_at(npz, 0)->name, "arr_0");
    return unnamed ? 0 : -1;
}

/* ---- elements ---- */

static bool quantizes(const Value *v) {
    const Quant *q = v->type.quant;
    return type_is_quantized(v->type) && q->kind == QUANT_PARAMS && q->n_scale > 0;
}

bool sample_convertible(const Value *v, ElemType from) {
    ElemType to = v->type.elem;
    if (from == ELEM_UNDEFINED || elem_bits(to) == 0)
        return false;
    if (from == to)
        return true;
    if (elem_is_float(to))
        return elem_bits(to) >= 16 && (elem_is_float(from) || elem_is_int(from));
    if (elem_is_float(from))
        return quantizes(v);
    if (to == ELEM_BOOL)
        return elem_is_int(from);
    return elem_is_int(to) && (elem_is_int(from) || from == ELEM_BOOL);
}

static bool misfit(const Value *v, const Tensor *t, size_t i, const char *what, Diags *d) {
    long long x = (long long)tensor_int(t, i);
    return diag_error(d, LOC_NONE,
                      t->elem == ELEM_UINT64 ? "input %s: element %llu %s %s"
                                             : "input %s: element %lld %s %s",
                      diag_name(d, v->name), x, what, elem_name(v->type.elem));
}

static int64_t quantize(const Value *v, float x, size_t i) {
    const Quant *q = v->type.quant;
    int64_t dims[MAX_RANK];
    int rank = type_lengths(v->type, dims);
    size_t at = quant_is_per_tensor(q) ? 0 : quant_index(q, rank, dims, i);
    return quant_of_real(q, at, x);
}

static bool convert_int(const Value *v, const Tensor *t, size_t i, uint8_t *dst, Diags *d) {
    ElemType to = v->type.elem;
    int64_t x = tensor_int(t, i);
    bool huge = t->elem == ELEM_UINT64 && x < 0;
    if (elem_is_float(to)) {
        double y = tensor_float(t, i);
        uint64_t bits;
        bool exact = !huge && float_encode(to, y, &bits);
        double back = exact ? float_decode(to, bits) : 0;
        exact = exact && fabs(back) < (to == ELEM_DOUBLE ? 0x1p53 : 0x1p62) && (int64_t)back == x;
        if (!exact)
            return misfit(v, t, i, "is not exact as", d);
        memcpy(dst + i * elem_bytes(to, 1), &bits, elem_bytes(to, 1));
        return true;
    }
    bool fits = to == ELEM_BOOL     ? x == 0 || x == 1
                : to == ELEM_INT64  ? !huge
                : to == ELEM_UINT64 ? x >= 0 || huge
                                    : !huge && x >= elem_min(to) && x <= elem_max(to);
    if (!fits)
        return misfit(v, t, i, "does not fit", d);
    elem_store_int(to, dst, i, x);
    return true;
}

/* Too large is infinite. */
static uint64_t float_bits(ElemType to, double x) {
    uint64_t bits;
    if (!float_encode(to, x, &bits))
        float_encode(to, copysign((double)INFINITY, x), &bits);
    return bits;
}

bool sample_convert(const Value *v, ElemType from, const uint8_t *src, uint8_t *dst, size_t n,
                    Diags *d) {
    ElemType to = v->type.elem;
    Tensor t = {.elem = from, .rank = 1, .dims = (int64_t[]){(int64_t)n}, .count = n, .data = src};
    t.bytes = elem_bytes(from, n);
    if (from == to) {
        if (n) /* a tensor without elements need not have an address */
            memcpy(dst, src, t.bytes);
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        double x = elem_is_float(from) ? tensor_float(&t, i) : 0;
        float f = (float)x;
        if (!elem_is_float(from)) {
            if (!convert_int(v, &t, i, dst, d))
                return false;
        } else if (to == ELEM_FLOAT) {
            memcpy(dst + 4 * i, &f, 4);
        } else if (to == ELEM_DOUBLE) {
            memcpy(dst + 8 * i, &x, 8);
        } else if (elem_is_float(to)) {
            uint64_t bits = float_bits(to, x);
            memcpy(dst + elem_bytes(to, 1) * i, &bits, elem_bytes(to, 1));
        } else {
            elem_store_int(to, dst, i, quantize(v, f, i));
        }
    }
    return true;
}
