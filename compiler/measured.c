/* See compiler/measured.h. */
#include "compiler/classes.h"
#include "compiler/measured_parts.h"
#include "compiler/top1.h"
#include "compiler/trace.h"
#include "exec/fixed_shapes.h"

#include <math.h>
#include <stdlib.h>

typedef struct Measuring {
    Job *j;
    Module *m;
    const KeptRun *kept;
    Arena *arena;
    Diags *unheard;
    Map *names;  /* KeptValue, by name */
    Pairs pairs; /* of the quantized module */
    int place;
    Picks *picks; /* with the names of kept->picks */
    Others others;
    double *x, *y;
} Measuring;

/* ---- one sample ---- */

/* Far below what scores reach, a number is a mask, whose integers may end earlier
 * (passes/quantize/masks.h): it is neither signal nor loss. */
static void leave_out_masks(double *x, double *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (x[i] <= -1000 && y[i] < 0)
            x[i] = y[i] = 0;
}

static const PickSum *picked_in_float(const Measuring *c) {
    return c->kept->picked[c->place];
}

/* The sample chose, or picked, other elements than in the float model did. */
static bool is_unlike(const Measuring *c, const Value *v) {
    return is_other(&c->others, v) ||
           (choice_is_open(v) && !picks_chose_alike(c->picks, picked_in_float(c)));
}

static void observe(void *ctx, const Value *v, Type now, const void *data) {
    Measuring *c = ctx;
    Pair *p = v->id < c->pairs.n ? c->pairs.at[v->id] : NULL;
    picks_see(c->picks, v, now, data);
    if (v->kind == VALUE_NODE && v->graph == c->m->graph)
        others_look(&c->others, v->def, c->picks, picked_in_float(c));
    if (!p || !kept_fits(p->was, c->place, now) || is_unlike(c, v))
        return;
    size_t take = p->was->samples[c->place].take;
    kept_load(p->was, c->place, c->x);
    kept_pick(c->kept, p->was, c->place, now, data, c->y);
    leave_out_masks(c->x, c->y, take);
    error_add(&p->sums, c->x, c->y, take);
}

/* Rows of one sample, [rows, classes]. NaN in the float model is no answer to agree with. */
static void compare_classes(MeasuredOutput *o, const double *x, const double *y, size_t n,
                            size_t classes) {
    for (size_t at = 0; at + classes <= n; at += classes) {
        if (top1_has_nan(x + at, classes)) {
            o->nan_rows++;
            continue;
        }
        o->rows++;
        o->agree +=
            !top1_has_nan(y + at, classes) && top1_of(x + at, classes) == top1_of(y + at, classes);
    }
}

static void compare_output(Measuring *c, MeasuredOutput *o, const KeptValue *was, Type now,
                           const void *data) {
    if (!kept_fits(was, c->place, now)) {
        o->unlike++;
        return;
    }
    size_t take = was->samples[c->place].take;
    kept_load(was, c->place, c->x);
    kept_pick(c->kept, was, c->place, now, data, c->y);
    error_add(&o->sums, c->x, c->y, take);
    parts_add(&o->parts, now, c->kept->at, c->x, c->y, take);
    for (size_t i = 0; i < take; i++) {
        o->equal += c->x[i] == c->y[i];
        o->float_odd += !isfinite(c->x[i]);
        o->odd += !isfinite(c->y[i]);
    }
    if (o->classes)
        compare_classes(o, c->x, c->y, take, (size_t)now.dims[1].value);
}

/* ---- pairing ---- */

static void pair_value(Value *v, void *ctx) {
    Measuring *c = ctx;
    const KeptValue *was = map_get(c->names, v->name);
    if (!was || v->graph != v->graph->module->graph || v->kind != VALUE_NODE)
        return;
    Pair *p = NEW(c->arena, Pair);
    *p = (Pair){.was = was, .is = v};
    c->pairs.at[v->id] = p;
}

static void pair_values(Measuring *c, Module *m) {
    c->names = map_new(c->arena);
    c->pairs.n = m->n_values;
    c->pairs.at = NEW_ARRAY(c->arena, Pair *, m->n_values);
    for (uint32_t i = 0; i < c->kept->n_values; i++)
        if (c->kept->values[i])
            map_set(c->names, c->kept->values[i]->name, c->kept->values[i]);
    module_each_value(m, pair_value, c);
}

/* Whether the float model gave the same for each of several samples. */
static bool is_steady(const KeptRun *k, const KeptValue *v) {
    const KeptSample *first = &v->samples[0];
    for (size_t i = 1; i < k->n; i++) {
        const KeptSample *s = &v->samples[i];
        if (!s->x || !first->x || s->count != first->count ||
            memcmp(s->x, first->x, s->take * sizeof *s->x) != 0)
            return false;
    }
    return k->n > 1;
}

/* This program, else the one that calibration ran, left something out. */
static const char *why_left_out(const Measuring *c, const Program *p, const Value *v) {
    const Rejection *r = p ? program_left_out(p, v) : NULL;
    const LeftOut *before = c->j->calibrated.left_out;
    r = r ? r : before && before->n ? before->reasons[0] : NULL;
    return r ? arena_strf(c->arena, "%s cannot run here (%s)", diag_name(c->j->d, r->op), r->why).s
             : "it cannot be computed here";
}

