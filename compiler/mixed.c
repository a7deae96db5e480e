/* See compiler/mixed.h. */
#include "compiler/mixed_parts.h"

#include <math.h>
#include <stdlib.h>

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
        if (!mixed_measure(x, 0, &x->layers[i], &s, code))
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

/* mixed_measure, in a search that has come so far: whose steps nobody can count in advance. */
static bool measure_first(Mixed *x, size_t n, Score *score, ExitCode *code) {
    Progress *p = diags_progress(x->s->d);
    const char *what = arena_strf(x->s->arena, "how many to spare: %zu of %zu layers", n, x->n).s;
    size_t level = progress_begin(p, what, 0);
    bool ok = mixed_measure(x, n, NULL, score, code);
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
        mixed_add_rules(x, &x->j->file, &x->layers[i]);
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
    if (!mixed_measure(x, 0, NULL, &plain, &code))
        return code;
    if (top1 && !x->s->o.quiet)
        top1_print(&x->of_float, x->labels.n, stderr);
    tell(x, "all quantized", &plain);
    if (holds(x, &plain))
        return EXIT_DONE;
    x->most = x->s->o.integer_only ? SPARED_WIDE : SPARED_FLOAT;
    if (!mixed_list(x, &code) || !mixed_measure(x, x->n, NULL, &best, &code))
        return code;
    if (!holds(x, &best) && x->most == SPARED_WIDE) {
        x->most = SPARED_WEIGHTS;
        if (!mixed_list(x, &code) || !mixed_measure(x, x->n, NULL, &best, &code))
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
