/* A float model becomes one with decisions: the steps of it that are no passes. */
#include "compiler/doubtful.h"
#include "compiler/no_integers.h"
#include "compiler/scheme_nodes.h"
#include "compiler/session.h"
#include "compiler/steps.h"
#include "compiler/without_effect.h"
#include "compiler/trace.h"

#include "exec/fixed_shapes.h"
#include "exec/shard.h"
#include "passes/quantize/choice.h"
#include "passes/quantize/masks.h"
#include "passes/quantize/open.h"
#include "passes/quantize/outliers.h"
#include "passes/quantize/vanished.h"
#include "passes/quantize/weight_error.h"

/* ---- what there is to decide from ---- */

static void look_for_stat(Value *v, void *ctx) {
    bool *found = ctx;
    *found = *found || (v->stat && v->kind != VALUE_CONST);
}

bool module_has_statistics(Module *m) {
    bool found = false;
    module_each_value(m, look_for_stat, &found);
    return found;
}

bool job_is_static(const Job *j) {
    return !j->o->dynamic && !j->o->weight_only;
}

/* The other forms want MatMul. */
Recipe job_recipe(const Job *j) {
    return job_is_static(j) ? recipe_of(&j->ctx) : RECIPE_NONE;
}

/* Of what a new form makes nothing is known then. */
bool job_decides_by_name(const Job *j, Module *m) {
    return j->donated.n && !options_have_data(j->o) && !module_has_statistics(m);
}

bool step_find_basis(Job *j, Module *m) {
    j->has_basis = !job_is_static(j) || options_have_data(j->o) || module_has_statistics(m) ||
                   scheme_has_parameters(&j->ctx.scheme);
    j->trained = NEW(m->arena, Trained);
    *j->trained = trained_norm(m);
    return true;
}

/* ---- statistics ---- */

/* Room for what the float model gives, if that is asked for. */
static bool keep_some(Job *j, Module *m, Samples *s) {
    size_t n;
    if (!j->measures || !j->o->calib.n)
        return true;
    if (!samples_count(s, &n))
        return false;
    j->kept = kept_new(m, n);
    j->kept->closely = j->o->sqnr_metadata;
    return true;
}

/* Programs need static shapes, the model keeps its symbolic ones. */
static bool run_calibration(Job *j, Module *m, Diags *d) {
    DataPaths data = pass_data(&j->ctx);
    data.runs_in_part = true;
    FixedShapes *shapes = shapes_fix(m, &data, d);
    if (!shapes)
        return false;
    const Expected *before = expected_inputs(m, &j->ctx);
    Samples *s = j->o->calib.n ? samples_open(m->arena, m, j->o->calib.items, j->o->calib.n, d)
                               : samples_random(m->arena, m, j->ctx.random);
    j->calib.on_grids = j->ctx.on_grids;
    j->calib.counts_from = masked_from;
    j->calib.ctx = uses_new(m);
    bool ok = s && samples_take(s, j->ctx.part) && keep_some(j, m, s) &&
              calibrate(m, s, &j->calib, j->kept, &j->calibrated, d);
    if (s)
        samples_close(s);
    if (ok && j->o->calib.n) {
        warn_of_far_inputs(m, before, d);
        warn_of_far_norm(m, j->trained, d);
    }
    if (ok)
        warn_of_zero_inputs(m, d);
    shapes_restore(m, shapes);
    return ok;
}

static bool calibrate_module(Job *j, Module *m, Diags *d) {
    trace_begin(j->o->trace);
    bool ok = run_calibration(j, m, d);
    trace_end(j->o->trace, "calibration");
    return ok;
}

