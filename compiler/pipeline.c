/* The engine of pipeline.def, and the ways that commands ask for. */
#include "backend/qir/qir_write.h"
#include "compiler/session.h"
#include "compiler/snapshot.h"
#include "compiler/stated.h"
#include "compiler/steps.h"
#include "compiler/trace.h"
#include "passes/library.h"
#include "passes/quantize/open.h"

/* ---- one pass, with what the user wants to see of it ---- */

static bool selected(const char *option, const char *pass) {
    return option && (strcmp(option, "all") == 0 || strcmp(option, pass) == 0);
}

static void show(Job *j, const Module *m, const char *when, const char *pass) {
    QirWriteOptions w = {.elide = true,
                         .elide_larger = j->o->elide_larger > 0 ? (size_t)j->o->elide_larger : 64};
    diags_flush(j->d);
    progress_clear(diags_progress(j->d));
    fprintf(stderr, "// %s %s\n", when, pass);
    qir_write(m, stderr, &w);
}

static bool run_traced(Job *j, Module *m, const Pass *p) {
    Progress *progress = diags_progress(j->d);
    Snapshot *before = j->o->verbose ? snapshot_take(m) : NULL;
    size_t level = progress_begin(progress, p->name, 0);
    trace_begin(j->o->trace);
    bool ok = pass_run(p, m, &j->ctx);
    trace_end(j->o->trace, arena_strf(m->arena, "pass %s", p->name).s);
    progress_end(progress, level);
    if (ok && before)
        diag(j->d, DIAG_REMARK, LOC_NONE, "pass %s: %s", p->name, snapshot_changes(before, m));
    snapshot_free(before);
    return ok;
}

bool job_pass(Job *j, Module *m, PassId id) {
    const Pass *p = pass_of(id);
    if (selected(j->o->print_before, p->name))
        show(j, m, "before", p->name);
    if (!run_traced(j, m, p))
        return false;
    if (selected(j->o->print_after, p->name))
        show(j, m, "after", p->name);
    return !j->o->verify_each || roundtrip_check(m, j->o, j->d);
}

/* ---- the table ---- */

typedef struct Step Step;
struct Step {                              /* one of these; none is the end */
    bool (*when)(const Job *j, Module *m); /* skips the step behind where it does not hold */
    bool (*action)(Job *j, Module *m);
    const Step *steps;
    PassId pass;
};

/* -form=float of what came quantized: it is for no runtime yet. */
static bool shows_float(const Job *j) {
    return j->form == FORM_BACK && j->emit != EMIT_FLOAT;
}

bool job_lowers(const Job *j) {
    return j->form > FORM_FLOAT && !shows_float(j);
}

#define WHEN(id, condition)                                                                        \
    static bool when_##id(const Job *j, Module *m) {                                               \
        (void)j;                                                                                   \
        (void)m;                                                                                   \
        return condition;                                                                          \
    }
#include "compiler/conditions.def"
#undef WHEN

#define STEPS(id) static const Step steps_##id[] = {
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, NULL, PASS_NONE                                                                \
    }                                                                                              \
    }                                                                                              \
    ;
#define IF(id)   {.when = when_##id},
#define PASS(id) {.pass = PASS_##id},
#define DO(id)   {.action = step_##id},
#define TAKE(id) {.steps = steps_##id},
#include "compiler/pipeline.def"

static bool take(const Step *s, Job *j, Module *m) {
    for (; s->when || s->action || s->steps || s->pass; s++) {
        bool ok = true;
        if (s->when)
            s += !s->when(j, m);
        else if (s->action)
            ok = s->action(j, m);
        else if (s->steps)
            ok = take(s->steps, j, m);
        else
            ok = job_pass(j, m, s->pass);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- the ways ---- */

static const Step *const ways[] = {
#define FORM(id, name, steps) [FORM_##id] = steps_##steps,
#include "compiler/pipeline.def"
};

/* Decisions that the model holds, or that its statistics are there for, are what these write. */
static bool is_to_decide(const Job *j, Module *m) {
    bool asked = j->emit == EMIT_SCHEME || j->emit == EMIT_OVERRIDES || j->emit == EMIT_ENCODINGS ||
                 j->emit == EMIT_CALIB_TABLE;
    if (j->form != FORM_AS_IS || j->o->passes || !(asked || job_writes_beside(j)))
        return false;
    ModuleForm f = module_form(m);
    if (!asked)
        return f.typed || (j->ctx.annotate_nodes && (!f.fake || module_has_stated(m)));
    return f.fake || f.typed || f.onnx_quantized || f.qonnx || f.annotated ||
           module_has_stated(m) || module_has_statistics(m);
}

/* A text that is written over stays in its form. */
static bool stays_typed(const Job *j, Module *m) {
    ModuleForm f = module_form(m);
    return j->o->in_place && !j->o->form && j->form == FORM_FAKE && f.typed && !f.fake;
}

/* The float form of a model that came quantized is the float model behind it, which data would have
 * no part in. */
static bool goes_back(const Job *j, Module *m) {
    ModuleForm f = module_form(m);
    return j->o->form && j->form == FORM_FLOAT && !options_have_data(j->o) &&
           (f.fake || f.typed || form_is_spelled(f));
}

bool job_compile(Job *j, Module *m) {
    j->read_opset = module_opset(m, STR(""));
    bool fills = j->o->in_place && !j->o->passes && openings_marked(m, NULL);
    if (j->form == FORM_AS_IS && fills)
        j->form = FORM_FAKE;
    if (stays_typed(j, m))
        j->form = FORM_TRUE;
    else if (goes_back(j, m))
        j->form = FORM_BACK;
    else if (is_to_decide(j, m))
        j->form = FORM_FAKE;
    return take(j->o->passes ? steps_listed : ways[j->form], j, m);
}

static bool take_of_donor(const Step *steps, const Job *j, Module *m) {
    Job k = {.o = j->o,
             .d = j->d,
             .form = FORM_FAKE,
             .ctx = {.d = j->d, .target = j->ctx.target, .library = j->ctx.library}};
    return take(steps, &k, m);
}

bool job_raise(const Job *j, Module *m) {
    return take_of_donor(steps_donor, j, m);
}

bool job_fuse(const Job *j, Module *m) {
    return take_of_donor(steps_donor_fused, j, m);
}

bool job_reference(Job *j, Module *m) {
    return take(steps_reference, j, m);
}

static BatchPlan *plan(Job *j, Module *m) {
    if (!take(steps_run, j, m))
        return NULL;
    const TextList *data = j->o->input.n ? &j->o->input : &j->o->calib;
    DataPaths *paths = NEW(m->arena, DataPaths);
    *paths = pass_data(&j->ctx);
    paths->paths = (const char *const *)data->items;
    paths->n = data->n;
    return samples_plan(m, paths, j->d);
}

static bool follow(Job *j, Module *m, BatchPlan *p, bool together) {
    return samples_bind_plan(m, p, together, &j->batch, j->d) && job_pass(j, m, PASS_fold_const);
}

bool job_prepare_run(Job *j, Module *m) {
    BatchPlan *p = plan(j, m);
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
    BatchPlan *pa = plan(a, ma);
    BatchPlan *pb = pa ? plan(b, mb) : NULL;
    bool together = pa && pb && plan_has_batch(pa) && plan_has_batch(pb);
    return pa && pb && follow(a, ma, pa, together) && follow(b, mb, pb, together);
}
