/* The methods of calibration: their names, and the ranges they choose. See exec/calibrate.h. */
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

Str calib_method_text(Arena *a, const CalibOptions *o) {
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

bool calib_read_method(Str text, CalibOptions *o) {
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

bool calib_same_method(const CalibOptions *x, const CalibOptions *y) {
    return x->method == y->method && x->percentile == y->percentile &&
           x->averaging == y->averaging && x->symmetric == y->symmetric && x->levels == y->levels;
}
