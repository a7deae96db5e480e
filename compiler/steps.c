/* What pipeline.def does besides passes; quantize.c has the steps of a float model. */
#include "compiler/steps.h"

#include "compiler/donor.h"
#include "compiler/doubtful.h"
#include "compiler/measured.h"
#include "compiler/placement.h"
#include "compiler/plain_integers.h"
#include "compiler/scheme_nodes.h"
#include "compiler/stated.h"
#include "compiler/unknown.h"
#include "compiler/without_effect.h"

#include "exec/specialise.h"
#include "passes/quantize/choice.h"
#include "passes/quantize/rules.h"
#include "passes/target/legal.h"
#include "passes/upgrade.h"

/* ---- what a module is checked for ---- */

bool step_need_data(Job *j, Module *m) {
    return module_data_required(m, j->d);
}

bool step_check_use(Job *j, Module *m) {
    return module_check_use(m, j->d);
}

bool step_know_operators(Job *j, Module *m) {
    return module_operators_known(m, j->ctx.library, &j->o->keep, &j->keeps_unknown, j->d);
}

bool step_forget_file(Job *j, Module *m) {
    (void)j;
    module_forget_file(m);
    return true;
}

bool step_shapes(Job *j, Module *m) {
    return job_fix_shapes(j, m);
}

/* ---- opsets ---- */

/* The opset asked for, else the lowest that exec and the quantized types can do with. */
bool step_lowest_opset(Job *j, Module *m) {
    int64_t want = quant_min_opset(m), asked = j->o->target_opset,
            first = j->ctx.target->first_opset;
    want = want < first ? first : want;
    j->ctx.target_opset = asked > 0 ? asked : want < OPS_BIND_OPSET ? OPS_BIND_OPSET : want;
    return true;
}

bool step_opset_asked(Job *j, Module *m) {
    (void)m;
    j->ctx.target_opset = j->o->target_opset > 0 ? j->o->target_opset : 0;
    return true;
}

/* Of a module whose functions are inlined: these may have raised it. */
bool step_opset_direction(Job *j, Module *m) {
    int64_t asked = j->o->target_opset;
    j->ctx.lowers_opset = asked > 0 && asked <= module_opset(m, STR(""));
    return true;
}

bool step_opset_that_binds(Job *j, Module *m) {
    j->ctx.target_opset = module_opset(m, STR("")) < OPS_BIND_OPSET ? OPS_BIND_OPSET : 0;
    return true;
}

/* Types are read, and programs run, at a newer opset than what is written may need. */
bool step_opset_it_came_at(Job *j, Module *m) {
    int64_t came = j->read_opset, first = j->ctx.target->first_opset;
    int64_t least = came > first ? came : first;
    int64_t to = module_lowest_opset(m, least > UPGRADE_OLDEST ? least : UPGRADE_OLDEST);
    if (to >= module_opset(m, STR("")))
        return true;
    j->ctx.target_opset = to;
    j->ctx.lowers_opset = true;
    return job_pass(j, m, PASS_upgrade);
}

/* ---- what came, and what was said of it ---- */

/* The whole scheme: what flags say, then nodes of themselves, then the module, then the file. */
bool step_scheme(Job *j, Module *m) {
    Scheme *s = &j->ctx.scheme;
    *s = (Scheme){0};
    scheme_append(s, m->arena, &j->flags);
    if (j->form == FORM_AS_IS)
        scheme_check_nodes(m, j->d);
    else if (!scheme_of_nodes(s, m, j->d))
        return false;
    scheme_append(s, m->arena, &j->donated);
    scheme_append(s, m->arena, &m->rules);
    scheme_append(s, m->arena, &j->file);
    rules_note_makers(s, m);
    const SchemeWord *recipe = &s->whole[SCHEME_RECIPE], *calibrate = &s->whole[SCHEME_CALIBRATE];
    if (!recipe_check(recipe->text, recipe->loc, "", j->d) || !placement_take(j))
        return false;
    Choice act = choice_of_activations(&j->ctx);
    j->calib.symmetric = act.sym;
    IntRange ints = choice_range(&act);
    j->calib.levels = ints.hi - ints.lo + 1;
    if (!calibrate->text.s)
        return true;
    Buf text = buf_new(m->arena); /* percentile(99.99) is percentile=99.99 in calib_parse */
    for (size_t i = 0; i < calibrate->text.n; i++)
        if (calibrate->text.s[i] != ')')
            buf_byte(&text, calibrate->text.s[i] == '(' ? '=' : calibrate->text.s[i]);
    if (calib_parse(buf_as_str(&text), &j->calib))
        return true;
    j->ctx.misused = !calibrate->loc.source; /* the command line said it */
    diag_error(j->d, calibrate->loc,
               "calibration is minmax, moving-average, moving-average(K) with K above 0 and "
               "up to 1, percentile(P) with P above 50 and up to 100, entropy or mse, not "
               "'%.*s'",
               STR_ARG(calibrate->text));
    static const char *const methods[] = {"minmax", "moving-average", "percentile", "entropy",
                                          "mse"};
    diag_did_you_mean(j->d, calibrate->loc, calibrate->text, methods,
                      sizeof methods / sizeof *methods);
    return false;
}

/* What nodes state of types that were decided. */
bool step_take_stated(Job *j, Module *m) {
    return stated_take(m, j->d);
}

/* What -weights-from and -scales-from give. */
bool step_take_over(Job *j, Module *m) {
    if (j->weights_from && !donor_weights(j, m, j->weights_from))
        return false;
    return !j->scales_from ||
           (donor_scales(j, m, j->scales_from, &j->donated) && step_scheme(j, m));
}

