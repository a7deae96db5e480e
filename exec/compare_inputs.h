/* One sample for two models: the second gets what the first has in its inputs. */
#ifndef QXC_EXEC_COMPARE_INPUTS_H
#define QXC_EXEC_COMPARE_INPUTS_H

#include "exec/model_run.h"

/* An input of the second model and the one of the first whose data it gets. */
typedef struct CompareTwin {
    const Value *from, *to;
    size_t from_port, to_port;
    size_t count;
    float *reals; /* of `from` where that is quantized */
} CompareTwin;

/* Whether both have as many elements, and how many is known. */
bool compare_same_count(const Value *x, const Value *y);

/* Inputs pair up as values do: by name, and by position those that have no namesake. False with
 * diagnostics where they do not fit. Memory is that of a's arena. */
bool compare_match_inputs(const Module *a, const Module *b, CompareTwin **twins, size_t *n,
                          Diags *d);

/* The sample that the first model has in its inputs, as the second takes it: the same integers
 * where both are quantized alike, else the real numbers they stand for. */
bool compare_pass_on(const CompareTwin *t, const ModelRun *from, const ModelRun *to, Diags *d);

#endif
