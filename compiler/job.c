/* The options that concern the pipeline, checked once. */
#include <stdlib.h>

#include "compiler/pipeline.h"
#include "compiler/scheme_flags.h"
#include "frontend/qir/qir_read.h"
#include "frontend/scales/scales_read.h"
#include "passes/recipe.h"

static bool choose(const char *option, const char *text, const char *const *names, size_t n,
                   size_t *index, Diags *d) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0) {
            *index = i;
            return true;
        }
    diag_error(d, LOC_NONE, "-%s has no kind '%s'", option, text);
    diag_did_you_mean(d, LOC_NONE, str_from(text), names, n);
    return false;
}

static bool init_form(Job *j) {
    static const char *const emits[] = {"qir", "onnx",   "qdq",       "qop",
                                        "c",   "scheme", "overrides", "encodings"};
    static const Form of_emit[] = {FORM_AS_IS, FORM_AS_IS, FORM_QDQ,   FORM_QOP,
                                   FORM_TRUE,  FORM_AS_IS, FORM_AS_IS, FORM_AS_IS};
    static const char *const forms[] = {"float", "fake", "true", "qop"};
    static const Form of_form[] = {FORM_FLOAT, FORM_FAKE, FORM_TRUE, FORM_QOP};
    bool data = j->o->calib.n || j->o->calib_random >= 0;
    size_t i = 0;
    if (j->o->emit && !choose("emit", j->o->emit, emits, 8, &i, j->d))
        return false;
    j->form = of_emit[i];
    j->wants_onnx = i == 1;
    if (i == 4)
        j->ctx.target = TARGET_C;
    if ((j->o->dynamic || j->o->weight_only) && j->wants_onnx)
        j->form = FORM_QDQ; /* no data is to come: these are complete */
    if (j->o->dynamic && j->form == FORM_AS_IS)
        j->form = FORM_TRUE; /* decided at run time: there is nothing to edit before */
    if ((data || j->o->weight_only || j->o->explain ||
         ((j->o->scheme || j->o->scales_from || j->o->weights_from) && i == 0)) &&
        j->form == FORM_AS_IS)
        /* ONNX has no words for decisions but annotations */
        j->form = j->wants_onnx && !j->o->annotate ? FORM_FLOAT : FORM_FAKE;
    if (j->o->annotate && (i < 1 || i > 3))
        return diag_error(j->d, LOC_NONE, "-annotate goes with -emit=onnx, qdq or qop");
    if (j->o->form) {
        if (i != 0)
            return diag_error(j->d, LOC_NONE, "-form goes with -emit=qir");
        if (!choose("form", j->o->form, forms, 4, &i, j->d))
            return false;
        j->form = of_form[i];
    }
    return true;
}

static bool check_shown(const char *option, const char *pass, Diags *d) {
    return !pass || strcmp(pass, "all") == 0 || pass_find(pass) || pass_unknown(pass, option, d);
}

bool job_init(Job *j, const Options *o, Arena *a, Diags *d) {
    static const char *const targets[] = {"ort-cpu", "onnx"}, *const kinds[] = {"float", "quant"};
    static const char *const roundings[] = {"exact", "single", "double", "shift"};
    size_t target = 0, io = 0, rounding = 0;
    *j = (Job){.o = o, .d = d, .ctx = {.d = d}};
    bool ok = init_form(j);
    if (o->target)
        ok = choose("target", o->target, targets, 2, &target, d) && ok;
    ok = check_shown("-print-before: ", o->print_before, d) && ok;
    ok = check_shown("-print-after: ", o->print_after, d) && ok;
    if (o->io)
        ok = choose("io", o->io, kinds, 2, &io, d) && ok;
    if (o->requant)
        ok = choose("requant", o->requant, roundings, 4, &rounding, d) && ok;
    if (o->requant && o->emit && j->ctx.target != TARGET_C)
        ok = diag_error(d, LOC_NONE, "-requant goes with -emit=c, run and compare");
    j->rounding = (SumRounding)rounding;
    if (j->ctx.target != TARGET_C)
        j->ctx.target = target ? TARGET_ONNX : TARGET_ORT_CPU;
    j->quant_io = io == 1 || o->integer_only;
    j->ctx.explain = o->explain;
    j->ctx.input_names = o->input_names;
    j->ctx.output_names = o->output_names;
    j->ctx.axes = (const char *const *)o->dynamic_axis.items;
    j->ctx.n_axes = o->dynamic_axis.n;
    j->ctx.no_floats = o->integer_only;
    ok = scheme_of_flags(&j->flags, o, a, d) && ok;
    ok = recipe_check(j->flags.recipe, LOC_NONE, "-recipe: ", d) && ok;
    if (o->recipe && (o->dynamic || o->weight_only))
        ok =
            diag_error(d, LOC_NONE, "-recipe is about static quantization: it does not go with -%s",
                       o->dynamic ? "dynamic" : "weight-only");
    if (o->scales_from && scales_are_json(o->scales_from))
        ok = scales_read(a, d, o->scales_from, &j->file) && ok;
    ok = (!o->scheme || qir_read_scheme(a, d, o->scheme, &j->file)) && ok;
    if (j->form == FORM_AS_IS && !j->wants_onnx &&
        (scheme_has_parameters(&j->file) || o->scales_from || o->weights_from))
        j->form = FORM_FAKE;
    j->ctx.data = (const char *const *)o->calib.items;
    j->ctx.n_data = o->calib.n;
    j->ctx.random = o->calib_random < 0 ? 0 : o->calib_random > 0 ? (size_t)o->calib_random : 16;
    j->calib.keep = j->form <= FORM_FLOAT;
    if (o->dynamic && o->weight_only)
        ok = diag_error(d, LOC_NONE, "-dynamic and -weight-only exclude each other");
    if ((o->dynamic || o->weight_only) && (o->calib.n || o->calib_random >= 0))
        ok = diag_error(d, LOC_NONE, "-%s needs no calibration data",
                        o->dynamic ? "dynamic" : "weight-only");
    if (o->bias_correction && o->no_bias_correction)
        ok = diag_error(d, LOC_NONE, "-bias-correction and -no-bias-correction exclude each other");
    if (o->target_opset > 28)
        ok = diag_error(d, LOC_NONE, "-target-opset=%lld: the newest opset qxc knows is 28",
                        (long long)o->target_opset);
    return ok;
}