static void start_outputs(Measuring *c, const Module *m, const Program *p, Measured *out) {
    size_t count;
    out->n_outputs = m->graph->n_out;
    out->outputs = NEW_ARRAY(c->arena, MeasuredOutput, out->n_outputs);
    for (size_t i = 0; i < out->n_outputs; i++) {
        const Value *v = m->graph->out[i];
        const KeptValue *was = i < c->kept->n_outputs ? c->kept->outputs[i] : NULL;
        MeasuredOutput *o = &out->outputs[i];
        o->name = v->name;
        o->computed = was && (!p || (p->outputs[i] >= 0 && type_count(v->type, &count)));
        if (!o->computed) {
            o->why_not = why_left_out(c, p, v);
            continue;
        }
        o->integer = !elem_is_float(type_real_elem(v->type));
        o->classes = are_classes(v, KEPT_MOST);
        o->parts = parts_of(v);
        o->steady = is_steady(c->kept, was);
    }
}

/* ---- running ---- */

static void compare_outputs(Measuring *c, const ModelRun *r, Measured *out) {
    for (size_t i = 0; i < out->n_outputs; i++) {
        Type now;
        const Value *v = r->module->graph->out[i];
        const void *data = model_run_value(r, v, &now);
        MeasuredOutput *o = &out->outputs[i];
        if (data && o->computed && !is_unlike(c, v))
            compare_output(c, o, c->kept->outputs[i], now, data);
        else
            o->unlike += data && o->computed;
    }
    out->samples++;
}

static bool run_chosen(Measuring *c, ModelRun *r, Samples *s, Measured *out, Diags *d) {
    for (size_t i = 0; i < c->kept->total; i++) {
        c->place = kept_place(c->kept, i);
        picks_start(c->picks);
        others_start(&c->others);
        if (c->place < 0 ? !samples_skip(s) : !model_run_load(r, s) || !model_run_sample(r, d))
            return false;
        if (c->place >= 0)
            compare_outputs(c, r, out);
    }
    out->of = c->kept->total;
    return true;
}

static bool run_module(Measuring *c, Module *m, Measured *out, Diags *d) {
    const TextList *data = &c->j->o->calib;
    Arena *a = arena_scratch(m->arena); /* a program keeps its weights a second time */
    ProgramOptions options = {
        .observed = true, .partial = true, .rounding = c->j->rounding, .run_parts = runner_parts()};
    ModelRun *r = model_run_new(a, m, &options, d);
    Samples *s = r ? samples_open(a, m, data->items, data->n, d) : NULL;
    if (!s) {
        arena_free(a);
        return false;
    }
    pair_values(c, m);
    c->picks = picks_like(m, c->kept->picks);
    c->others = others_new(m, choice_picks(m), uses_new(m));
    start_outputs(c, m, r->program, out);
    model_run_observe(r, observe, c);
    bool ok = samples_take(s, c->j->ctx.part) && run_chosen(c, r, s, out, d);
    samples_close(s);
    model_run_free(r);
    arena_free(a);
    return ok;
}

static void try_module(void *ctx) {
    Measuring *c = ctx;
    Measured *out = NEW(c->arena, Measured);
    c->x = NEW_ARRAY(c->arena, double, KEPT_MOST);
    c->y = NEW_ARRAY(c->arena, double, KEPT_MOST);
    if (!run_module(c, c->m, out, c->unheard))
        return;
    measured_worst(&c->pairs, c->m, out);
    if (c->j->o->sqnr_metadata)
        measured_state(&c->pairs, c->m);
    out->advice = measured_advice(c->j, c->m, out);
    c->j->measured = out;
}

/* What fails here is no fault of the result, which is written all the same. */
void measure_result(Job *j, Module *m) {
    if (j->decided) /* of another run, it would say what is no longer so */
        measured_state_none(m);
    if (!j->kept || !j->decided)
        return;
    DataPaths data = pass_data(&j->ctx);
    Diags *unheard = diags_new(m->arena, NULL, false), *heard = m->diags;
    Progress *progress = diags_progress(heard);
    diags_record(unheard, true);
    diags_set_progress(unheard, progress);
    m->diags = unheard; /* calibration has told the rest */
    FixedShapes *shapes = shapes_fix(m, &data, unheard);
    Measuring c = {.j = j, .m = m, .kept = j->kept, .arena = m->arena, .unheard = unheard};
    size_t level = progress_begin(progress, "measuring the result", 0);
    trace_begin(j->o->trace);
    bool lasted = !shapes || arena_try(m->arena, try_module, &c);
    trace_end(j->o->trace, "measuring the result");
    progress_end(progress, level);
    m->diags = heard;
    const char *error = diags_first_error(unheard);
    if (!j->measured)
        j->unmeasured = !lasted ? "-max-memory leaves too little for it"
                        : error ? error
                                : "it cannot run here";
    if (shapes)
        shapes_undo(m, shapes);
}
