#include "ir/verify_quant.h"
#include "support/rows.h"

#include <math.h>

/* " (entry 3)" for vectors, nothing for a single parameter. */
static const char *entry(Diags *d, size_t i, size_t n) {
    static const char *const none = "";
    if (n <= 1)
        return none;
    char text[32];
    int len = snprintf(text, sizeof text, " (entry %zu)", i);
    return diag_name(d, (Str){text, (size_t)len});
}

static QuantLocs stated(const Quant *q) {
    return q->at ? *q->at : (QuantLocs){.scale = LOC_NONE};
}

/* Where the part stands, if the text says it. */
static Loc part(Loc stated, Loc at) {
    return stated.source ? stated : at;
}

/* The first wrong one is reported; a vector's others are likely wrong for the same reason. */
static bool verify_scales(const Quant *q, Loc at, Diags *d) {
    if (row_is_positive(q->scale, q->n_scale))
        return true;
    size_t i = 0;
    while (i < q->n_scale && isnormal(q->scale[i]) && q->scale[i] > 0)
        i++;
    float s = q->scale[i];
    const char *where = entry(d, i, q->n_scale);
    at = part(stated(q).scale, at);
    if (isnan(s) || isinf(s))
        return diag_error(d, at, "the scale%s is not a finite number", where);
    if (s <= 0)
        return diag_error(d, at, "the scale%s is %g; scales are greater than 0", where, (double)s);
    return diag_error(d, at,
                      "the scale%s is smaller than any normal float, the least of which is "
                      "1.17549435e-38",
                      where);
}

static bool verify_range(const Quant *q, Loc at, Diags *d) {
    if (!quant_is_integers(q) || !q->has_range)
        return true;
    at = part(stated(q).range, at);
    int64_t min = elem_min(q->storage), max = elem_max(q->storage);
    if (q->lo >= q->hi)
        return diag_error(d, at, "the range %lld:%lld is empty", (long long)q->lo,
                          (long long)q->hi);
    if (q->lo < min || q->hi > max)
        return diag_error(d, at, "the range %lld:%lld exceeds %s, which holds %lld to %lld",
                          (long long)q->lo, (long long)q->hi, elem_name(q->storage), (long long)min,
                          (long long)max);
    return true;
}

/* Floats tell the sums of neighbours apart, and kernels add in 32 bits. */

static bool verify_wide_zps(const Quant *q, Loc at, Diags *d) {
    for (size_t i = 0; i < q->n_zp; i++)
        if (q->zp[i] < -QUANT_WIDEST_ZP || q->zp[i] > QUANT_WIDEST_ZP)
            return diag_error(d, at, "zero point %lld%s: even with -wide-zp it lies within +-%d",
                              (long long)q->zp[i], entry(d, i, q->n_zp), QUANT_WIDEST_ZP);
    return elem_bits(q->storage) <= 16 || !quant_is_wide(q) ||
           diag_error(d, at, "-wide-zp is for storage types of at most 16 bits");
}

static bool verify_zps(const Quant *q, Loc at, Diags *d) {
    at = part(stated(q).zp, at);
    if (!quant_is_integers(q))
        return quant_zp_all_zero(q) ||
               diag_error(d, at, "%s has no zero point but 0", elem_name(q->storage));
    if (q->wide_zp && quant_is_wide(q))
        return verify_wide_zps(q, at, d);
    for (size_t i = 0; i < q->n_zp; i++) {
        int64_t zp = q->zp[i];
        if (zp < q->lo || zp > q->hi)
            return diag_error(d, at,
                              "zero point %lld%s is outside %s %lld:%lld: real 0 would have "
                              "no representation (-wide-zp computes around that)",
                              (long long)zp, entry(d, i, q->n_zp),
                              q->has_range ? "the range" : elem_name(q->storage), (long long)q->lo,
                              (long long)q->hi);
    }
    return true;
}

bool verify_block_size(int64_t size, Loc at, Diags *d) {
    return (size > 0 && size <= INT32_MAX) || /* kernels make an int32 of it */
           diag_error(d, at, "a block has 1 to 2147483647 elements");
}

