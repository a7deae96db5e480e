/* Statistics: making them, and joining those of several calibrations. See exec/calibrate.h. */
#include <math.h>

#include "exec/shard.h"

static const float *one_float(Arena *a, double x) {
    float f = (float)x;
    return arena_copy(a, &f, sizeof f);
}

Stat *calib_stat(Arena *a, double min, double max, double avg, double std, int64_t count) {
    Stat *s = NEW(a, Stat);
    *s = (Stat){.n = 1, .count = count};
    s->min = one_float(a, min);
    s->max = one_float(a, max);
    s->avg = one_float(a, avg);
    s->std = one_float(a, std);
    return s;
}

struct StatsMerge {
    Module *to;
    Map *by_name;   /* of Value, in the target */
    Shard **shards; /* by Value.id of the target: of its statistics, as far as they are joined */
    Arena *arena;   /* of the target */
    Arena *scratch; /* of the one that is added */
    Diags *diags;
    bool ok;
    size_t mixed;   /* values whose statistics two methods made */
    size_t inexact; /* values whose averages are joined as rounded */
};

/* ---- rows ---- */

/* Joins the i-th entries of two lists that may be absent: NULL where either is. Of zeros of either
 * sign the result is 0. */
typedef double JoinFn(double x, double y);

static const float *join(Arena *a, const float *x, const float *y, size_t n, JoinFn *f) {
    if (!x || !y)
        return NULL;
    float *out = NEW_ARRAY(a, float, n);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(f((double)x[i], (double)y[i]) + 0.0);
    return out;
}

/* What the averages of two shards say of both, each weighing as much as it has seen; where a count
 * is not known, both weigh the same. */
typedef struct Weights {
    double n, k;
} Weights;

static Weights weights_of(const Stat *x, const Stat *y) {
    bool known = x->count > 0 && y->count > 0;
    return (Weights){known ? (double)x->count : 1, known ? (double)y->count : 1};
}

static const float *join_averages(Arena *a, const Stat *to, const float *x, const float *y,
                                  Weights w) {
    if (!x || !y)
        return NULL;
    float *out = NEW_ARRAY(a, float, to->n);
    for (size_t i = 0; i < to->n; i++)
        out[i] = (float)((double)x[i] + ((double)y[i] - (double)x[i]) * w.k / (w.n + w.k));
    return out;
}

/* Without averages, deviations of the two cannot be compared. */
static const float *join_deviations(Arena *a, const Stat *x, const Stat *y, Weights w) {
    if (!x->avg || !y->avg || !x->std || !y->std)
        return NULL;
    float *out = NEW_ARRAY(a, float, x->n);
    for (size_t i = 0; i < x->n; i++) {
        double delta = (double)y->avg[i] - (double)x->avg[i], n = w.n + w.k;
        double sx = (double)x->std[i], sy = (double)y->std[i];
        out[i] = (float)sqrt((sx * sx * w.n + sy * sy * w.k + delta * delta * w.n * w.k / n) / n);
    }
    return out;
}

static const float *copy(Arena *a, const float *x, size_t n) {
    return x ? arena_copy(a, x, n * sizeof *x) : NULL;
}

/* Without what shards state: that is written at the end. */
static Stat *copy_stat(Arena *a, const Stat *s) {
    Stat *out = NEW(a, Stat);
    *out = (Stat){.has_axis = s->has_axis, .axis = s->axis, .n = s->n, .count = s->count};
    out->min = copy(a, s->min, s->n);
    out->max = copy(a, s->max, s->n);
    out->avg = copy(a, s->avg, s->n);
    out->std = copy(a, s->std, s->n);
    return out;
}

/* What both do not state, and what is kept without being understood, is not stated of the whole.
 * Sums are rounded here, and exact ones take their place at the end. */
