/* The methods of calibration: their names, the ranges they choose, and what has to be kept in the
 * statistics so that shards can be joined as if they had been one run. See exec/calibrate.h. */
#include <math.h>
#include <stdlib.h>

#include "exec/calibrate.h"

static const struct {
    const char *name;
    CalibMethod method;
} methods[] = {{"minmax", CALIB_MINMAX},
               {"moving-average", CALIB_MOVING_AVERAGE},
               {"percentile", CALIB_PERCENTILE},
               {"entropy", CALIB_ENTROPY},
               {"mse", CALIB_MSE}};

enum { METHODS = sizeof methods / sizeof *methods };

static bool parse_number(Str text, double *out) {
    char number[32] = {0}, *end;
    if (text.n == 0 || text.n >= sizeof number)
        return false;
    memcpy(number, text.s, text.n);
    *out = strtod(number, &end);
    return *end == 0;
}

static bool parse_parameter(CalibOptions *o, Str text) {
    if (o->method == CALIB_PERCENTILE)
        return parse_number(text, &o->percentile) && o->percentile > 50 && o->percentile <= 100;
    return o->method == CALIB_MOVING_AVERAGE && parse_number(text, &o->averaging) &&
           o->averaging > 0 && o->averaging <= 1;
}

bool calib_parse(Str text, CalibOptions *o) {
    const char *equals = memchr(text.s, '=', text.n);
    Str name = {text.s, equals ? (size_t)(equals - text.s) : text.n};
    for (size_t i = 0; i < METHODS; i++)
        if (str_is(name, methods[i].name)) {
            o->method = methods[i].method;
            return !equals || parse_parameter(o, (Str){equals + 1, text.n - name.n - 1});
        }
    return false;
}

bool calib_needs_histogram(CalibMethod m) {
    return m == CALIB_PERCENTILE || m == CALIB_ENTROPY || m == CALIB_MSE;
}

Range calib_range(Arena *a, const CalibOptions *o, Bins bins, Range seen) {
    RangeQuery q = {seen, o->symmetric, o->levels ? o->levels : 256};
    if (o->method == CALIB_PERCENTILE)
        return range_percentile(bins, &q, o->percentile > 0 ? o->percentile : 99.999);
    if (o->method == CALIB_ENTROPY)
        return range_entropy(a, bins, &q);
    return o->method == CALIB_MSE ? range_mse(bins, &q) : seen;
}

/* ---- in the statistics ---- */

/* "percentile=99.9", and where they matter: "mse levels=16 symmetric". */
static Str method_text(Arena *a, const CalibOptions *o) {
    Buf b = buf_new(a);
    buf_text(&b, methods[o->method].name);
    if (o->method == CALIB_PERCENTILE && o->percentile > 0) {
        buf_byte(&b, '=');
        buf_f64(&b, o->percentile);
    }
    if (o->method == CALIB_MOVING_AVERAGE && o->averaging > 0) {
        buf_byte(&b, '=');
        buf_f64(&b, o->averaging);
    }
    if (calib_needs_histogram(o->method) && o->levels && o->levels != 256)
        buf_fmt(&b, " levels=%lld", (long long)o->levels);
    if (calib_needs_histogram(o->method) && o->symmetric)
        buf_text(&b, " symmetric");
    return buf_as_str(&b);
}

static bool read_method(Str text, CalibOptions *o) {
    bool first = true;
    while (text.n) {
        size_t n = 0;
        while (n < text.n && text.s[n] != ' ')
            n++;
        Str word = {text.s, n};
        double levels;
        if (first ? !calib_parse(word, o) : false)
            return false;
        if (!first && str_is(word, "symmetric"))
            o->symmetric = true;
        else if (!first && str_starts(word, "levels=") &&
                 parse_number((Str){word.s + 7, n - 7}, &levels) && levels >= 2 && levels < 1e9)
            o->levels = (int64_t)levels;
        else if (!first)
            return false;
        first = false;
        n += n < text.n;
        text = (Str){text.s + n, text.n - n};
    }
    return !first;
}

static Attr entry(const char *name, AttrKind kind, size_t n) {
    return (Attr){.name = str_from(name), .kind = kind, .n = n};
}

