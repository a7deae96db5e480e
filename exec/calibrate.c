/* See exec/calibrate.h. */
#include <math.h>

#include "exec/calibrate.h"
#include "exec/evaluate.h"
#include "exec/partial.h"
#include "exec/shard.h"

/* Elements of a value that are NaN or infinite, in samples where it reads none. Else they follow
 * from others, and are counted there. */
typedef struct Odd {
    int64_t nans, infs, samples;
    size_t first;               /* of these samples */
    int64_t follow, in;         /* elements of others, in so many values */
    size_t sample;              /* the last one + 1 that has some, of whatever origin */
    struct Track *cause, *last; /* of these: itself, or where they are from; the same before */
} Odd;

typedef struct Track Track;
struct Track { /* of one value */
    const Value *value;
    double min, max;
    int64_t samples;
    double low, high; /* moving average of min and max where the last sample weighs most */
    Exact ends[2];    /* sums of min and max of each sample where all weigh the same */
    MomentsCounter moments;
    Histogram *histogram;
    double from; /* what lies below counts for nothing */
    Odd odd;
};

typedef struct Calibration {
    Arena *arena;
    CalibOptions options;
    Track **tracks; /* by Value.id */
    uint32_t n_tracks;
    KeptRun *kept; /* or NULL */
    int place;     /* of the sample that runs among those; -1: none */
    size_t sample; /* that runs */
} Calibration;

/* ---- collecting ---- */

static Track *track_of(Calibration *c, const Value *v) {
    Track **slot = &c->tracks[v->id];
    if (!*slot) {
        *slot = NEW(c->arena, Track);
        **slot = (Track){.value = v, .min = INFINITY, .max = -INFINITY, .from = -INFINITY};
        if (calib_needs_histogram(c->options.method))
            (*slot)->histogram = NEW(c->arena, Histogram);
    }
    return *slot;
}

/* Which zero comes first depends on the order of samples: all are 0, and none is -0. */
static void add_range(const Calibration *c, Track *t, double min, double max) {
    double k = c->options.averaging;
    Exact low = exact_float((float)min), high = exact_float((float)max);
    t->low = t->samples == 1 ? min : t->low + k * (min - t->low);
    t->high = t->samples == 1 ? max : t->high + k * (max - t->high);
    exact_add(&t->ends[0], &low);
    exact_add(&t->ends[1], &high);
    t->min = min < t->min ? min + 0.0 : t->min;
    t->max = max > t->max ? max + 0.0 : t->max;
}

/* The value that a NaN or an infinite element of this one follows from; itself where it reads none.
 */
static Track *cause_of(const Calibration *c, Track *t) {
    const Node *n = t->value->def;
    for (size_t i = 0; n && i < n->n_in; i++) {
        const Value *x = n->in[i];
        const Track *of = x && x->id < c->n_tracks ? c->tracks[x->id] : NULL;
        if (of && of->odd.sample == c->sample + 1)
            return of->odd.cause;
    }
    return t;
}

static void add_odd(const Calibration *c, Track *t, int64_t nans, int64_t infs) {
    Odd *o = &t->odd;
    Track *cause = o->sample == c->sample + 1 ? o->cause : cause_of(c, t);
    if (cause == t) {
        o->first = o->samples ? o->first : c->sample;
        o->samples += o->sample != c->sample + 1;
        o->nans += nans;
        o->infs += infs;
    } else {
        cause->odd.follow += nans + infs;
        cause->odd.in += o->last != cause;
        o->last = cause;
    }
    o->sample = c->sample + 1;
    o->cause = cause;
}