static bool verify_axes(const Quant *q, Loc at, Diags *d) {
    at = part(stated(q).axis, at);
    for (int i = 0; i < q->n_axes; i++) {
        if (q->axis[i] < 0)
            return diag_error(d, at, "axis %d is negative", q->axis[i]);
        if (!verify_block_size(q->block[i], at, d))
            return false;
        for (int k = 0; k < i; k++)
            if (q->axis[k] == q->axis[i])
                return diag_error(d, at, "axis %d stands twice", q->axis[i]);
    }
    return true;
}

/* Nothing would honour what <?> and <dynamic> said of parameters, nor print it. */
static bool verify_open(const Quant *q, Loc at, Diags *d) {
    bool states = q->n_scale || q->n_zp > 0;
    if (!states && !q->n_axes)
        return true;
    at = part(states ? stated(q).zp : stated(q).axis, at);
    const char *what = states ? "zero point" : "axis", *name = elem_name(q->storage);
    if (q->kind == QUANT_DYNAMIC)
        return diag_error(d, at, "the %s follows with the scale as the model runs: %sq<dynamic>",
                          what, name);
    return diag_error(
        d, at,
        "'?' leaves the %s open with the scale: write %sq<?>. Weights get a scale for "
        "each channel; a rule in scheme { } says sym, per-tensor or block(32)",
        what, name);
}

/* What nothing here finds scales for, and ONNX has no conversions of. */
static bool verify_floats(const Quant *q, Loc at, Diags *d) {
    if (quant_is_integers(q))
        return true;
    if (q->kind == QUANT_DYNAMIC || q->kind == QUANT_UNKNOWN)
        return diag_error(d, at, "qxc finds no scales for %s: state them", elem_name(q->storage));
    return elem_bits(q->expressed) <= 32 ||
           diag_error(d, part(stated(q).expr, at), "%s stands for float, float16 or bfloat16 only",
                      elem_name(q->storage));
}

bool verify_quant(const Quant *q, Loc at, Diags *d) {
    bool ok = verify_range(q, at, d);
    ok = verify_floats(q, at, d) && ok;
    if (q->kind == QUANT_UNKNOWN || q->kind == QUANT_DYNAMIC)
        return verify_open(q, at, d) && ok;
    if (q->n_scale == 0)
        return diag_error(d, at, "the quantization has no scale");
    if (q->n_axes == 0 && q->n_scale > 1)
        return diag_error(d, part(stated(q).scale, at),
                          "%zu scales need an axis, as in int8q<[...], 0, axis=0>", q->n_scale);
    if (q->n_zp > 1 && q->n_zp != q->n_scale)
        ok = diag_error(d, part(stated(q).zp, at), "%zu zero points for %zu scale%s", q->n_zp,
                        q->n_scale, plural(q->n_scale));
    ok &= verify_scales(q, at, d);
    if (ok)
        ok &= verify_zps(q, at, d);
    return verify_axes(q, at, d) && ok;
}

/* How many entries the grid of blocks has; 0 after an error. */
static size_t grid_size(Type t, const Quant *q, Loc at, Diags *d) {
    int64_t n = 1;
    for (int i = 0; i < q->n_axes; i++) {
        if (q->axis[i] >= t.rank) {
            diag_error(d, at, "axis %d does not exist: the tensor has %d dimension%s", q->axis[i],
                       t.rank, plural(t.rank));
            return 0;
        }
        int64_t dim = t.dims[q->axis[i]].value, block = q->block[i];
        if (dim < 0) {
            diag_error(d, at, "axis %d is quantized, so its dimension must be a number",
                       q->axis[i]);
            return 0;
        }
        int64_t blocks = dim / block + (dim % block != 0);
        if (__builtin_mul_overflow(n, blocks, &n))
            n = INT64_MAX; /* no vector is that long: refused below */
    }
    return n == 0 ? SIZE_MAX : (size_t)n;
}