void calib_keep(Arena *a, Stat *s, const CalibOptions *o, Bins bins, Range seen) {
    if (o->method == CALIB_MINMAX)
        return; /* min and max are all there is to it */
    Attr *at = NEW_ARRAY(a, Attr, 3);
    Str text = method_text(a, o);
    float ends[] = {(float)seen.low, (float)seen.high};
    at[0] = entry("method", ATTR_STRING, 1);
    at[0].v.s = arena_copy(a, &text, sizeof text);
    at[1] = entry("seen", ATTR_FLOATS, 2);
    at[1].v.f = arena_copy(a, ends, sizeof ends);
    s->attrs = at;
    s->n_attrs = 2;
    if (!bins.n)
        return;
    int64_t *list = NEW_ARRAY(a, int64_t, 2 * bins.n);
    for (size_t i = 0; i < bins.n; i++) {
        list[2 * i] = bins.at[i].number;
        list[2 * i + 1] = (int64_t)bins.at[i].count;
    }
    at[2] = entry("hist", ATTR_INTS, 2 * bins.n);
    at[2].v.i = list;
    s->n_attrs = 3;
}

static const Attr *find(const Stat *s, const char *name, AttrKind kind) {
    for (size_t i = 0; i < s->n_attrs; i++)
        if (str_is(s->attrs[i].name, name))
            return s->attrs[i].kind == kind ? &s->attrs[i] : NULL;
    return NULL;
}

typedef struct Kept { /* the entries of one stat */
    Str method;
    Range seen;
    const Attr *bins; /* NULL: the method needs none */
    CalibOptions options;
} Kept;

static bool read_kept(const Stat *s, Kept *k) {
    const Attr *method = find(s, "method", ATTR_STRING), *seen = find(s, "seen", ATTR_FLOATS);
    *k = (Kept){0};
    if (!method || !seen || seen->n != 2 || s->has_axis || !s->min || !s->max ||
        !read_method(method->v.s[0], &k->options))
        return false;
    k->method = method->v.s[0];
    k->seen = (Range){(double)seen->v.f[0], (double)seen->v.f[1]};
    k->bins = find(s, "hist", ATTR_INTS);
    if (k->options.method == CALIB_MINMAX || !(k->seen.low <= k->seen.high))
        return false;
    return !calib_needs_histogram(k->options.method) || (k->bins && k->bins->n % 2 == 0);
}

static bool add_bins(Arena *a, Histogram *h, const Attr *list) {
    for (size_t i = 0; i < list->n; i += 2)
        if (list->v.i[i + 1] < 0 ||
            !histogram_add_bin(a, h, list->v.i[i], (uint64_t)list->v.i[i + 1]))
            return false;
    return true;
}

void calib_copy_kept(Arena *a, const Stat *from, Stat *to) {
    Kept k;
    Histogram *h = NEW(a, Histogram);
    if (read_kept(from, &k) && (!k.bins || add_bins(a, h, k.bins)))
        calib_keep(a, to, &k.options, histogram_bins(a, h), k.seen);
}

void calib_forget(Stat *s) {
    Kept k;
    if (!read_kept(s, &k))
        return;
    s->attrs = NULL;
    s->n_attrs = 0;
}

/* Averages of the extremes of samples, each weighing as much as it has seen. */
static Range average(const Stat *x, const Stat *y) {
    double n = (double)x->count, k = (double)y->count;
    return (Range){((double)x->min[0] * n + (double)y->min[0] * k) / (n + k),
                   ((double)x->max[0] * n + (double)y->max[0] * k) / (n + k)};
}

bool calib_join(Arena *a, const Stat *x, const Stat *y, Stat *out) {
    Kept kx, ky;
    if (!read_kept(x, &kx) || !read_kept(y, &ky) || !str_eq(kx.method, ky.method))
        return false;
    const CalibOptions *o = &kx.options;
    Range seen = {fmin(kx.seen.low, ky.seen.low), fmax(kx.seen.high, ky.seen.high)}, range;
    Bins bins = {0};
    if (calib_needs_histogram(o->method)) {
        Histogram *h = NEW(a, Histogram);
        if (!add_bins(a, h, kx.bins) || !add_bins(a, h, ky.bins))
            return false;
        bins = histogram_bins(a, h);
        range = calib_range(a, o, bins, seen);
    } else if (o->averaging > 0 || x->count <= 0 || y->count <= 0) {
        return false; /* which samples came last is not known */
    } else {
        range = average(x, y);
    }
    float low = (float)range.low, high = (float)range.high;
    out->min = arena_copy(a, &low, sizeof low);
    out->max = arena_copy(a, &high, sizeof high);
    calib_keep(a, out, o, bins, seen);
    return true;
}
