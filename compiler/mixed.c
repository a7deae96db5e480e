/* See compiler/mixed.h. */
#include "compiler/mixed.h"

#include "compiler/judge.h"
#include "compiler/metric.h"
#include "compiler/mixed_layers.h"
#include "compiler/top1.h"

#include <math.h>
#include <stdlib.h>

typedef struct Score {
    Judged of; /* the outputs */
    Drop drop; /* of top-1 accuracy, or of the metric */
    double metric;
} Score;

typedef struct Lost {
    const char *what; /* NULL: none */
    double sqnr;
} Lost;

typedef struct Mixed {
    Session *s;
    Job *j;
    /* Names as the data have them, which those of -input-names are no more once a model has got
     * them: what is measured keeps its own. */
    Options inner;
    /* What is read from there to be run has the shapes of -bind and -shape and bounds already. */
    Options to_run;
    bool has_sqnr, has_drop;
    double least_sqnr, most_drop;
    Labels labels;
    Answers of_float; /* [0]: not yet */
    double float_metric;
    bool has_float_metric;
    Layer *layers;
    size_t n;
    Spared most; /* how they may be spared */
    /* Of the model that was measured last, the first value in its order below the gate. */
    Lost lost;
} Mixed;

bool mixed_wanted(const Options *o) {
    return o->min_sqnr || o->max_drop || o->labels;
}

/* ---- the command line ---- */

static bool read_number(const char *option, const char *text, const char *unit, double *out,
                        double least, double most, Diags *d) {
    char *end;
    if (!text)
        return true;
    *out = strtod(text, &end);
    if (*end == '%' && unit[0] == '%')
        end++;
    if (*end || end == text || !isfinite(*out))
        return diag_error(d, LOC_NONE, "-%s wants a number of %s, not '%s'", option, unit,
                          diag_name(d, str_from(text)));
    return (*out >= least && *out <= most) ||
           diag_error(d, LOC_NONE, "-%s wants a number of %s from %g to %g, not '%s'", option, unit,
                      least, most, text);
}

static bool read_options(Mixed *x) {
    const Options *o = &x->s->o;
    Diags *d = x->s->d;
    x->has_sqnr = o->min_sqnr;
    x->has_drop = o->max_drop;
    const char *unit = o->metric ? "the metric" : "%";
    if (!read_number("min-sqnr", o->min_sqnr, "dB", &x->least_sqnr, -HUGE_VAL, HUGE_VAL, d) ||
        !read_number("max-drop", o->max_drop, unit, &x->most_drop, 0, o->metric ? HUGE_VAL : 100,
                     d))
        return false;
    if (!o->metric && !o->max_drop != !o->labels)
        return diag_error(d, LOC_NONE, "-max-drop=PERCENT and -labels=KEY go together%s",
                          o->labels ? "" : "; -metric=CMD does without labels");
    if (o->dynamic || o->weight_only || o->passes)
        return diag_error(d, LOC_NONE, "-min-sqnr and -max-drop are about static quantization");
    if (x->j->form <= FORM_FLOAT)
        return diag_error(d, LOC_NONE,
                          "-min-sqnr and -max-drop: nothing is quantized in this form");
    if (!o->calib.n)
        return diag_error(d, LOC_NONE, "-min-sqnr and -max-drop measure on data: -calib=PATH");
    return session_reads_again(x->s, "-min-sqnr and -max-drop read");
}

/* ---- one way to quantize, measured ---- */

/* `o` lives as long as the job. */
static Module *read_float(Mixed *x, Job *plain, Options *o, ExitCode *code) {
    Module *m = session_read(x->s, 0, code);
    *o = x->s->o;
    o->scheme = o->scales_from = NULL;
    if (m && !job_init(plain, o, x->s->arena, x->s->d)) {
        *code = job_init_failure(plain);
        return NULL;
    }
    return m;
}

static void add_rules(const Mixed *x, Scheme *s, const Layer *l) {
    for (size_t i = 0; i < l->n_rules; i++)
        scheme_add(s, x->s->arena, l->rules[i]);
}