static bool verify_shape(Type t, Loc at, Diags *d) {
    const Quant *q = t.quant;
    if (t.rank > MAX_RANK)
        return diag_error(d, at, "a quantized tensor has at most %d dimensions, not %d", MAX_RANK,
                          t.rank);
    if (!q->n_axes || t.rank < 0)
        return !q->n_axes ||
               diag_error(d, at, "a tensor of unknown rank cannot be quantized along an axis");
    size_t grid = grid_size(t, q, at, d);
    if (!grid)
        return false;
    if (grid == SIZE_MAX) /* no elements */
        grid = 0;
    if (q->n_scale && q->n_scale != grid) {
        if (q->n_axes == 1 && q->block[0] == 1)
            return diag_error(d, at, "%zu scales for axis %d of length %zu", q->n_scale, q->axis[0],
                              grid);
        return diag_error(d, at, "%zu scales for a grid of %zu blocks", q->n_scale, grid);
    }
    return true;
}

bool verify_quant_type(Type t, Loc at, Diags *d) {
    bool ok = true;
    for (;;) {
        if (t.kind == TYPE_TENSOR && t.quant)
            ok &= verify_shape(t, at, d);
        if (!t.sub)
            return ok;
        t = *t.sub;
    }
}

static bool bytes_within(const Tensor *t, int64_t lo, int64_t hi) {
    enum { PART = 4096 };
    uint8_t bytes[PART];
    if (elem_bits(t->elem) > 8)
        return false;
    for (size_t i = 0; i < t->count; i += PART) {
        size_t n = t->count - i < PART ? t->count - i : PART;
        int min, max;
        elem_load_bytes(t->elem, t->data, i, bytes, n);
        if (elem_is_signed(t->elem))
            row_range_s8((const int8_t *)bytes, n, &min, &max);
        else
            row_range_u8(bytes, n, &min, &max);
        if (min < lo || max > hi)
            return false;
    }
    return true;
}

/* Whether the elements keep a range that lies within that of q. */
static bool known_within(const Tensor *t, const Quant *q) {
    const Quant *w = t->within;
    return w && w->storage == q->storage && w->lo >= q->lo && w->hi <= q->hi;
}

bool verify_quant_const(Type t, Tensor *data, Loc at, Diags *d) {
    const Quant *q = t.quant;
    if (!q || !data || !data->data || !elem_is_int(data->elem) || data->elem != q->storage)
        return true;
    if (q->lo <= elem_min(q->storage) && q->hi >= elem_max(q->storage))
        return true;
    if (known_within(data, q))
        return true;
    if (bytes_within(data, q->lo, q->hi)) {
        data->within = q;
        return true;
    }
    for (size_t i = 0; i < data->count; i++) {
        int64_t v = elem_load_int(data->elem, data->data, i);
        if (v < q->lo || v > q->hi)
            return diag_error(d, at, "element %zu is %lld, outside the range %lld:%lld of its type",
                              i, (long long)v, (long long)q->lo, (long long)q->hi);
    }
    return true;
}

/* ---- a whole module ---- */

typedef struct Walk {
    Diags *diags;
    bool ok;
} Walk;

/* All parameters are read, and may leave memory again. */
static bool look_at(const Module *m, const Quant *q, Loc at, Diags *d) {
    bool ok = verify_quant(q, at, d);
    module_release_quant(m, q);
    return ok;
}

/* A quantization with a line of its own is checked there, once. */
static void verify_value(Walk *w, const Value *v) {
    Type t = v->type;
    if (v->misread)
        return;
    if (t.quant && !t.quant->alias.s)
        w->ok &= look_at(v->graph->module, t.quant, t.quant->loc.source ? t.quant->loc : v->loc,
                         w->diags);
    const Quant *known = v->data ? v->data->within : NULL;
    w->ok &=
        verify_quant_type(t, v->loc, w->diags) && verify_quant_const(t, v->data, v->loc, w->diags);
    if (v->data && v->data->within != known)
        module_release(v->graph->module, v->data); /* all of it was read */
}

static void verify_graph(Graph *g, void *ctx) {
    for (size_t i = 0; i < g->n_in; i++)
        verify_value(ctx, g->in[i]);
    for (size_t i = 0; i < g->n_consts; i++)
        verify_value(ctx, g->consts[i]);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            verify_value(ctx, n->out[i]);
}

bool verify_quants(Module *m, Diags *d) {
    Walk w = {d, true};
    for (size_t i = 0; i < m->n_quants; i++)
        w.ok &= look_at(m, m->quants[i], m->quants[i]->loc, d);
    module_each_graph(m, verify_graph, &w);
    return w.ok;
}
