/* What each value of a report lost, against the model as it was read. */
#include "compiler/report_parts.h"
#include "exec/compare.h"
#include "exec/fixed_shapes.h"
#include "passes/quantize/masks.h"

#include <math.h>

static const TextList *data_of(const Session *s) {
    return s->o.input.n ? &s->o.input : &s->o.calib;
}

/* Lower is worse; what is equal has no number that JSON could hold. */
static void put_sqnr(json_t *to, double sqnr) {
    if (isinf(sqnr) && sqnr > 0)
        json_object_set_new(to, "sqnr_db", json_string("equal"));
    else
        report_real(to, "sqnr_db", sqnr);
}

/* A layer has the loss of its worst result. */
static void add_to_layer(ReportLayer *l, const ReportValue *x) {
    const json_t *before = json_object_get(l->json, "sqnr_db");
    if (!before || !json_is_real(before) || x->sqnr < json_real_value(before))
        put_sqnr(l->json, x->sqnr);
}

/* By the next layer, which cuts as well, or in front of a Softmax that a mask hides it from. */
static bool is_cut_on_purpose(const Uses *a, const Uses *b, const CompareRow *row) {
    return is_cut_by_clamp(b, row->b) || masked_from(a, row->a) > -INFINITY;
}

static void add_row(Report *r, const CompareRow *row, const Uses *from, const Uses *uses) {
    ReportValue *x = map_get(r->by_name, row->name);
    if (!x || !x->json || isnan(row->sqnr) || !isnan(x->sqnr))
        return;
    bool is_cut = !row->is_output && is_cut_on_purpose(from, uses, row);
    json_object_set_new(x->json, "cut_off_on_purpose", json_boolean(is_cut));
    if (is_cut)
        return;
    x->sqnr = row->sqnr;
    put_sqnr(x->json, row->sqnr);
    report_real(x->json, "max_error", row->max_abs);
    report_real(x->json, "cosine", row->cosine);
    if (x->maker >= 0)
        add_to_layer(r->layers[x->maker], x);
}

static void keep_stat(Value *v, void *ctx) {
    if (v->stat && v->name.n)
        map_set(ctx, v->name, (void *)(uintptr_t)v->stat);
}

static void take_stat(Value *v, void *ctx) {
    if (!v->stat && v->name.n)
        v->stat = map_get(ctx, v->name);
}

/* What tells a mask is its numbers, which are integers by now, and what the other saw. */
static const Uses *masks_of(Report *r) {
    Map *stats = map_new(r->a);
    module_each_value(r->m, keep_stat, stats);
    module_each_value(r->from, take_stat, stats);
    return uses_new(r->from);
}

static bool compare(Report *r, const TextList *data) {
    ProgramOptions options = {.partial = true, .run_parts = runner_parts()};
    Comparison c;
    CompareData on = {.paths = (const char *const *)data->items, .n = data->n};
    if (!compare_modules(r->from, r->m, &on, &options, &options, &c, r->s->d))
        return false;
    const Uses *from = masks_of(r), *uses = uses_new(r->m);
    for (size_t i = 0; i < c.n; i++)
        add_row(r, &c.rows[i], from, uses);
    json_object_set_new(r->root, "samples", report_count(c.samples));
    return true;
}

/* Without data nothing is measured; work and memory are known all the same where shapes are. */
static void prepare_alone(Report *r, const Job *plain) {
    Diags *unheard = diags_new(r->a, NULL, false), *heard = r->m->diags;
    diags_record(unheard, true);
    Job j = *plain;
    j.d = j.ctx.d = unheard;
    r->m->diags = unheard;
    if (job_raise(&j, r->m))
        shapes_fix(r->m, &(DataPaths){.own_scales = true}, unheard);
    r->m->diags = heard;
}

/* What was decided on, where this run decided: channels were scaled before, which changes the inner
 * values and not the outputs. Else the model as it was read. */
static Module *reference(Report *r) {
    Session *s = r->s;
    ExitCode code;
    Module *m = session_read(s, 0, &code);
    if (!m || !r->j->decided || !s->o.calib.n)
        return m;
    Job *j = NEW(r->a, Job);
    Diags *unheard = diags_new(r->a, NULL, false), *heard = m->diags;
    diags_record(unheard, true); /* all has been told when the model was quantized */
    m->diags = unheard;
    bool ok = job_init(j, &s->o, r->a, unheard) && job_reference(j, m);
    m->diags = heard;
    return ok ? m : session_read(s, 0, &code);
}

bool report_losses(Report *r) {
    const TextList *data = data_of(r->s);
    Options o = *r->j->o; /* whatever form is written, values are what is compared */
    o.form = NULL;
    Job plain = *r->j, other = *r->j;
    plain.o = other.o = &o;
    if (!data->n) {
        prepare_alone(r, &other);
        return true;
    }
    r->from = reference(r);
    return r->from && job_prepare_pair(&plain, r->from, &other, r->m) && compare(r, data);
}