/* `type` is what v has in this sample. */
static void collect(void *ctx, const Value *v, Type type, const void *data) {
    Calibration *c = ctx;
    const float *x = data;
    size_t n, used = 0;
    if (c->place >= 0)
        kept_value(c->kept, c->place, v, type, data);
    if (type.kind != TYPE_TENSOR || elem_unpacked(type.elem) != ELEM_FLOAT || !type_count(type, &n))
        return;
    if (c->options.also)
        c->options.also(c->options.also_ctx, v, type, data);
    Track *t = track_of(c, v);
    double min = INFINITY, max = -INFINITY;
    int64_t nans = 0, infs = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            *(isnan(x[i]) ? &nans : &infs) += 1;
            continue;
        }
        used++;
        min = (double)x[i] < min ? (double)x[i] : min;
        max = (double)x[i] > max ? (double)x[i] : max;
    }
    if (nans + infs)
        add_odd(c, t, nans, infs);
    if (!used)
        return;
    t->samples++;
    add_range(c, t, min, max);
    moments_count(&t->moments, x, n, used);
    if (t->histogram)
        histogram_add(c->arena, t->histogram, x, n);
}

/* ---- results ---- */

/* "value x: 1 NaN and 2 infinite elements in the calibration run, left out: in sample 7 (from 0)
 * and 1 other; 200 elements of 3 values follow from it and are left out, too" */
static void tell_odd(const Track *t, Arena *a, Diags *d) {
    const Odd *o = &t->odd;
    Buf b = buf_new(a);
    if (o->nans)
        buf_fmt(&b, "%lld NaN%s", (long long)o->nans, o->infs ? " and " : "");
    if (o->infs)
        buf_fmt(&b, "%lld infinite element%s", (long long)o->infs, plural(o->infs));
    buf_fmt(&b, " in the calibration run, left out: in sample %zu (from 0)%s", o->first,
            arena_others(a, " and ", (size_t)o->samples - 1, ""));
    if (o->in)
        buf_fmt(&b, "; %lld element%s of %lld value%s follow%s from that and %s left out, too",
                (long long)o->follow, plural(o->follow), (long long)o->in, plural(o->in),
                o->follow > 1 ? "" : "s", o->follow > 1 ? "are" : "is");
    Str text = buf_as_str(&b);
    diag_warning(d, t->value->loc, "value %s: " STR_FMT, diag_name(d, t->value->name),
                 STR_ARG(text));
}

/* What was seen of the value, by which shards are joined, too. */
static Shard shard_of(const Calibration *c, Track *t) {
    Shard s = {.has_moments = true, .moments = *moments_counted(&t->moments)};
    s.options = c->options;
    s.seen = (Range){t->min, t->max};
    s.has_ends = c->options.method == CALIB_MOVING_AVERAGE && !(c->options.averaging > 0);
    memcpy(s.ends, t->ends, sizeof s.ends);
    s.histogram = t->histogram;
    return s;
}

static void write_stat(const Calibration *c, Track *t, Value *v, Diags *d) {
    if (t->odd.samples)
        tell_odd(t, c->arena, d);
    if (!t->samples)
        return;
    Shard s = shard_of(c, t);
    bool moving = c->options.method == CALIB_MOVING_AVERAGE && c->options.averaging > 0;
    Range r = moving ? (Range){t->low, t->high} : shard_ends(&s, t->samples);
    v->stat = calib_stat(c->arena, r.low, r.high, moments_mean(&s.moments),
                         moments_deviation(&s.moments), t->samples);
}

/* The range that the method makes of what was seen. */
static void apply_method(const Calibration *c, Track *t, Stat *s) {
    Shard shard = shard_of(c, t);
    if (t->histogram) {
        Range range = shard_range(c->arena, &shard, t->from);
        float ends[] = {(float)range.low, (float)range.high};
        s->min = arena_copy(c->arena, &ends[0], sizeof *ends);
        s->max = arena_copy(c->arena, &ends[1], sizeof *ends);
    }
    if (c->options.keep)
        shard_write(c->arena, &shard, s);
}

typedef struct Writing {
    const Calibration *calibration;
    const Program *program; /* NULL: there was none (exec/evaluate.h) */
    CalibReport report;
    Diags *diags;
} Writing;