/* What is quantized has been decided: statistics and rules are for float models. */
bool step_look(Job *j, Module *m) {
    ModuleForm f = module_form(m);
    j->found = f;
    j->found.scaling |= f.integers;
    j->decided_before = f.fake || f.typed || form_is_spelled(j->found);
    if (j->decided_before && (job_adds(j) || job_completes(j, m)))
        return true; /* it is told once what they leave float is known */
    j->anew = true;  /* of what is not raised nothing else is known */
    if (j->decided_before)
        return warn_of_idle_options(j, m->arena);
    warn_of_idle_rules(j);
    warn_of_idle_placement(j);
    if (j->o->redecide.n)
        diag_warning(j->d, LOC_NONE, "-redecide has no effect: nothing is decided yet");
    return true;
}

bool step_look_again(Job *j, Module *m) {
    bool scaling = j->found.scaling;
    j->found = module_form(m);
    j->found.scaling = scaling;
    return true;
}

bool step_look_at_donor(Job *j, Module *m) {
    j->found = module_form(m);
    return true;
}

/* Floats compute just what those that are scaled and rounded mean. */
bool step_look_at_numbers(Job *j, Module *m) {
    j->found = module_form(m);
    j->found.scaling = false;
    return true;
}

bool step_warn_of_clipped(Job *j, Module *m) {
    warn_of_clipped(m, j->d);
    if (j->form != FORM_BACK && !warn_of_unheeded(m, &j->ctx))
        return false;
    warn_of_contradicted(m, j->d);
    return true;
}

/* What runs between conversions in a runtime is float there, if that thinks so; a report says of
 * each node what the runtime does. */
bool step_tell_unkept(Job *j, Module *m) {
    bool reports = j->emit == EMIT_HTML || j->emit == EMIT_JSON;
    if (!j->ctx.runtime_alone && !reports && !j->found.typed)
        warn_of_unkept(m, &j->ctx);
    return true;
}

bool step_warn_of_nothing_decided(Job *j, Module *m) {
    warn_of_nothing_decided(j, m->arena);
    return true;
}

bool step_plain_integers_fit(Job *j, Module *m) {
    return plain_integers_fit(j, m);
}

bool step_know_quantized(Job *j, Module *m) {
    ModuleForm f = module_form(m);
    return f.fake || f.typed || form_is_spelled(f) ||
           diag_error(j->d, LOC_NONE, "-emit=float: nothing in the model is quantized");
}

bool step_words_for_decisions(Job *j, Module *m) {
    return j->o->annotate || !module_is_fake(m) ||
           diag_error(j->d, LOC_NONE,
                      "ONNX has no words for decisions (float ~ q): -emit=qdq or -emit=qop "
                      "carries them out, -annotate writes them beside the float model");
}

static void look_for_type(Value *v, void *ctx) {
    const Value **found = ctx;
    if (!*found && v->type.kind == TYPE_TENSOR && type_is_quantized(v->type))
        *found = v;
}

/* Beside a float model: all but what loosen cannot turn into decisions. */
bool step_types_are_decisions(Job *j, Module *m) {
    const Value *v = NULL;
    module_each_value(m, look_for_type, &v);
    return !v || diag_error(j->d, v->loc,
                            "\"%s\" cannot be a decision beside a float model (-annotate): the "
                            "model's inputs and outputs have to be float, and types integers of "
                            "known parameters, none in a branch or read as another; -emit=float "
                            "gives the float model alone",
                            diag_name(j->d, v->name));
}

/* ---- the rest of the ways ---- */

bool step_target_runs(Job *j, Module *m) {
    return target_check_written(j->ctx.target, m, j->d);
}

bool job_wants_onnx_alone(const Job *j) {
    return !target_has_microsoft(j->ctx.target);
}

bool job_quantizes_products(const Job *j) {
    bool everywhere = j->o->integer_only || j->ctx.placement != PLACEMENT_AUTO ||
                      j->ctx.target->forms[TARGET_FORM_C];
    return everywhere && j->has_basis && j->form > FORM_FLOAT && job_is_static(j);
}

bool step_measure(Job *j, Module *m) {
    measure_result(j, m);
    return true;
}

bool step_listed_passes(Job *j, Module *m) {
    const char *p = j->o->passes;
    while (*p) {
        size_t n = strcspn(p, ",");
        char *name = arena_copy(m->arena, p, n + 1);
        name[n] = 0;
        PassId id = pass_find(name);
        j->ctx.misused = !id;
        if (!id)
            return pass_unknown(name, "", j->d);
        if (!job_pass(j, m, id))
            return false;
        p += n + (p[n] == ',');
    }
    return true;
}

bool step_settle_samples(Job *j, Module *m) {
    const TextList *data = j->o->input.n ? &j->o->input : &j->o->calib;
    return samples_settle(m, data->items, data->n, j->d) && module_check_fixed(m, j->d);
}

/* Fake-quantized values are what training sees: rounded to their grids, computed in float. */
bool step_form_to_run(Job *j, Module *m) {
    if (!j->o->form) {
        if (j->o->requant && !j->o->ignore_quant && module_is_fake(m))
            diag_warning(j->d, LOC_NONE,
                         "-requant has no effect on `float ~` values, which are computed in float "
                         "and rounded: -form=true computes on integers, as C does");
        return true;
    }
    return strcmp(j->o->form, "true") == 0 ||
           diag_error(j->d, LOC_NONE, "run and compare take -form=true alone");
}