/* The model as the rules of the first `n` layers (or of `only`) make it. */
static Module *read_quantized(Mixed *x, size_t n, const Layer *only, Form form, ExitCode *code) {
    Module *m = session_read(x->s, 0, code);
    Job j = *x->j;
    j.o = &x->inner;
    j.ctx.input_names = j.ctx.output_names = NULL;
    j.file = (Scheme){0};
    scheme_append(&j.file, x->s->arena, &x->j->file);
    for (size_t i = 0; i < n; i++)
        add_rules(x, &j.file, &x->layers[i]);
    if (only)
        add_rules(x, &j.file, only);
    j.form = form;
    j.quant_io = false;
    j.calib.keep = false;
    j.ctx.explain = NULL;
    if (!m)
        return NULL;
    if (!job_compile(&j, m)) {
        *code = job_failure(&j);
        return NULL;
    }
    *code = EXIT_WRONG;
    if (j.decided_before) {
        diag_error(
            x->s->d, LOC_NONE,
            "-min-sqnr and -max-drop: the model is quantized already, no layer can be spared%s",
            x->s->o.redecide.n ? ", as -redecide decides all that it names once; "
                                 "what -emit=float gives can be quantized with them"
                               : "; what -emit=float gives can be quantized with them");
        return NULL;
    }
    return m;
}

/* What limits the outputs: the first value that is worse than they are to be. One that is 0 on the
 * data has no number. */
static void find_lost(Mixed *x, Module *b, const Comparison *c) {
    const Uses *uses = uses_new(b);
    x->lost = (Lost){0};
    for (size_t i = 0; i < c->n && !x->lost.what; i++) {
        const CompareRow *r = &c->rows[i];
        const Node *n = r->b->def;
        if (!n || r->sqnr >= x->least_sqnr || isinf(r->sqnr) || is_cut_by_clamp(uses, r->b))
            continue;
        x->lost = (Lost){judge_value_text(x->s->arena, r->b, x->s->d), r->sqnr};
    }
}

static bool worst_output(Mixed *x, Module *a, Module *b, Score *out) {
    const Judge judge = {x->s->arena, &x->s->o.calib, SAMPLES_ALL, "-min-sqnr and -max-drop: "};
    Comparison c;
    if (!judge_outputs(&judge, a, b, &c, &out->of, x->s->d))
        return false;
    find_lost(x, b, &c);
    return true;
}

/* The float model answers once; what answers are right outlives the modules. */
static bool measure_drop(Mixed *x, Module *a, Module *b, Drop *out) {
    const TextList *data = &x->s->o.calib;
    Arena *arena = x->s->arena;
    Diags *d = x->s->d;
    Answers answers;
    if (!x->of_float.n &&
        !top1_answers(arena, a, data->items, data->n, &x->labels, &x->of_float, d))
        return false;
    if (x->of_float.n_nan)
        return diag_error(d, LOC_NONE,
                          "-max-drop: the float model itself answers NaN in %zu of the %zu samples "
                          "that are held back: a drop from there says nothing",
                          x->of_float.n_nan, x->of_float.n);
    if (!top1_answers(arena, b, data->items, data->n, &x->labels, &answers, d))
        return false;
    *out = top1_drop(&x->of_float, &answers);
    return true;
}

/* Of the float model it is measured once. */
static bool measure_metric(Mixed *x, MetricSide of_float, MetricSide is, Score *out) {
    SamplePart part = x->has_drop ? SAMPLES_HELD_BACK : SAMPLES_ALL;
    if (!x->s->o.metric)
        return true;
    if (!x->has_float_metric && !metric_measure(x->s, of_float, of_float, part, &x->float_metric))
        return false;
    x->has_float_metric = true;
    if (!metric_measure(x->s, is, of_float, part, &out->metric))
        return false;
    out->drop.points = x->float_metric - out->metric;
    return true;
}

static bool measure_spared(Mixed *x, size_t n, const Layer *only, Score *out, ExitCode *code) {
    Job plain, run = *x->j;
    Options o;
    Module *a = read_float(x, &plain, &o, code);
    Module *b = a ? read_quantized(x, n, only, FORM_TRUE, code) : NULL;
    run.o = &x->to_run;
    bool ok = b && job_prepare_pair(&plain, a, &run, b);
    if (b && !ok)
        *code = job_failure(plain.ctx.misused ? &plain : &run);
    ok = ok && worst_output(x, a, b, out);
    ok = ok && measure_metric(x, (MetricSide){a, plain.batch}, (MetricSide){b, run.batch}, out);
    if (ok && x->has_drop && !only && !x->s->o.metric)
        ok = measure_drop(x, a, b, &out->drop);
    session_free_modules(x->s, 0);
    return ok;
}