static Track *known_track(const Calibration *c, const Value *v) {
    return v->id < c->n_tracks ? c->tracks[v->id] : NULL;
}

/* Of a value without statistics: why it has none. */
static const char *why_no_stat(const Track *t) {
    return !t             ? "was never computed"
           : t->odd.cause ? "is NaN or infinite throughout"
                          : "has no elements in any sample";
}

static void write_extremes(Value *v, void *ctx) {
    Writing *w = ctx;
    const Calibration *c = w->calibration;
    if (v->type.kind != TYPE_TENSOR || elem_unpacked(v->type.elem) != ELEM_FLOAT || v->data)
        return;
    v->stat = NULL;
    if (known_track(c, v))
        write_stat(c, c->tracks[v->id], v, w->diags);
    if (v->stat) {
        w->report.values++;
    } else if (!(w->program && program_left_out(w->program, v)) && ++w->report.skipped <= 3) {
        diag_warning(w->diags, v->loc, "value %s %s: it has no statistics",
                     diag_name(w->diags, v->name), why_no_stat(known_track(c, v)));
    }
}

static void ask_from(Value *v, void *ctx) {
    const Writing *w = ctx;
    const CalibOptions *o = &w->calibration->options;
    Track *t = known_track(w->calibration, v);
    if (t && t->histogram && v->stat && o->counts_from)
        t->from = (double)o->counts_from(o->ctx, v);
}

static void write_ranges(Value *v, void *ctx) {
    const Writing *w = ctx;
    Track *t = known_track(w->calibration, v);
    if (t && v->stat && t->samples)
        apply_method(w->calibration, t, v->stat);
}

static void write_all(Module *m, Writing *w) {
    module_each_value(m, write_extremes, w); /* each needs the one before of all values */
    module_each_value(m, ask_from, w);
    module_each_value(m, write_ranges, w);
}

/* All samples, one after the other. */
static bool run_samples(Calibration *c, ModelRun *r, Samples *s, size_t *samples, Diags *d) {
    for (; model_run_load(r, s); ++*samples) {
        c->sample = *samples;
        c->place = c->kept ? kept_place(c->kept, *samples) : -1;
        if (!model_run_sample(r, d))
            return false;
        if (c->place >= 0)
            kept_outputs(c->kept, c->place, r);
    }
    return samples_ok(s);
}

/* All samples; a program lives in `a`. */
static bool run_model(Calibration *c, Module *m, Samples *s, Writing *w, Arena *a, Diags *d) {
    const CalibOptions *o = &c->options;
    ProgramOptions options = {.ignore_quant = !o->on_grids,
                              .observed = true,
                              .partial = true,
                              .run_parts = runner_parts()};
    ModelRun *r = model_run_new(a, m, &options, d);
    if (!r)
        return false;
    model_run_observe(r, collect, c);
    w->program = r->program;
    if (r->program)
        w->report.left_out = left_out_reasons(m->arena, r->program->left_out);
    bool ok = run_samples(c, r, s, &w->report.samples, d);
    model_run_free(r);
    return ok;
}

bool calibrate(Module *m, Samples *s, const CalibOptions *o, KeptRun *kept, CalibReport *report,
               Diags *d) {
    Calibration c = {.arena = m->arena, .n_tracks = m->n_values, .kept = kept};
    if (o)
        c.options = *o;
    c.tracks = NEW_ARRAY(m->arena, Track *, m->n_values);
    Writing w = {.calibration = &c, .diags = d};
    Arena *a = arena_scratch(m->arena); /* a program keeps its weights a second time */
    size_t level = progress_begin(diags_progress(d), "calibration", 0);
    bool ok = run_model(&c, m, s, &w, a, d);
    progress_end(diags_progress(d), level);
    if (ok && w.report.samples == 0)
        ok = diag_error(d, LOC_NONE, "there are no calibration samples");
    if (ok)
        write_all(m, &w);
    arena_free(a);
    if (ok && report)
        *report = w.report;
    return ok;
}
