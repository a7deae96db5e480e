/* See compiler/judge.h. */
#include "compiler/judge.h"

#include <math.h>

const char *judge_value_text(Arena *a, const Value *v, Diags *d) {
    const char *op = v->def ? diag_name(d, v->def->op) : "";
    return arena_strf(a, "'%s' (%s)", diag_name(d, v->name), op).s;
}

static void unmeasured_behind(const Judge *j, const Value *v, Judged *out, Diags *d) {
    out->sqnr = -INFINITY;
    bool chosen = module_is_open(v->graph->module);
    out->unmeasured = arena_strf(j->arena, "%s is behind what %s, and nothing measures it",
                                 judge_value_text(j->arena, v, d),
                                 chosen ? "each sample chooses otherwise than the float model"
                                        : "cannot run here")
                          .s;
    out->advice = "-keep=NODE leaves it float";
}

static void unseen(const Judge *j, const Comparison *c, Judged *out, Diags *d) {
    out->sqnr = -INFINITY;
    out->unmeasured =
        arena_strf(j->arena,
                   "in %zu of %zu samples output %s is of other elements than in the float model",
                   c->unseen_in, c->samples, judge_value_text(j->arena, c->unseen, d))
            .s;
    out->advice = "-keep=NODE leaves float what they are chosen by";
}

/* Nor does a gate hold for an output that has no number to be compared with. */
static void add_output(const Judge *j, const CompareRow *r, Judged *out, Diags *d) {
    out->sqnr = fmin(out->sqnr, r->sqnr);
    if (r->sqnr > -INFINITY || out->unmeasured)
        return;
    bool zero = isfinite(r->max_abs);
    out->unmeasured = arena_strf(j->arena, "output %s %s", judge_value_text(j->arena, r->b, d),
                                 zero ? "is 0 on this data in the float model, and not here"
                                      : "holds NaN or infinity in one of both models")
                          .s;
    out->advice = zero ? "it takes data on which the output is not 0"
                       : "qxc compare MODEL RESULT shows the first value that does";
}

bool judge_outputs(const Judge *j, Module *a, Module *b, Comparison *c, Judged *out, Diags *d) {
    CompareData data = {
        .paths = (const char *const *)j->data->items, .n = j->data->n, .part = j->part};
    ProgramOptions options = {.partial = true, .run_parts = runner_parts()};
    size_t measured = 0;
    *out = (Judged){.sqnr = INFINITY};
    if (!compare_modules(a, b, &data, &options, &options, c, d))
        return false;
    if (!c->samples && j->part == SAMPLES_HELD_BACK)
        return diag_error(d, LOC_NONE,
                          "%severy third sample is held back to judge by: these are too few",
                          j->options);
    for (size_t i = 0; i < c->n; i++)
        if (compare_judges(c, &c->rows[i])) {
            add_output(j, &c->rows[i], out, d);
            measured++;
        }
    if (c->unmeasured)
        unmeasured_behind(j, c->unmeasured, out, d);
    else if (c->unseen)
        unseen(j, c, out, d);
    measured += c->unseen != NULL;
    return measured || !a->graph->n_out ||
           diag_error(d, LOC_NONE, "%snothing that can be computed here is left to measure",
                      j->options);
}
