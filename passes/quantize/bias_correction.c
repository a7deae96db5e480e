/* Takes off each bias what rounding weights and operand adds to the sum on average:
 *
 *   b[c] += sum_k W[c,k] E[x[k]] - Wq[c,k] E[xq[k]]
 *
 * with the means of what each weight meets on calibration data, zeros of padding included, in the
 * float model and in the model that is quantized and corrected up to here (Nagel, van Baalen,
 * Blankevoort, Welling 2019, section 4.2, with measured in place of assumed means;
 * passes/quantize/in_turn.h). What layers before leave is corrected with it.
 *
 * A layer that is right on average does not make right what follows: errors of several layers may
 * cancel, and a clamp behind makes a mean of what it cuts. So the outputs say whether biases stay
 * as corrected, unless somebody asked for it. */
#include "exec/fixed_shapes.h"
#include "passes/edit.h"
#include "passes/quantize/in_turn.h"
#include "passes/quantize/open.h"
#include "passes/quantize/output_errors.h"
#include "passes/quantize/weight_error.h"

#include <math.h>

/* dB: less is chance on few samples, and correction helps most models. */
static const double COST = 1;

/* Where the first few say that nothing is lost, that is as far from COST as more would say. */
enum { SAMPLES_FIRST = 4 };

static void correct(void *ctx, Node *n, const MacData *data) {
    Mend *by = ctx;
    WeightMatrix w;
    if (!was_decided(by->c, n->in[n->def->quant.mac.weight]))
        return;
    double *bias = weight_matrix(n, data, by->c->d, &w) ? mend_bias(by, n, &w) : NULL;
    if (bias)
        mend_set_bias(by, n, &w, data, mend_rounded(by, &w), bias);
}

/* By how much `now` is worse than `was`, in dB, mean of the outputs. One sample may drown the
 * others in the sum of errors, and those that are nearly exact weigh much in the mean of dB: what
 * counts is what both say. */
static double cost(const Graph *g, const OutputErrors *was, const OutputErrors *now) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < g->n_out; i++) {
        uint32_t id = g->out[i]->id;
        if (!was->measured[id] || !now->measured[id])
            continue;
        n++;
        sum += fmin(now->dB[id] - was->dB[id], now->dB_each[id] - was->dB_each[id]);
    }
    return n ? sum / (double)n : 0;
}

static OutputErrors room(const Module *m, const Program *p) {
    return (OutputErrors){.p = p,
                          .error = NEW_ARRAY(m->arena, double, m->n_values),
                          .measured = NEW_ARRAY(m->arena, bool, m->n_values),
                          .dB = NEW_ARRAY(m->arena, double, m->n_values),
                          .dB_each = NEW_ARRAY(m->arena, double, m->n_values)};
}

typedef struct Judge {
    Module *m;
    Mend *by;
    bool swapped; /* the biases are those before */
    double worse; /* dB: what corrected ones cost */
} Judge;

static void swap(Judge *j) {
    mend_swap_biases(j->by);
    j->swapped = !j->swapped;
}

/* On so many samples. */
static bool weigh(Judge *j, Arena *a, size_t samples, const Program *reals, const Program *was,
                  const Program *now) {
    OutputErrors of[] = {room(j->m, was), room(j->m, now)};
    bool ok = output_errors(j->m, j->by->c, a, samples, reals, of, 2);
    j->worse = ok ? cost(j->m->graph, &of[0], &of[1]) : 0;
    return ok;
}

static bool compare(void *ctx) {
    Judge *j = ctx;
    Module *m = j->m;
    PassContext *c = j->by->c;
    Arena *a = arena_scratch(m->arena);
    const Program *now = output_program(m, c, a, true), *was, *reals;
    swap(j);
    was = now ? output_program(m, c, a, true) : NULL;
    reals = was ? output_program(m, c, a, false) : NULL;
    bool ok = reals && weigh(j, a, SAMPLES_FIRST, reals, was, now) &&
              (j->worse <= 0 || weigh(j, a, OUTPUT_SAMPLES, reals, was, now));
    arena_free(a);
    return ok;
}

/* What the biases as they are now cost, against those before: nothing where that cannot be told. */
static bool judge(Module *m, PassContext *c, Mend *by, double *worse) {
    static const char what[] = "what corrected biases do to the outputs is not looked at";
    *worse = 0;
    if (!c->judge_biases || !by->n_biases || !output_programs_fit(m, c, 3, what))
        return true;
    DataPaths data = pass_data(c);
    FixedShapes *shapes = shapes_fix(m, &data, c->d);
    if (!shapes)
        return false;
    Judge j = {.m = m, .by = by};
    *worse = output_look(m, c, what, compare, &j) ? j.worse : 0;
    if (j.swapped)
        swap(&j);
    shapes_undo(m, shapes);
    return true;
}

bool pass_bias_correction(Module *m, PassContext *c) {
    Mend by = mend_new(m, c, "bias-correction");
    double worse = 0;
    bool ok =
        mac_in_turn(m, c, by.pass, c->judge_biases, NULL, correct, &by) && judge(m, c, &by, &worse);
    c->biases_cost = worse > COST ? worse : 0;
    if (c->biases_cost > 0)
        mend_swap_biases(&by);
    else
        mend_keep_biases(&by);
    edit_sweep(m);
    return ok;
}
