/* What a float model gives for a few samples, kept while it is calibrated, so that another form of
 * it can be held against it without a second run.
 *
 * The samples are all of the data up to 32, of more 32 spread evenly over it: the same ones each
 * time. So what is done with them costs little beside the runs that quantization takes. Of
 * a graph output up to 65536 elements a sample are kept, and sums of what nodes choose or pick by
 * (exec/picks.h). Of floats that nodes of the main graph compute 256 elements of
 * each of 4 samples are kept, or 1024 of each of the samples where they are looked at closely. Of
 * more elements those are kept that stand at places spread evenly (multiples of the golden ratio,
 * modulo 1). NaN and infinities are kept as they are. Memory is the arena's. */
#ifndef QXC_EXEC_KEPT_H
#define QXC_EXEC_KEPT_H

#include "exec/model_run.h"
#include "exec/picks.h"

enum { KEPT_SAMPLES = 32, KEPT_MOST = 1 << 16 }; /* samples; elements of a value in a sample */

/* What one sample has of a value. */
typedef struct KeptSample {
    size_t count; /* elements, which may be others in each sample */
    size_t take;  /* kept of them */
    float *x;     /* NULL: it was not computed */
} KeptSample;

typedef struct KeptValue {
    Str name;
    ElemType elem;
    KeptSample *samples; /* by place */
} KeptValue;

typedef struct KeptRun {
    Arena *arena;
    size_t total, n;    /* samples of the data, and kept */
    bool closely;       /* as above; set before any run */
    KeptValue **values; /* by Value.id of the module that was run; NULL: not kept */
    uint32_t n_values;
    Picks *picks;
    PickSum **picked;    /* what `picks` was, by place */
    KeptValue **outputs; /* by place in graph->out; NULL: not computed */
    size_t n_outputs;
    size_t *at; /* scratch: places of elements */
    double *reals;
} KeptRun;

/* Nothing yet, of a module that will be run on `total` samples. */
KeptRun *kept_new(Module *m, size_t total);
/* The place among the kept ones of sample number `i`; -1 where it is none of them. */
int kept_place(const KeptRun *k, size_t i);
/* In the observer of a run, and behind it. `place` as kept_place says, `now` is the type that v has
 * in this sample. */
void kept_value(KeptRun *k, int place, const Value *v, Type now, const void *data);
void kept_outputs(KeptRun *k, int place, const ModelRun *r);
/* Whether this sample has what was kept, and as many elements as a value of type `now`. */
bool kept_fits(const KeptValue *kept, int place, Type now);
/* What was kept, and the elements of a value of type `now` that belong to it, as real numbers:
 * [take] each. */
void kept_load(const KeptValue *kept, int place, double *out);
void kept_pick(const KeptRun *k, const KeptValue *kept, int place, Type now, const void *data,
               double *out);
/* The i-th of any number of places in 0 to n - 1, spread evenly whatever the number is: multiples
 * of the golden ratio, modulo 1. n is below 2^32. */
size_t spread_place(uint64_t i, size_t n);
/* Which element of a sample is number `i` of those kept. */
size_t kept_element(const KeptValue *kept, int place, size_t i);

#endif
