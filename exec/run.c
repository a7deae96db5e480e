/* Runs a program in this process. See exec/exec.h. */
#include "exec/lengths.h"
#include "exec/runner.h"
#include "exec/within.h"
#include "support/parallel.h"

void *runner_input(Runner *r, size_t i) {
    return r->memory[r->program->inputs[i]];
}

const void *runner_output(const Runner *r, size_t i) {
    int at = r->program->outputs[i];
    return at < 0 ? NULL : r->memory[at];
}

void runner_observe(Runner *r, RunnerObserver *fn, void *ctx) {
    r->observer = fn;
    r->observer_ctx = ctx;
}

/* Shows the values complete after `call`; `at` walks through the order. */
static size_t observe(Runner *r, size_t at, int call) {
    for (; at < r->n_order && runner_completes(r, r->order[at]) <= call; at++)
        if (r->observer && runner_completes(r, r->order[at]) == call)
            r->observer(r->observer_ctx, r->program->buffers[r->order[at]].value,
                        r->memory[r->order[at]]);
    return at;
}

static bool goes_on(void *const *args) {
    return *(const uint8_t *)args[0] && *(const int64_t *)args[1] < *(const int64_t *)args[2];
}

int runner_parts(void) {
    enum { EACH = 2 };
    int workers = parallel_workers(SIZE_MAX, 1);
    return workers > 1 ? EACH * workers : 0;
}

typedef struct CallParts {
    const Call *call;
    void *const *args;
} CallParts;

static void run_part(const Call *c, size_t i, void *const *all) {
    const CallPart *part = &c->parts[i];
    void *args[CALL_MAX_ARGS];
    for (int k = 0; k < c->n_args; k++)
        args[k] = all[k] ? (char *)all[k] + part->at[k] : NULL;
    kernel_invoke(c->kernel, part->params, args);
}

static void run_parts(void *ctx, size_t from, size_t to, int worker) {
    const CallParts *c = ctx;
    (void)worker;
    for (size_t i = from; i < to; i++)
        run_part(c->call, i, c->args);
}

/* All calls of the bands, with the arguments of them all. */
static void run_bands(const Call *first, void *const *args) {
    for (size_t b = 0; b < first->n_parts; b++)
        for (size_t i = 0; i < first->bands->n; i++)
            if (first[i].parts[b].params)
                run_part(&first[i], b, args + i * CALL_MAX_ARGS);
}

/* `args` are those of the call, `params` what lengths make of its params. The first of calls in
 * bands runs them all. */
static void invoke(const Program *p, const Call *c, const void *params, void *const *args) {
    if (c->bands && c != &p->calls[c->bands->first])
        return;
    if (c->bands)
        run_bands(c, args);
    else if (c->n_parts)
        parallel_for(c->n_parts, 1, run_parts, &(CallParts){c, args});
    else
        kernel_invoke(c->kernel, params, args);
}

/* The first value that is complete at the call or later. */
static size_t back_to(const Runner *r, size_t at, int call) {
    while (at > 0 && runner_completes(r, r->order[at - 1]) >= call)
        at--;
    return at;
}

/* Iterations of the outermost loop and of all inside it. */
typedef struct Rounds {
    int loop; /* its call */
    int64_t n;
} Rounds;

static bool another_round(const Runner *r, Rounds *rounds, int call) {
    if (rounds->loop < 0 || call >= r->jump[rounds->loop])
        *rounds = (Rounds){call, 0};
    return rounds->n++ < LOOP_MOST;
}

static bool never_ends(const Runner *r, int call, Diags *d) {
    const Node *n = r->program->calls[call].node;
    return diag_error(d, n->loc, LOOP_ENDLESS, node_text(n), LOOP_MOST);
}

static bool run_calls(Runner *r, Progress *progress, size_t level, Diags *d) {
    const Program *p = r->program;
    int n = (int)p->n_calls;
    memset(r->ran, 0, p->n_calls * sizeof *r->ran);
    size_t at = observe(r, 0, -1);
    Rounds rounds = {-1, 0};
    for (int i = 0; i < n;) {
        const Call *c = &p->calls[i];
        void **args = r->args + (size_t)i * CALL_MAX_ARGS;
        bool jump = c->kind == CALL_ELSE || c->kind == CALL_NEXT ||
                    (c->kind == CALL_IF && !*(const uint8_t *)args[0]) ||
                    (c->kind == CALL_LOOP && !goes_on(args));
        Outside outside;
        if (c->within && !call_within(p, c, args, &outside))
            return outside_error(c, &outside, d);
        if (c->kind == CALL_CHECK && !length_check(c->bound, *(const int64_t *)args[0], d))
            return false;
        r->ran[i] = true;
        progress_step(progress, level, (size_t)i);
        const void *params = c->params;
        if (c->kind == CALL_KERNEL && (!c->patches || (params = call_params(c, args, r->params))))
            invoke(p, c, params, args);
        if (c->kind == CALL_LOOP && !jump && !another_round(r, &rounds, i))
            return never_ends(r, i, d);
        at = c->kind == CALL_NEXT           ? back_to(r, at, r->jump[i])
             : c->kind == CALL_LOOP && jump ? at
                                            : observe(r, at, i);
        i = jump ? r->jump[i] : i + 1;
    }
    return true;
}

bool runner_run(Runner *r, Diags *d) {
    Progress *progress = diags_progress(d);
    size_t level = progress_begin(progress, "step", r->program->n_calls);
    bool ok = run_calls(r, progress, level, d);
    progress_end(progress, level);
    return ok;
}

static int buffer_of(const Runner *r, const Value *v) {
    return v->id < r->program->module->n_values ? r->program->value_buffer[v->id] : -1;
}

const void *runner_value(const Runner *r, const Value *v) {
    int i = buffer_of(r, v);
    return i < 0 ? NULL : r->memory[i];
}

bool runner_computed(const Runner *r, const Value *v) {
    int i = buffer_of(r, v);
    if (i < 0)
        return false;
    int call = runner_completes(r, (uint32_t)i);
    return call < 0 || r->ran[call];
}

/* Of a counted axis, also where the model states a length. */
int runner_shape(const Runner *r, const Value *v, int64_t *dims) {
    const Counted *c = program_counted(r->program, v);
    int rank = type_lengths(v->type, dims);
    if (c)
        memcpy(&dims[c->axis], r->memory[c->count], sizeof *dims);
    return rank;
}
