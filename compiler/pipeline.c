#include "backend/qir/qir_write.h"
#include "compiler/donor.h"
#include "compiler/doubtful.h"
#include "compiler/measured.h"
#include "compiler/scheme_nodes.h"
#include "compiler/session.h"
#include "compiler/without_effect.h"

#include "exec/specialise.h"
#include "passes/annotations.h"
#include "passes/quantize/choice.h"
#include "passes/emulate.h"
#include "passes/target/legal.h"
#include "passes/raise/raise_qonnx.h"
#include "passes/raise/raise_scaling.h"
#include "passes/recipe.h"

/* ---- one pass, with what the user wants to see of it ---- */

static bool selected(const char *option, const char *pass) {
    return option && (strcmp(option, "all") == 0 || strcmp(option, pass) == 0);
}

static void show(Job *j, const Module *m, const char *when, const char *pass) {
    QirWriteOptions w = {.elide = true,
                         .elide_larger = j->o->elide_larger > 0 ? (size_t)j->o->elide_larger : 64};
    fprintf(stderr, "// %s %s\n", when, pass);
    qir_write(m, stderr, &w);
}

bool job_pass(Job *j, Module *m, const char *name) {
    const Pass *p = pass_find(name);
    if (selected(j->o->print_before, name))
        show(j, m, "before", name);
    if (!pass_run(p, m, &j->ctx))
        return false;
    if (selected(j->o->print_after, name))
        show(j, m, "after", name);
    return !j->o->verify_each || roundtrip_check(m, j->d);
}

/* ---- the form a module is in ---- */

static void look_at_value(Value *v, void *ctx) {
    ModuleForm *f = ctx;
    if (!v->type.quant)
        return;
    if (type_is_quantized(v->type))
        f->typed = true;
    else if (elem_is_float(type_real_elem(v->type)))
        f->fake = true;
}

static void look_at_nodes(Graph *g, void *ctx) {
    ModuleForm *f = ctx;
    f->annotated |= annotations_of(g).n > 0;
    FOR_NODES(n, g) {
        f->qonnx |= is_qonnx(n);
        f->scaling |= is_scaling(n);
        f->integers |= node_on_integers(n);
        bool q = node_conversion(n) == CONVERT_QUANTIZE || node_conversion(n) == CONVERT_DEQUANTIZE;
        if ((q && n->n_in > 1) || qop_find(n->domain, n->op) || is_integer_product(n) ||
            node_is(n, "DynamicQuantizeLinear") || is_channels_last(n) || is_emulated(n))
            f->onnx_quantized = true;
    }
}

ModuleForm module_form(Module *m) {
    ModuleForm f = {0};
    module_each_value(m, look_at_value, &f);
    module_each_graph(m, look_at_nodes, &f);
    return f;
}

/* What is quantized has been decided: statistics and rules are for float models. */
static bool look_if_decided(Job *j, Module *m, ModuleForm f) {
    j->decided_before = f.fake || f.typed || f.onnx_quantized || f.qonnx || f.scaling || f.integers;
    if (j->decided_before)
        return warn_of_idle_options(j, m->arena);
    warn_of_idle_rules(j);
    return true;
}

/* ---- the way ---- */

/* The opset asked for, else the lowest that exec and the quantized types can do with. */
static bool raise_opset(Job *j, Module *m) {
    int64_t want = quant_min_opset(m);
    if (want < OPS_BIND_OPSET)
        want = OPS_BIND_OPSET;
    j->ctx.target_opset = j->o->target_opset > 0 ? j->o->target_opset : want;
    return job_pass(j, m, "upgrade");
}

static bool run_listed_passes(Job *j, Module *m) {
    const char *p = j->o->passes;
    while (*p) {
        size_t n = strcspn(p, ",");
        char *name = arena_copy(m->arena, p, n + 1);
        name[n] = 0;
        j->ctx.misused = !pass_find(name);
        if (j->ctx.misused)
            return pass_unknown(name, "", j->d);
        if (!job_pass(j, m, name))
            return false;
        p += n + (p[n] == ',');
    }
    return true;
}

/* Of integers, be they decided here or the model's own. */
static bool obey_recipe(Job *j, Module *m) {
    Recipe r = j->o->dynamic || j->o->weight_only ? RECIPE_NONE : recipe_of(&j->ctx);
    return (r == RECIPE_NONE || job_pass(j, m, "gemm-to-matmul")) &&
           (r != RECIPE_INT32_BIAS || job_pass(j, m, "int32-bias"));
}

