/* See exec/shard.h. */
#include <math.h>

#include "exec/shard.h"

/* ---- reading ---- */

static const Attr *find(const Stat *s, const char *name, AttrKind kind) {
    const Attr *a = attr_find(s->attrs, s->n_attrs, str_from(name));
    return a && a->kind == kind ? a : NULL;
}

static bool states(const Stat *s, const char *name) {
    return attr_find(s->attrs, s->n_attrs, str_from(name));
}

static bool read_two(const Stat *s, const char *name, Exact *x, Exact *y) {
    const Attr *a = find(s, name, ATTR_STRINGS);
    return a && a->n == 2 && exact_read(a->v.s[0], x) && exact_read(a->v.s[1], y);
}

static bool read_moments(const Stat *s, Shard *out) {
    const Attr *n = find(s, "elements", ATTR_INT);
    Moments *m = &out->moments;
    out->has_moments = states(s, "elements") || states(s, "sums");
    if (!out->has_moments)
        return true;
    m->count = n && n->n == 1 ? n->v.i[0] : 0;
    return !s->has_axis && read_two(s, "sums", &m->sum, &m->squares) && moments_are_possible(m);
}

static bool add_bins(Arena *a, Histogram *h, const Attr *list) {
    for (size_t i = 0; i < list->n; i += 2)
        if (list->v.i[i + 1] < 0 ||
            !histogram_add_bin(a, h, list->v.i[i], (uint64_t)list->v.i[i + 1]))
            return false;
    return true;
}

/* False where the entries are not of a method. */
static bool read_method(Arena *a, const Stat *s, Shard *out) {
    const Attr *method = find(s, "method", ATTR_STRING), *seen = find(s, "seen", ATTR_FLOATS);
    const Attr *bins = find(s, "hist", ATTR_INTS);
    if (!method || !seen || seen->n != 2 || s->has_axis || !s->min || !s->max ||
        !calib_read_method(method->v.s[0], &out->options))
        return false;
    out->seen = (Range){(double)seen->v.f[0] + 0.0, (double)seen->v.f[1] + 0.0}; /* no -0 */
    if (out->options.method == CALIB_MINMAX || !(out->seen.low <= out->seen.high))
        return false;
    if (!calib_needs_histogram(out->options.method))
        return true;
    out->histogram = NEW(a, Histogram);
    return bins && bins->n % 2 == 0 && add_bins(a, out->histogram, bins);
}

static void forget_method(Shard *x) {
    x->method = STR("minmax"); /* min and max are all there is to it */
    x->options = (CalibOptions){0};
    x->histogram = NULL;
    x->has_ends = false;
}

/* Ends of `count` samples, each less than 2^128. */
static bool read_ends(const Stat *s, Shard *out) {
    out->has_ends = out->options.method == CALIB_MOVING_AVERAGE && states(s, "ends");
    if (!out->has_ends)
        return true;
    double most = ldexp((double)s->count, 128);
    return s->count > 0 && read_two(s, "ends", &out->ends[0], &out->ends[1]) &&
           fabs(exact_double(&out->ends[0])) <= most && fabs(exact_double(&out->ends[1])) <= most;
}

bool shard_read(Arena *a, const Stat *s, Shard *out) {
    const Attr *method = find(s, "method", ATTR_STRING);
    *out = (Shard){0};
    if (!read_method(a, s, out))
        forget_method(out);
    if (method)
        out->method = arena_str(a, method->v.s[0]);
    return read_moments(s, out) && read_ends(s, out);
}

/* ---- writing ---- */

static Attr *entry(Stat *s, const char *name, AttrKind kind, size_t n) {
    Attr *at = &s->attrs[s->n_attrs++];
    *at = (Attr){.name = str_from(name), .kind = kind, .n = n};
    return at;
}

static void write_two(Arena *a, Stat *s, const char *name, const Exact *x, const Exact *y) {
    Buf first = buf_new(a), second = buf_new(a);
    exact_print(&first, x);
    exact_print(&second, y);
    Str both[] = {buf_as_str(&first), buf_as_str(&second)};
    entry(s, name, ATTR_STRINGS, 2)->v.s = arena_copy(a, both, sizeof both);
}