static Stat *join_rows(Arena *a, const Stat *x, const Stat *y, bool averages) {
    Stat *out = NEW(a, Stat);
    Weights w = weights_of(x, y);
    *out = (Stat){.has_axis = x->has_axis, .axis = x->axis, .n = x->n, .loc = x->loc};
    out->count = x->count > 0 && y->count > 0 ? x->count + y->count : 0;
    out->min =
        averages ? join_averages(a, x, x->min, y->min, w) : join(a, x->min, y->min, x->n, fmin);
    out->max =
        averages ? join_averages(a, x, x->max, y->max, w) : join(a, x->max, y->max, x->n, fmax);
    out->avg = join_averages(a, x, x->avg, y->avg, w);
    out->std = join_deviations(a, x, y, w);
    return out;
}

/* ---- values ---- */

static Shard *read_shard(StatsMerge *m, Arena *a, const Value *v) {
    Shard *s = NEW(a, Shard);
    if (shard_read(a, v->stat, s))
        return s;
    m->ok = diag_error(m->diags, v->stat->loc,
                       "what the statistics of %s state for merging (elements and sums, or ends) "
                       "is not what qxc writes there",
                       diag_name(m->diags, v->name));
    return NULL;
}

/* Said once, of the first. */
static void warn_of_methods(StatsMerge *m, const Value *v, const Shard *x, const Shard *y) {
    if (str_eq(x->method, y->method) || m->mixed++)
        return;
    diag_warning(m->diags, v->stat->loc,
                 "statistics of %s are by method %s here and %s in the first model; where methods "
                 "differ, the range is the wider of both",
                 diag_name(m->diags, v->name), diag_name(m->diags, y->method),
                 diag_name(m->diags, x->method));
}

static void warn_of_rounding(StatsMerge *m, const Value *v) {
    if (m->inexact++)
        return;
    diag_warning(m->diags, v->stat->loc,
                 "statistics of %s do not state their sums, here or before: averages and "
                 "deviations of the whole may differ in the last digits from those of one run, and "
                 "with the order of models",
                 diag_name(m->diags, v->name));
}

static bool is_average(const Shard *x) {
    return x->options.method == CALIB_MOVING_AVERAGE;
}

/* Those of `to` become those of both, `v` has the statistics of the one that is added. */
static void join_stats(StatsMerge *m, Value *to, const Value *v, const Shard *y) {
    Shard *x = m->shards[to->id];
    bool rounds = to->stat->avg && v->stat->avg && !(x->has_moments && y->has_moments);
    bool averages = is_average(x) && calib_same_method(&x->options, &y->options);
    warn_of_methods(m, v, x, y);
    if (rounds || (averages && !(x->has_ends && y->has_ends)))
        warn_of_rounding(m, v);
    to->stat = join_rows(m->arena, to->stat, v->stat, averages);
    shard_join(m->arena, x, y);
}

/* "moving-average=0.01": what came last weighs most. */
static bool depends_on_order(StatsMerge *m, const Value *v, const Shard *s) {
    if (!is_average(s) || !(s->options.averaging > 0))
        return false;
    m->ok = diag_error(m->diags, v->stat->loc,
                       "statistics of %s are by method %s, which depends on the order of samples, "
                       "so that shards cannot be merged: moving-average weighs all samples alike",
                       diag_name(m->diags, v->name), diag_name(m->diags, s->method));
    return true;
}

static bool fits(StatsMerge *m, const Value *v, const Stat *x, const Stat *y) {
    if (x->n != y->n || x->has_axis != y->has_axis || (x->has_axis && x->axis != y->axis))
        return diag_error(m->diags, y->loc,
                          "statistics of %s are per index of another axis than in the first model",
                          diag_name(m->diags, v->name));
    if (x->count > 0 && y->count > INT64_MAX - x->count)
        return diag_error(m->diags, y->loc,
                          "statistics of %s count more samples than 64 bits hold, with those of "
                          "the first model",
                          diag_name(m->diags, v->name));
    return true;
}