/* The whole scheme: what flags say, then nodes of themselves, then the module, then the file. */
static bool settle_scheme(Job *j, Module *m) {
    Scheme *s = &j->ctx.scheme;
    *s = (Scheme){0};
    scheme_append(s, m->arena, &j->flags);
    if (j->form != FORM_AS_IS && !scheme_of_nodes(s, m, j->d))
        return false;
    scheme_append(s, m->arena, &j->donated);
    scheme_append(s, m->arena, &m->rules);
    scheme_append(s, m->arena, &j->file);
    if (!recipe_check(s->recipe, s->recipe_loc, "", j->d))
        return false;
    Choice act = choice_of_activations(&j->ctx);
    j->calib.symmetric = act.sym;
    IntRange ints = choice_range(&act);
    j->calib.levels = ints.hi - ints.lo + 1;
    if (!s->calibrate.s)
        return true;
    Buf text = buf_new(m->arena); /* percentile(99.99) is percentile=99.99 in calib_parse */
    for (size_t i = 0; i < s->calibrate.n; i++)
        if (s->calibrate.s[i] != ')')
            buf_byte(&text, s->calibrate.s[i] == '(' ? '=' : s->calibrate.s[i]);
    if (calib_parse(buf_as_str(&text), &j->calib))
        return true;
    j->ctx.misused = !s->calibrate_loc.source; /* the command line said it */
    return diag_error(j->d, s->calibrate_loc,
                      "calibration is minmax, moving-average, moving-average(K) with K above 0 and "
                      "up to 1, percentile(P) with P above 50 and up to 100, entropy or mse, not "
                      "'%.*s'",
                      STR_ARG(s->calibrate));
}

/* What stands for several operators becomes these. */
static bool open_up(Job *j, Module *m) {
    return job_pass(j, m, "inline-functions") && job_pass(j, m, "unfuse");
}

/* A product whose bias a node of its own adds is rounded to integers with it, not in between. */
static bool all_integer(Job *j, Module *m) {
    return job_pass(j, m, "matmul-to-gemm") && job_pass(j, m, "raise-quant");
}

/* What other tools quantized, in any of their forms, becomes types. Exporters leave constants and
 * copies of values that are to be computed; these part what belongs together. */
static bool raise(Job *j, Module *m, ModuleForm f) {
    if (f.integers) {
        if (!job_pass(j, m, "raise-integer-form"))
            return false;
        bool scaling = f.scaling;
        f = module_form(m);
        f.scaling = scaling;
    }
    bool any = f.scaling || f.qonnx || f.onnx_quantized;
    return (!f.scaling || job_pass(j, m, "fold-const")) &&
           (!any || (job_pass(j, m, "fold-params") && job_pass(j, m, "drop-identities"))) &&
           (!f.scaling || job_pass(j, m, "raise-scaling")) &&
           (!f.qonnx || job_pass(j, m, "raise-qonnx")) && (!any || job_pass(j, m, "raise-quant")) &&
           (!any || !j->o->integer_only || all_integer(j, m));
}

bool job_raise(const Job *j, Module *m) {
    Job k = {.o = j->o, .d = j->d, .ctx = {.d = j->d, .target = j->ctx.target}};
    if (!open_up(&k, m) || !job_pass(&k, m, "freeze") || !raise_opset(&k, m))
        return false;
    ModuleForm f = module_form(m);
    return (!f.annotated || job_pass(&k, m, "raise-annotations")) && raise(&k, m, f);
}

/* What -weights-from and -scales-from give. */
static bool take_over(Job *j, Module *m) {
    if (j->weights_from && !donor_weights(j, m, j->weights_from))
        return false;
    return !j->scales_from ||
           (donor_scales(j, m, j->scales_from, &j->donated) && settle_scheme(j, m));
}

/* Decisions that the model holds, or that its statistics are there for, are what these write. */
static bool is_to_decide(const Job *j, Module *m) {
    bool asked = j->emit == EMIT_SCHEME || j->emit == EMIT_OVERRIDES || j->emit == EMIT_ENCODINGS ||
                 j->emit == EMIT_CALIB_TABLE;
    if (!asked || j->form != FORM_AS_IS || j->o->passes)
        return false;
    ModuleForm f = module_form(m);
    bool have = f.fake || f.typed || f.onnx_quantized || f.qonnx || f.annotated;
    return have || module_has_statistics(m);
}