static bool no_statistics(Job *j) {
    return diag_error(j->d, LOC_NONE,
                      "this is a float model without statistics, so nothing can be quantized: give "
                      "data with -calib=PATH, or -calib-random to try with random data, or a .qir "
                      "with `stat` lines or quantized types; -dynamic and -weight-only need none");
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

/* Rules of the module, and those that nodes state of themselves, are written with it. */
static bool is_written(const Job *j, const Module *m, const Node *n) {
    PassContext own = {.scheme = m->rules};
    const SchemeRule *r = choice_to_keep(&j->ctx, n);
    bool itself = r->loc.source && r->loc.source == n->loc.source && r->loc.begin == n->loc.begin;
    return itself || choice_why_kept(&own, n);
}

static void state_kept(Graph *g, void *ctx) {
    Job *j = ctx;
    FOR_NODES(n, g)
    if (n->def && n->def->quant.kind != QUANT_NEVER && choice_why_kept(&j->ctx, n) &&
        !result_is_written(&j->ctx, n) && !is_written(j, g->module, n))
        scheme_keep_node(n);
}

/* A text or float model does not show which float values somebody wanted float: the next run with
 * data would decide on them. */
void job_leave_word(Job *j, Module *m) {
    bool shown = j->form <= FORM_FLOAT || job_writes_beside(j);
    if (j->emit != EMIT_QIR && (j->emit != EMIT_ONNX || !shown))
        return;
    module_each_graph(m, state_kept, j);
    for (size_t i = 0; i < j->ctx.n_spared; i++)
        scheme_keep_node(j->ctx.spared[i]);
}

/* A float model of which nothing can be decided is an error, but for C, which may stay float. */
static bool nothing_decides(Job *j, Module *m) {
    bool to_c = j->emit == EMIT_C;
    if (to_c && j->o->integer_only && !has_floats(m))
        return true; /* its own integers need no decision */
    if (to_c && j->o->integer_only && no_integers(m, j->d))
        return false;
    if (!to_c || j->o->integer_only)
        return no_statistics(j);
    warn_of_nothing_decided(j, m->arena);
    return true;
}

bool step_statistics(Job *j, Module *m) {
    bool data = options_have_data(j->o);
    if (data && job_mends_outliers(j)) {
        j->ctx.sizes = channel_sizes_new(m, j->d);
        j->calib.also = channel_sizes_look;
        j->calib.also_ctx = j->ctx.sizes;
    }
    bool ok = !data || calibrate_module(j, m, j->d);
    j->calib.also = NULL;
    if (!ok)
        return false;
    if (j->form > FORM_FLOAT)
        return j->has_basis || nothing_decides(j, m);
    if (data)
        job_leave_word(j, m);
    else
        warn_of_nothing_decided(j, m->arena);
    return true;
}

/* Few channels that are much larger than all others are scaled, and the model runs once more: what
 * there is to tell of the data has been told. */
bool step_mend_outliers(Job *j, Module *m) {
    if (!outliers_find(j->ctx.sizes).n) {
        j->ctx.sizes = NULL;
        return true;
    }
    Diags *unheard = diags_new(m->arena, NULL, false);
    diags_record(unheard, true);
    return job_pass(j, m, PASS_equalize) &&
           (calibrate_module(j, m, unheard) || calibrate_module(j, m, j->d));
}

static void forget_stat(Value *v, void *arena) {
    if (v->stat)
        shard_forget(arena, v->stat);
}

/* What calibration needed while it counted. */
bool step_forget_statistics(Job *j, Module *m) {
    if (j->o->calib_method && !options_have_data(j->o))
        diag_warning(j->d, LOC_NONE,
                     "-calib-method has no effect without data: the model's statistics are what "
                     "another run has found, and stay; -calib=PATH finds them anew");
    module_each_value(m, forget_stat, m->arena);
    return true;
}

/* ---- decisions ---- */

static void count_ifs(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    *(size_t *)ctx += node_is(n, "If");
}

/* Constants are computed; what these settle may be conditions, whose branches hold more of them. */
bool step_fold(Job *j, Module *m) {
    size_t left = 0, before;
    module_each_graph(m, count_ifs, &left);
    do {
        before = left;
        left = 0;
        if (!job_pass(j, m, PASS_fold_const) || !job_pass(j, m, PASS_inline_branches))
            return false;
        module_each_graph(m, count_ifs, &left);
    } while (left < before);
    return true;
}

bool step_advise(Job *j, Module *m) {
    j->advice = advice_of(j, m);
    return true;
}

typedef struct FewBits {
    bool found;
    size_t narrower; /* weights that would fit into fewer bits than they are stored with, */
    ElemType stored; /* in this type, as there is no narrower one */
} FewBits;

static void look_for_few(Value *v, void *ctx) {
    FewBits *few = ctx;
    const Quant *q = v->kind == VALUE_CONST ? v->type.quant : NULL;
    if (!q || !weight_is_few(q))
        return;
    few->found = true;
    int64_t n = quant_hi(q) - quant_lo(q) + 1;
    if (elem_bits(q->storage) == 4 && n <= 8 && n > 4) {
        few->narrower++;
        few->stored = q->storage;
    }
}

bool job_mends_outliers(const Job *j) {
    const Options *o = j->o;
    bool has_weights = j->emit == EMIT_QIR || j->emit == EMIT_QDQ || j->emit == EMIT_QOP ||
                       j->emit == EMIT_C || j->emit == EMIT_HTML || j->emit == EMIT_JSON;
    return o->calib.n && has_weights && !o->equalize && !o->no_equalize && !o->smooth_quant &&
           !o->dynamic && !o->weights_from && !o->scales_from &&
           !scheme_has_parameters(&j->ctx.scheme);
}

/* What data can still do for the decisions that were made: as asked, else where it says something,
 * correct biases, unless that makes the outputs over 1 dB worse, and round weights of few bits. The
 * float model beside annotations stays what it is. */
bool step_plan_mending(Job *j, Module *m) {
    const Options *o = j->o;
    FewBits few = {0};
    bool by_default =
        o->calib.n && !o->bias_correction && !o->no_bias_correction && !job_writes_beside(j);
    module_each_value(m, look_for_few, &few);
    j->ctx.round_few = !o->adaround;
    j->ctx.judge_biases = by_default;
    j->rounded = o->adaround || (by_default && few.found);
    j->mended = j->rounded || o->bias_correction || by_default;
    j->uncorrected = !j->mended && !options_have_data(o) && !o->no_bias_correction;
    j->unrounded = j->uncorrected && few.found;
    j->widened = few.narrower;
    j->widened_to = few.stored;
    return true;
}

bool step_note_correction(Job *j, Module *m) {
    (void)m;
    j->mended = j->ctx.biases_cost == 0;
    return true;
}

/* Of operators that stay float the tables can still be integers, but for what speaks of the values
 * of the float model, and targets that look nothing up in integers. */
bool job_stores_tables(const Job *j) {
    bool of_float_model = j->emit == EMIT_ONNX || j->emit == EMIT_SCHEME ||
                          j->emit == EMIT_OVERRIDES || j->emit == EMIT_ENCODINGS ||
                          j->emit == EMIT_CALIB_TABLE;
    return !of_float_model && !j->ctx.target->no_integers;
}

/* Whether anything came of it. */
bool step_note_decisions(Job *j, Module *m) {
    ModuleForm f = module_form(m);
    j->nothing = !f.fake && !f.typed;
    j->decided = !j->nothing;
    tell_vanished(&j->ctx, m);
    if (j->nothing || j->form <= FORM_FAKE)
        job_leave_word(j, m);
    return true;
}