/* Statistics of constants are those of the first model. */
static void add_value(Value *v, void *ctx) {
    StatsMerge *m = ctx;
    if (!v->stat || v->kind == VALUE_CONST)
        return;
    Value *to = map_get(m->by_name, v->name);
    if (!to) {
        m->ok = diag_error(m->diags, v->loc, "value %s is not in the first model",
                           diag_name(m->diags, v->name));
        return;
    }
    if (to->stat && !fits(m, v, to->stat, v->stat)) {
        m->ok = false;
        return;
    }
    Shard *y = read_shard(m, to->stat ? m->scratch : m->arena, v);
    if (!y || depends_on_order(m, v, y))
        return;
    if (to->stat) {
        join_stats(m, to, v, y);
        return;
    }
    to->stat = copy_stat(m->arena, v->stat);
    m->shards[to->id] = y;
}

/* ---- the whole ---- */

static void begin_value(Value *v, void *ctx) {
    StatsMerge *m = ctx;
    if (v->kind == VALUE_CONST)
        return;
    map_set(m->by_name, v->name, v);
    Shard *x = v->stat ? read_shard(m, m->arena, v) : NULL;
    if (x && !depends_on_order(m, v, x))
        m->shards[v->id] = x;
}

StatsMerge *stats_merge_begin(Module *to, Diags *d) {
    StatsMerge *m = NEW(to->arena, StatsMerge);
    *m = (StatsMerge){.to = to, .arena = to->arena, .diags = d, .ok = true};
    m->by_name = map_new(m->arena);
    m->shards = NEW_ARRAY(m->arena, Shard *, to->n_values);
    module_each_value(to, begin_value, m);
    return m->ok ? m : NULL;
}

bool stats_merge_add(StatsMerge *m, const Module *from) {
    m->scratch = arena_scratch(m->arena);
    module_each_value((Module *)(uintptr_t)from, add_value, m);
    arena_free(m->scratch);
    return m->ok;
}

typedef struct End {
    StatsMerge *m;
    CountsFrom *counts_from;
    const void *ctx;
    double *from; /* by Value.id */
} End;

/* Averages, and the range that a method begins with. */
static void end_numbers(Value *v, void *ctx) {
    const StatsMerge *m = ((const End *)ctx)->m;
    Shard *x = m->shards[v->id];
    if (!x)
        return;
    if (x->has_moments) {
        v->stat->avg = one_float(m->arena, moments_mean(&x->moments));
        v->stat->std = one_float(m->arena, moments_deviation(&x->moments));
    }
    if (x->has_ends || x->histogram) {
        Range r = shard_ends(x, v->stat->count);
        v->stat->min = one_float(m->arena, r.low);
        v->stat->max = one_float(m->arena, r.high);
    }
}

static void ask_from(Value *v, void *ctx) {
    End *e = ctx;
    Shard *x = e->m->shards[v->id];
    e->from[v->id] =
        x && x->histogram && e->counts_from ? (double)e->counts_from(e->ctx, v) : -INFINITY;
}

static void end_range(Value *v, void *ctx) {
    const End *e = ctx;
    Shard *x = e->m->shards[v->id];
    if (x && x->histogram) {
        Range r = shard_range(e->m->arena, x, e->from[v->id]);
        v->stat->min = one_float(e->m->arena, r.low);
        v->stat->max = one_float(e->m->arena, r.high);
    }
    if (x && shard_says_anything(x))
        shard_write(e->m->arena, x, v->stat);
}

void stats_merge_end(StatsMerge *m, CountsFrom *counts_from, const void *ctx) {
    End e = {m, counts_from, ctx, NEW_ARRAY(m->arena, double, m->to->n_values)};
    module_each_value(m->to, end_numbers, &e); /* each needs the one before of all values */
    module_each_value(m->to, ask_from, &e);
    module_each_value(m->to, end_range, &e);
}