/* Whether the result may hold operators of ONNX alone. */
static bool has_onnx_alone(const Job *j) {
    return j->ctx.target == TARGET_ONNX || j->ctx.target == TARGET_TENSORRT ||
           j->ctx.target == TARGET_AIDGE;
}

static bool bring_into_form(Job *j, Module *m) {
    if (is_to_decide(j, m))
        j->form = FORM_FAKE;
    if (!settle_scheme(j, m) || !job_fix_shapes(j, m))
        return false;
    if (j->ctx.n_axes && !job_pass(j, m, "dynamic-axis"))
        return false;
    if (j->o->passes) {
        j->ctx.target_opset = j->o->target_opset > 0 ? j->o->target_opset : 0;
        return run_listed_passes(j, m);
    }
    bool calls = m->n_functions > 0; /* of nodes that may state rules */
    if (j->form != FORM_AS_IS && (!open_up(j, m) || (calls && !settle_scheme(j, m))))
        return false;
    int64_t opset = module_opset(m, STR("")); /* a function may have raised it */
    j->ctx.lowers_opset = j->o->target_opset > 0 && j->o->target_opset <= opset;
    if (j->form == FORM_AS_IS) {
        if (j->emit == EMIT_QIR || j->emit == EMIT_ONNX || j->emit == EMIT_DOT)
            warn_of_nothing_decided(j, m->arena);
        j->ctx.target_opset = j->o->target_opset;
        if (j->o->target_opset > 0 && !job_pass(j, m, "upgrade"))
            return false;
        if (j->emit == EMIT_ONNX && !j->o->annotate && module_form(m).fake)
            return diag_error(j->d, LOC_NONE,
                              "ONNX has no words for decisions (float ~ q): -emit=qdq or -emit=qop "
                              "carries them out, -annotate writes them beside the float model");
        return j->emit != EMIT_ONNX || !has_onnx_alone(j) ||
               (open_up(j, m) && raise_opset(j, m) && job_pass(j, m, "spell-onnx"));
    }
    if (!job_pass(j, m, "freeze") || !raise_opset(j, m))
        return false;
    if (j->form >= FORM_FAKE && module_form(m).annotated && !job_pass(j, m, "raise-annotations"))
        return false;
    if (j->form >= FORM_FLOAT && !take_over(j, m))
        return false;
    ModuleForm f = module_form(m);
    if (!look_if_decided(j, m, f))
        return false;
    if (has_onnx_alone(j) && !f.typed && !job_pass(j, m, "split-products"))
        return false;
    f.scaling |= f.integers;
    if (f.onnx_quantized || f.qonnx || f.scaling) {
        if (j->form >= FORM_FAKE && !raise(j, m, f))
            return false;
    } else if (!f.typed && !f.fake && !job_quantize(j, m)) {
        return false;
    }
    bool fake = module_form(m).fake;
    if (f.fake) /* what is decided here fits */
        warn_of_clipped(m, j->d);
    if (j->form >= FORM_TRUE && fake &&
        !(job_pass(j, m, "float32") && job_pass(j, m, "true-quant")))
        return false;
    if (j->form >= FORM_TRUE && j->weights_from && !job_pass(j, m, "drop-identities"))
        return false; /* copies for those that read a value rounded (donor.c) */
    if (j->form >= FORM_TRUE && !obey_recipe(j, m))
        return false;
    if (j->emit == EMIT_C && j->form >= FORM_TRUE && !job_pass(j, m, "order-integers"))
        return false;
    if (j->form >= FORM_TRUE && j->quant_io && !job_pass(j, m, "quant-io"))
        return false;
    if (j->form >= FORM_TRUE && m->wide_zp && !job_pass(j, m, "wide-zp"))
        return false;
    measure_result(j, m);
    if (j->form < FORM_QDQ)
        return j->emit != EMIT_ONNX || !has_onnx_alone(j) || job_pass(j, m, "spell-onnx");
    if (j->form == FORM_QOP && !(job_pass(j, m, "lower-nbits") && job_pass(j, m, "lower-tables")))
        return false;
    return raise_opset(j, m) && (!module_form(m).qonnx || job_pass(j, m, "spell-thresholds")) &&
           job_pass(j, m, j->form == FORM_QDQ ? "lower-qdq" : "lower-qop") &&
           (!has_onnx_alone(j) || job_pass(j, m, "spell-onnx"));
}