static bool list_layers(Mixed *x, ExitCode *code) {
    Module *m = read_quantized(x, 0, NULL, FORM_FAKE, code);
    if (m)
        x->layers = mixed_layers(m, x->s->arena, x->most, &x->n);
    session_free_modules(x->s, 0);
    return m;
}

static bool holds(const Mixed *x, const Score *s) {
    return (!x->has_sqnr || s->of.sqnr >= x->least_sqnr) &&
           (!x->has_drop || s->drop.points <= x->most_drop + 1e-9);
}

/* ---- the search ---- */

static int most_sensitive_first(const void *p, const void *q) {
    const Layer *x = p, *y = q;
    if (x->metric != y->metric)
        return x->metric > y->metric ? -1 : 1;
    if (x->sqnr != y->sqnr)
        return x->sqnr > y->sqnr ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static void tell(const Mixed *x, const char *what, const Score *s) {
    if (x->s->o.quiet)
        return;
    diags_flush(x->s->d);
    progress_clear(diags_progress(x->s->d));
    if (s->of.unmeasured)
        fprintf(stderr, "%s: %s", what, s->of.unmeasured);
    else if (isinf(s->of.sqnr))
        fprintf(stderr, "%s: equal", what);
    else
        fprintf(stderr, "%s: %.2f dB", what, s->of.sqnr);
    if (x->s->o.metric)
        fprintf(stderr, ", metric %g where the float model has %g", s->metric, x->float_metric);
    else if (x->has_drop)
        fprintf(stderr,
                ", top-1 falls by %.2f points from %.2f%% (95%% sure: at most %.2f) on %zu samples "
                "held back",
                s->drop.points, top1_percent(&x->of_float), s->drop.sure, x->of_float.n);
    fputc('\n', stderr);
}

static const char *lost_text(const Mixed *x) {
    if (!x->lost.what)
        return "";
    return arena_strf(x->s->arena, "; what limits it is %s, the first value that is worse: %.2f dB",
                      x->lost.what, x->lost.sqnr)
        .s;
}

/* In what `best` was measured all layers were spared. */
static ExitCode missed(const Mixed *x, const Score *best) {
    static const char *const how[] = {"with all layers float", "with 16 bits for all values",
                                      "with 16 bits for all values and weights"};
    if (x->has_sqnr && best->of.unmeasured)
        diag_error(x->s->d, LOC_NONE, "-min-sqnr=%g cannot be verified: %s; %s", x->least_sqnr,
                   best->of.unmeasured, best->of.advice);
    else if (x->has_sqnr && best->of.sqnr < x->least_sqnr)
        diag_error(x->s->d, LOC_NONE,
                   "-min-sqnr=%g cannot be met: the best reached is %.2f dB, %s%s", x->least_sqnr,
                   best->of.sqnr, how[x->most], lost_text(x));
    if (x->has_drop && best->drop.points > x->most_drop)
        diag_error(x->s->d, LOC_NONE,
                   x->s->o.metric
                       ? "-max-drop=%g cannot be met: the best reached loses %g"
                       : "-max-drop=%g cannot be met: the best reached loses %.2f points",
                   x->most_drop, best->drop.points);
    return EXIT_MISSED;
}

static bool rank_each(Mixed *x, size_t level, ExitCode *code) {
    Score s;
    for (size_t i = 0; i < x->n; i++) {
        progress_step(diags_progress(x->s->d), level, i);
        if (!measure_spared(x, 0, &x->layers[i], &s, code))
            return false;
        x->layers[i].sqnr = s.of.sqnr;
        x->layers[i].metric = s.metric;
    }
    return true;
}

static bool rank_layers(Mixed *x, ExitCode *code) {
    Progress *p = diags_progress(x->s->d);
    size_t level = progress_begin(p, "which layers lose most: layer", x->n);
    bool ok = rank_each(x, level, code);
    progress_end(p, level);
    if (ok)
        qsort(x->layers, x->n, sizeof *x->layers, most_sensitive_first);
    return ok;
}

/* measure_spared, in a search that has come so far: whose steps nobody can count in advance. */
static bool measure_first(Mixed *x, size_t n, Score *score, ExitCode *code) {
    Progress *p = diags_progress(x->s->d);
    const char *what = arena_strf(x->s->arena, "how many to spare: %zu of %zu layers", n, x->n).s;
    size_t level = progress_begin(p, what, 0);
    bool ok = measure_spared(x, n, NULL, score, code);
    progress_end(p, level);
    return ok;
}

/* The fewest of the first layers for which the gate holds; it holds for all, and not for none. */
static bool fewest(Mixed *x, size_t *n, Score *score, ExitCode *code) {
    size_t misses = 0;
    *n = x->n;
    while (*n - misses > 1) {
        size_t middle = misses + (*n - misses) / 2;
        Score s;
        if (!measure_first(x, middle, &s, code))
            return false;
        if (!holds(x, &s)) {
            misses = middle;
            continue;
        }
        *n = middle;
        *score = s;
    }
    return true;
}

/* Gives back, from the least sensitive on, what the gate holds without. */
static bool give_back(Mixed *x, size_t *n, Score *score, ExitCode *code) {
    for (size_t i = *n; i-- > 0 && *n > 1;) {
        Layer tried = x->layers[i];
        size_t behind = *n - 1 - i;
        memmove(&x->layers[i], &x->layers[i + 1], behind * sizeof tried);
        x->layers[*n - 1] = tried;
        Score s;
        if (!measure_first(x, *n - 1, &s, code))
            return false;
        if (holds(x, &s)) {
            --*n;
            *score = s;
            continue;
        }
        memmove(&x->layers[i + 1], &x->layers[i], behind * sizeof tried);
        x->layers[i] = tried;
    }
    return true;
}

static void take(Mixed *x, size_t n) {
    static const char *const gets[] = {"stays float", "gets 16 bits", "gets weights of 16 bits"};
    for (size_t i = 0; i < n; i++) {
        add_rules(x, &x->j->file, &x->layers[i]);
        if (!x->s->o.quiet)
            fprintf(stderr, isinf(x->layers[i].sqnr) ? "  %s %s\n" : "  %s %s (alone: %.2f dB)\n",
                    diag_name(x->s->d, x->layers[i].name), gets[x->layers[i].how],
                    x->layers[i].sqnr);
    }
}

static ExitCode search(Mixed *x) {
    ExitCode code;
    Score plain = {0}, best = {0};
    bool top1 = x->has_drop && !x->s->o.metric;
    if (!measure_spared(x, 0, NULL, &plain, &code))
        return code;
    if (top1 && !x->s->o.quiet)
        top1_print(&x->of_float, x->labels.n, stderr);
    tell(x, "all quantized", &plain);
    if (holds(x, &plain))
        return EXIT_DONE;
    x->most = x->s->o.integer_only ? SPARED_WIDE : SPARED_FLOAT;
    if (!list_layers(x, &code) || !measure_spared(x, x->n, NULL, &best, &code))
        return code;
    if (!holds(x, &best) && x->most == SPARED_WIDE) {
        x->most = SPARED_WEIGHTS;
        if (!list_layers(x, &code) || !measure_spared(x, x->n, NULL, &best, &code))
            return code;
    }
    if (!holds(x, &best))
        return missed(x, &best);
    size_t n;
    if (!rank_layers(x, &code) || !fewest(x, &n, &best, &code) || !give_back(x, &n, &best, &code))
        return code;
    tell(x, "with the most sensitive layers spared", &best);
    take(x, n);
    return EXIT_DONE;
}

ExitCode mixed_decide(Session *s, Job *j) {
    Mixed x = {.s = s, .j = j, .inner = s->o};
    x.inner.input_names = x.inner.output_names = NULL;
    x.to_run = x.inner;
    x.to_run.bind = x.to_run.shape = x.to_run.max_elements = (TextList){0};
    if (!read_options(&x))
        return EXIT_USAGE;
    if (x.has_drop && !s->o.metric &&
        !labels_read(s->arena, (const char *const *)s->o.calib.items, s->o.calib.n, s->o.labels,
                     &x.labels, s->d))
        return EXIT_WRONG;
    diags_quiet(s->d, true); /* what is to be said is said once, when the result is made */
    if (x.has_drop)
        j->ctx.part = SAMPLES_BUT_HELD_BACK; /* of what is written, too */
    ExitCode code = search(&x);
    diags_quiet(s->d, s->o.quiet);
    if (x.of_float.n)
        top1_warn(&x.of_float, x.most_drop, s->d);
    return code;
}
