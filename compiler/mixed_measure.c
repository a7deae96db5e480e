/* One way to quantize the model, measured: some layers spared, and how far it is from the float
 * one. */
#include "compiler/metric.h"
#include "compiler/mixed_parts.h"

#include <math.h>

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

void mixed_add_rules(const Mixed *x, Scheme *s, const Layer *l) {
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
        mixed_add_rules(x, &j.file, &x->layers[i]);
    if (only)
        mixed_add_rules(x, &j.file, only);
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

bool mixed_measure(Mixed *x, size_t n, const Layer *only, Score *out, ExitCode *code) {
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

bool mixed_list(Mixed *x, ExitCode *code) {
    Module *m = read_quantized(x, 0, NULL, FORM_FAKE, code);
    if (m)
        x->layers = mixed_layers(m, x->s->arena, x->most, &x->n);
    session_free_modules(x->s, 0);
    return m;
}