static void write_histogram(Arena *a, const Histogram *h, Stat *s) {
    Bins bins = histogram_bins(a, h);
    int64_t *list = NEW_ARRAY(a, int64_t, 2 * bins.n);
    for (size_t i = 0; i < bins.n; i++) {
        list[2 * i] = bins.at[i].number;
        list[2 * i + 1] = (int64_t)bins.at[i].count;
    }
    entry(s, "hist", ATTR_INTS, 2 * bins.n)->v.i = list;
}

void shard_write(Arena *a, const Shard *x, Stat *s) {
    enum { MOST = 6 };
    s->attrs = NEW_ARRAY(a, Attr, MOST);
    s->n_attrs = 0;
    if (x->has_moments) {
        entry(s, "elements", ATTR_INT, 1)->v.i =
            arena_copy(a, &x->moments.count, sizeof x->moments.count);
        write_two(a, s, "sums", &x->moments.sum, &x->moments.squares);
    }
    if (x->options.method == CALIB_MINMAX)
        return;
    Str method = calib_method_text(a, &x->options);
    float ends[] = {(float)x->seen.low, (float)x->seen.high};
    entry(s, "method", ATTR_STRING, 1)->v.s = arena_copy(a, &method, sizeof method);
    entry(s, "seen", ATTR_FLOATS, 2)->v.f = arena_copy(a, ends, sizeof ends);
    if (x->has_ends)
        write_two(a, s, "ends", &x->ends[0], &x->ends[1]);
    if (x->histogram)
        write_histogram(a, x->histogram, s);
}

void shard_forget(Arena *a, Stat *s) {
    Shard x = {0};
    if (!s->n_attrs)
        return;
    bool all = read_method(a, s, &x);
    size_t n = 0;
    Attr *rest = NEW_ARRAY(a, Attr, s->n_attrs);
    for (size_t i = 0; i < s->n_attrs && !all; i++)
        if (!str_is(s->attrs[i].name, "elements") && !str_is(s->attrs[i].name, "sums"))
            rest[n++] = s->attrs[i];
    s->attrs = rest;
    s->n_attrs = n;
}

/* ---- joining ---- */

static bool join_histograms(Arena *a, Histogram *to, const Histogram *h) {
    Bins bins = histogram_bins(a, h);
    for (size_t i = 0; i < bins.n; i++)
        if (!histogram_add_bin(a, to, bins.at[i].number, bins.at[i].count))
            return false;
    return true;
}

static void join_method(Arena *a, Shard *x, const Shard *y) {
    if (!calib_same_method(&x->options, &y->options) ||
        (x->histogram && !join_histograms(a, x->histogram, y->histogram))) {
        forget_method(x);
        return;
    }
    x->seen = (Range){fmin(x->seen.low, y->seen.low), fmax(x->seen.high, y->seen.high)};
    x->has_ends = x->has_ends && y->has_ends;
    for (int i = 0; i < 2 && x->has_ends; i++)
        exact_add(&x->ends[i], &y->ends[i]);
}

void shard_join(Arena *a, Shard *x, const Shard *y) {
    x->has_moments = x->has_moments && y->has_moments && moments_join(&x->moments, &y->moments);
    join_method(a, x, y);
}

bool shard_says_anything(const Shard *x) {
    return x->has_moments || x->options.method != CALIB_MINMAX;
}

/* ---- ranges ---- */

Range shard_ends(const Shard *x, int64_t count) {
    double n = (double)count;
    return x->has_ends ? (Range){exact_double(&x->ends[0]) / n, exact_double(&x->ends[1]) / n}
                       : x->seen;
}

/* Bins of elements that count: those below count for nothing, wherever the range ends. */
static Bins bins_from(Bins b, double from) {
    while (b.n && b.at->high < from) {
        b.total -= (double)b.at->count;
        b.at++;
        b.n--;
    }
    return b;
}

/* What was hidden has to end up below all that shows. */
static Range with_end(Range r, double from, bool symmetric) {
    if (!(from > -INFINITY))
        return r;
    return (Range){from, symmetric ? fmax(r.high, -from) : r.high};
}

Range shard_range(Arena *a, const Shard *x, double from) {
    Range seen = {fmax(x->seen.low, from), fmax(x->seen.high, from)};
    Bins bins = bins_from(histogram_bins(a, x->histogram), from);
    return with_end(calib_range(a, &x->options, bins, seen), from, x->options.symmetric);
}
