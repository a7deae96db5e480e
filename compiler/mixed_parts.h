/* Automatic mixed precision inside: what is searched (mixed.c) and how one way to quantize is
 * measured (mixed_measure.c). */
#ifndef QXC_COMPILER_MIXED_PARTS_H
#define QXC_COMPILER_MIXED_PARTS_H

#include "compiler/judge.h"
#include "compiler/mixed.h"
#include "compiler/mixed_layers.h"
#include "compiler/top1.h"

typedef struct Score {
    Judged of; /* the outputs */
    Drop drop; /* of top-1 accuracy, or of the metric */
    double metric;
} Score;

typedef struct Lost {
    const char *what; /* NULL: none */
    double sqnr;
} Lost;

typedef struct Mixed {
    Session *s;
    Job *j;
    /* Names as the data have them, which those of -input-names are no more once a model has got
     * them: what is measured keeps its own. */
    Options inner;
    /* What is read from there to be run has the shapes of -bind and -shape and bounds already. */
    Options to_run;
    bool has_sqnr, has_drop;
    double least_sqnr, most_drop;
    Labels labels;
    Answers of_float; /* [0]: not yet */
    double float_metric;
    bool has_float_metric;
    Layer *layers;
    size_t n;
    Spared most; /* how they may be spared */
    /* Of the model that was measured last, the first value in its order below the gate. */
    Lost lost;
} Mixed;

/* What the model loses where the first `n` layers are spared, and `only` (or NULL). False after a
 * diagnostic, with the exit code. */
bool mixed_measure(Mixed *x, size_t n, const Layer *only, Score *out, ExitCode *code);
/* Reads the layers that can be spared up to x->most into x->layers. */
bool mixed_list(Mixed *x, ExitCode *code);
/* Adds the rules that spare a layer. */
void mixed_add_rules(const Mixed *x, Scheme *s, const Layer *l);

#endif
