/* See passes/quantize/output_errors.h. */
#include "passes/quantize/output_errors.h"

#include <math.h>

typedef struct Errors {
    Module *m;
    PassContext *c;
    double *error;
    bool *measured;
} Errors;

static Program *program_of(const Errors *e, bool quantized) {
    ProgramOptions options = {.ignore_quant = !quantized, .partial = true};
    return program_build(e->m, &options, e->c->d);
}

static void add_errors(const Errors *e, Runner *const run[2], const Program *const p[2]) {
    const Graph *g = e->m->graph;
    for (size_t i = 0; i < g->n_out; i++) {
        size_t n;
        const float *x = runner_output(run[0], i), *y = runner_output(run[1], i);
        const Value *v = g->out[i];
        if (!x || !y || program_left_out(p[0], v) || program_left_out(p[1], v) ||
            !type_count(v->type, &n) || n == 0 ||
            elem_unpacked(type_real_elem(v->type)) != ELEM_FLOAT)
            continue;
        double sum = 0;
        for (size_t k = 0; k < n; k++)
            if (isfinite(x[k]))
                sum += isfinite(y[k])
                           ? ((double)x[k] - (double)y[k]) * ((double)x[k] - (double)y[k])
                           : INFINITY;
        e->error[v->id] += sum / (double)n;
        e->measured[v->id] = true;
    }
}

bool output_errors(Module *m, PassContext *c, size_t most, double *error, bool *measured) {
    const Errors *e = &(Errors){m, c, error, measured};
    const Graph *g = m->graph;
    for (size_t i = 0; i < g->n_out; i++) {
        error[g->out[i]->id] = 0;
        measured[g->out[i]->id] = false;
    }
    const Program *p[2] = {program_of(e, false), NULL};
    p[1] = p[0] ? program_of(e, true) : NULL;
    if (!p[1])
        return false;
    Runner *run[2] = {runner_new(m->arena, p[0]), runner_new(m->arena, p[1])};
    Samples *s[2] = {pass_samples(e->m, e->c), pass_samples(e->m, e->c)};
    size_t n = 0;
    bool ok = s[0] && s[1];
    for (; ok && n < most && samples_load(s[0], run[0]) && samples_load(s[1], run[1]); n++) {
        ok = runner_run(run[0], m->diags) && runner_run(run[1], m->diags);
        if (ok)
            add_errors(e, run, p);
    }
    ok = ok && samples_ok(s[0]) && samples_ok(s[1]);
    for (int i = 0; i < 2; i++)
        if (s[i])
            samples_close(s[i]);
    for (size_t i = 0; i < g->n_out; i++)
        error[g->out[i]->id] /= n ? (double)n : 1;
    return ok;
}
