/* A float model becomes one with decisions: folding, equalization, statistics, decisions, and what
 * data can still do for those. */
#include "compiler/doubtful.h"
#include "compiler/no_integers.h"
#include "compiler/scheme_nodes.h"
#include "compiler/session.h"
#include "compiler/without_effect.h"

#include "exec/fixed_shapes.h"
#include "passes/quantize/choice.h"
#include "passes/recipe.h"
#include "passes/quantize/masks.h"
#include "passes/quantize/weight_error.h"

/* ---- statistics ---- */

static void look_for_stat(Value *v, void *ctx) {
    bool *found = ctx;
    *found = *found || (v->stat && v->kind != VALUE_CONST);
}

bool module_has_statistics(Module *m) {
    bool found = false;
    module_each_value(m, look_for_stat, &found);
    return found;
}

static void forget_stat(Value *v, void *ctx) {
    (void)ctx;
    if (v->stat)
        calib_forget(v->stat);
}

/* Room for what the float model gives, if that is asked for. */
static bool keep_some(Job *j, Module *m, Samples *s) {
    size_t n;
    if (!j->measures || !j->o->calib.n)
        return true;
    if (!samples_count(s, &n))
        return false;
    j->kept = kept_new(m, n);
    return true;
}

/* Programs need static shapes, the model keeps its symbolic ones. */
static bool calibrate_module(Job *j, Module *m, const Trained *trained) {
    DataPaths data = pass_data(&j->ctx);
    FixedShapes *shapes = shapes_fix(m, &data, j->d);
    if (!shapes)
        return false;
    Stat *const *before = input_stats(m);
    Samples *s = j->o->calib.n ? samples_open(m->arena, m, j->o->calib.items, j->o->calib.n, j->d)
                               : samples_random(m->arena, m, j->ctx.random);
    j->calib.counts_from = masked_from;
    j->calib.ctx = uses_new(m);
    bool ok = s && samples_take(s, j->ctx.part) && keep_some(j, m, s) &&
              calibrate(m, s, &j->calib, j->kept, &j->calibrated, j->d);
    if (s)
        samples_close(s);
    if (ok && j->o->calib.n) {
        warn_of_far_inputs(m, before, j->d);
        warn_of_far_norm(m, trained, j->d);
    }
    if (ok)
        warn_of_zero_inputs(m, j->d);
    shapes_restore(m, shapes);
    return ok;
}

static bool no_statistics(Job *j) {
    return diag_error(j->d, LOC_NONE,
                      "this is a float model without statistics, so nothing can be quantized: give "
                      "data with -calib=PATH, or -calib-random to try with random data, or a .qir "
                      "with `stat` lines or quantized types; -dynamic and -weight-only need none");
}

/* ---- decisions ---- */

static void look_for_few(Value *v, void *ctx) {
    bool *found = ctx;
    *found = *found || (v->kind == VALUE_CONST && v->type.quant && weight_is_few(v->type.quant));
}

/* What data can still do for the decisions that were made: as asked, else where it says something,
 * correct biases, unless that makes the outputs over 1 dB worse, and round weights of few bits. The
 * float model beside annotations stays what it is. */
static bool mend(Job *j, Module *m) {
    const Options *o = j->o;
    bool few = false, beside = j->emit == EMIT_ONNX && o->annotate;
    bool by_default = o->calib.n && !o->bias_correction && !o->no_bias_correction && !beside;
    module_each_value(m, look_for_few, &few);
    j->ctx.round_few = !o->adaround;
    j->rounded = o->adaround || (by_default && few);
    j->mended = j->rounded || o->bias_correction || by_default;
    if (j->rounded) /* corrects biases too */
        return job_pass(j, m, "adaround");
    j->ctx.judge_biases = by_default;
    if (j->mended) {
        bool ok = job_pass(j, m, "bias-correction");
        j->mended = j->ctx.biases_cost == 0;
        return ok;
    }
    j->uncorrected = !options_have_data(j->o) && !o->no_bias_correction;
    j->unrounded = j->uncorrected && few;
    return true;
}

/* Statistics say of each value alone what it is; what rounding does to those behind it is seen on
 * data. */
static bool spare_front(Job *j, Module *m) {
    return !j->o->calib.n || j->o->integer_only || job_pass(j, m, "front-end");
}

/* Of operators that stay float the tables can still be integers, but for what speaks of the values
 * of the float model, and TensorRT, which has no integers that are looked up. */
static bool store_tables(Job *j, Module *m) {
    bool of_float_model = j->emit == EMIT_ONNX || j->emit == EMIT_SCHEME ||
                          j->emit == EMIT_OVERRIDES || j->emit == EMIT_ENCODINGS ||
                          j->emit == EMIT_CALIB_TABLE;
    return of_float_model || j->ctx.target == TARGET_TENSORRT || job_pass(j, m, "quant-tables");
}

static void look_for_float(Value *v, void *ctx) {
    bool *found = ctx;
    *found = *found || (v->type.kind == TYPE_TENSOR && elem_is_float(v->type.elem));
}