bool job_compile(Job *j, Module *m) {
    bool rename = j->o->input_names || j->o->output_names; /* data and rules know the old names */
    j->read_opset = module_opset(m, STR(""));
    if (j->form != FORM_AS_IS && !j->o->passes && !module_data_required(m, j->d))
        return false; /* before any pass wonders why something is no constant */
    if (j->form != FORM_AS_IS && !j->o->passes && !module_check_use(m, j->d))
        return false;
    if (j->form != FORM_AS_IS || j->o->passes || j->o->target_opset > 0)
        module_forget_file(m);
    bool aidge = j->ctx.target == TARGET_AIDGE && !j->o->passes &&
                 (j->form >= FORM_QDQ || j->emit == EMIT_ONNX);
    return bring_into_form(j, m) && (!rename || job_pass(j, m, "rename-interface")) &&
           (!aidge || job_pass(j, m, "aidge-names")) &&
           (!j->o->annotate || j->o->passes || job_pass(j, m, "annotate"));
}

/* Fake-quantized values are what training sees: rounded to their grids, computed in float. */
static bool run_on_integers(Job *j, Module *m) {
    bool fake = module_form(m).fake && !j->o->ignore_quant;
    if (!j->o->form) {
        if (fake && j->o->requant)
            diag_warning(j->d, LOC_NONE,
                         "-requant has no effect on `float ~` values, which are computed in float "
                         "and rounded: -form=true computes on integers, as C does");
        return true;
    }
    if (strcmp(j->o->form, "true") != 0)
        return diag_error(j->d, LOC_NONE, "run and compare take -form=true alone");
    return !fake || job_pass(j, m, "true-quant");
}

static bool open_for_run(Job *j, Module *m) {
    if (!module_data_required(m, j->d) || !open_up(j, m) || !module_check_use(m, j->d))
        return false;
    module_forget_file(m);
    j->ctx.target_opset = module_opset(m, STR("")) < OPS_BIND_OPSET ? OPS_BIND_OPSET : 0;
    if (!job_pass(j, m, "freeze") || !job_pass(j, m, "upgrade"))
        return false;
    const TextList *data = j->o->input.n ? &j->o->input : &j->o->calib;
    if (!samples_settle(m, data->items, data->n, j->d) || !module_check_fixed(m, j->d))
        return false;
    ModuleForm f = module_form(m);
    f.scaling = false; /* floats compute just that */
    if (!raise(j, m, f) || !run_on_integers(j, m))
        return false;
    if (m->wide_zp && !job_pass(j, m, "wide-zp"))
        return false;
    return job_fix_shapes(j, m);
}

static BatchPlan *plan(Job *j, Module *m) {
    const TextList *data = j->o->input.n ? &j->o->input : &j->o->calib;
    DataPaths *paths = NEW(m->arena, DataPaths);
    *paths = pass_data(&j->ctx);
    paths->paths = (const char *const *)data->items;
    paths->n = data->n;
    return samples_plan(m, paths, j->d);
}

static bool follow(Job *j, Module *m, BatchPlan *p, bool together) {
    return samples_bind_plan(m, p, together, &j->batch, j->d) && job_pass(j, m, "fold-const");
}

bool job_prepare_run(Job *j, Module *m) {
    BatchPlan *p = open_for_run(j, m) ? plan(j, m) : NULL;
    return p && follow(j, m, p, true);
}

/* A batch that the other of a pair has by name is none that this one has to have. */
static void leave_to_other(Job *j, const Module *m, const Module *other) {
    const char *batch = j->ctx.batch;
    if (batch && !samples_can_name(m, batch) && samples_can_name(other, batch))
        j->ctx.batch = NULL;
}

bool job_prepare_pair(Job *a, Module *ma, Job *b, Module *mb) {
    leave_to_other(a, ma, mb);
    leave_to_other(b, mb, ma);
    BatchPlan *pa = open_for_run(a, ma) ? plan(a, ma) : NULL;
    BatchPlan *pb = pa && open_for_run(b, mb) ? plan(b, mb) : NULL;
    bool together = pa && pb && plan_has_batch(pa) && plan_has_batch(pb);
    return pa && pb && follow(a, ma, pa, together) && follow(b, mb, pb, together);
}