static bool has_floats(Module *m) {
    bool found = false;
    module_each_value(m, look_for_float, &found);
    return found;
}

static void count_ifs(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    *(size_t *)ctx += node_is(n, "If");
}

/* Constants are computed; what these settle may be conditions, whose branches hold more of them. */
static bool fold(Job *j, Module *m) {
    size_t left = 0, before;
    module_each_graph(m, count_ifs, &left);
    do {
        before = left;
        left = 0;
        if (!job_pass(j, m, "fold-const") || !job_pass(j, m, "inline-branches"))
            return false;
        module_each_graph(m, count_ifs, &left);
    } while (left < before);
    return true;
}

/* The same model in a form that has fewer results to round. */
static bool prepare(Job *j, Module *m) {
    bool statically = !j->o->dynamic && !j->o->weight_only; /* the others' forms want MatMul */
    bool bias_apart = statically && recipe_of(&j->ctx);     /* recipes are about MatMul + Add */
    bool by_name = j->donated.n && !options_have_data(j->o) && !module_has_statistics(m);
    return job_pass(j, m, "hoist-invariants") &&
           job_pass(j, m, "drop-identities") && /* a copy of a constant is no other constant */
           fold(j, m) && job_pass(j, m, "drop-identities") && job_pass(j, m, "fold-pad") &&
           (!statically || (job_pass(j, m, "sum-to-add") && job_pass(j, m, "fuse-gelu"))) &&
           job_pass(j, m, "fold-affine") &&
           (!statically || bias_apart || by_name || /* of what a new form makes nothing is known */
            (job_pass(j, m, "matmul-to-gemm") && job_pass(j, m, "fold-affine"))) &&
           (!bias_apart || job_pass(j, m, "gemm-to-matmul"));
}

static void state_kept(Graph *g, void *ctx) {
    Job *j = ctx;
    FOR_NODES(n, g)
    if (n->def && n->def->quant.kind != QUANT_NEVER && choice_why_kept(&j->ctx, n))
        scheme_keep_node(n, g->module->arena);
}

/* A text or float model without any quantized type does not show that somebody decided: the next
 * run would decide anew, and not know what was to stay float. */
static void leave_word(Job *j, Module *m) {
    if (j->emit == EMIT_QIR || (j->emit == EMIT_ONNX && j->form <= FORM_FLOAT))
        module_each_graph(m, state_kept, j);
}

/* Notes whether anything came of it. */
static bool decided(Job *j, Module *m, bool ok) {
    ModuleForm f = module_form(m);
    j->nothing = ok && !f.fake && !f.typed;
    j->decided = ok && !j->nothing;
    if (j->nothing)
        leave_word(j, m);
    return ok;
}

bool job_quantize(Job *j, Module *m) {
    bool statically = !j->o->dynamic && !j->o->weight_only;
    bool have = !statically || options_have_data(j->o) || module_has_statistics(m) ||
                scheme_has_parameters(&j->ctx.scheme);
    Trained trained = trained_norm(m);
    if (j->form > FORM_FLOAT && have && !job_pass(j, m, "float32"))
        return false;
    if (!prepare(j, m))
        return false;
    if (j->o->equalize && !job_pass(j, m, "equalize"))
        return false;
    if (j->o->smooth_quant && !job_pass(j, m, "smooth-quant"))
        return false;
    if (!j->o->weight_only && !j->o->integer_only && j->form > FORM_FLOAT)
        j->advice = advice_of(m, j->o->dynamic);
    if (j->o->dynamic)
        return j->form <= FORM_FLOAT ||
               decided(j, m, job_pass(j, m, "dynamic-quant") && job_pass(j, m, "quant-tables"));
    if (j->o->weight_only)
        return j->form <= FORM_FLOAT ||
               decided(j, m, job_pass(j, m, "decide-weights") && job_pass(j, m, "quant-tables"));
    if (options_have_data(j->o) && !calibrate_module(j, m, &trained))
        return false;
    if (j->form <= FORM_FLOAT) {
        if (!options_have_data(j->o))
            warn_of_nothing_decided(j, m->arena);
        else
            leave_word(j, m);
        return true;
    }
    if (!have && j->emit == EMIT_C && j->o->integer_only && !has_floats(m))
        return true; /* its own integers need no decision */
    if (!have && j->emit == EMIT_C && j->o->integer_only && no_integers(m, j->d))
        return false;
    if (!have && (j->emit != EMIT_C || j->o->integer_only))
        return no_statistics(j);
    if (!have) {
        warn_of_nothing_decided(j, m->arena);
        return true;
    }
    if (j->o->calib_method && !options_have_data(j->o))
        diag_warning(j->d, LOC_NONE,
                     "-calib-method has no effect without data: the model's statistics are what "
                     "another run has found, and stay; -calib=PATH finds them anew");
    module_each_value(m, forget_stat, NULL);
    return decided(j, m,
                   job_pass(j, m, "split-bias") && job_pass(j, m, "decide") && spare_front(j, m) &&
                       mend(j, m) && store_tables(j, m));
}
