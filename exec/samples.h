/* Input data for running, calibrating and comparing: a stream of samples.
 *
 * A path is an .npz keyed by input name, an .npy (models with one input), or a folder of those,
 * taken in order of name. The first axis of an array with one dimension more than its input is that
 * of samples. An array of as many dimensions is a sample, but for two first dimensions that count
 * samples instead: a fixed 1 (which the array has not), and a batch. Elements are converted where
 * that is exact (int to float, float64 to float32 rounds); floats for a quantized input are
 * quantized. One array of each input is mapped at a time; memory does not grow with the number of
 * samples. Wrong names, shapes and types are diagnostics. */
#ifndef QXC_EXEC_SAMPLES_H
#define QXC_EXEC_SAMPLES_H

#include "exec/batch.h"
#include "exec/exec.h"

typedef struct Samples Samples;

/* What is held back to judge a result by is every third sample, the third one first: data is often
 * sorted by class or by time. */
typedef enum SamplePart { SAMPLES_ALL, SAMPLES_BUT_HELD_BACK, SAMPLES_HELD_BACK } SamplePart;

/* Where samples come from, and what says which open dimension counts them (-batch). */
typedef struct DataPaths {
    const char *const *paths;
    size_t n;
    const char *batch; /* NULL or "auto": the graph does; "none"; a dimension's or input's name */
    bool
        own_scales; /* samples that share nothing but a scale computed at run time count as apart */
    bool runs_in_part; /* what cannot run is left out */
    bool *told;        /* what is told once a run was told; NULL: nobody keeps count */
} DataPaths;

/* Samples for the graph inputs of `m` that have no default. NULL after diagnostics. Files are
 * checked when they are reached, the first at once. */
Samples *samples_open(Arena *a, const Module *m, const char *const *paths, size_t n, Diags *d);
/* Open dimensions of graph inputs become those of the arrays in the first file, but for a first one
 * that is a batch: it becomes 1, and `*batch` (NULL: nobody asks) says where the samples are, else
 * is NULL. It is a batch where the graph keeps its samples apart (batch.h), or where `batch` of the
 * data says so. What was taken for no batch is told. False after a diagnostic, also where one stays
 * open. For a while: programs need static shapes. */
bool samples_bind(Module *m, const DataPaths *data, const Batch **batch, Diags *d);
/* The same in two steps, of which the first binds all but open first dimensions, so that several
 * models can take the same samples (`together`). */
typedef struct BatchPlan BatchPlan;
/* Whether an open first dimension, or its input, is called that. */
bool samples_can_name(const Module *m, const char *batch);
BatchPlan *samples_plan(Module *m, const DataPaths *data, Diags *d); /* NULL after a diagnostic */
bool plan_has_batch(const BatchPlan *p);
bool samples_bind_plan(Module *m, BatchPlan *p, bool together, const Batch **batch, Diags *d);
/* Inputs that some node needs to know when a program is built (axes, sizes) become constants with
 * the value that they have in all samples. Those with several stay inputs: who needs to know one
 * will complain. Types follow (module_refine_early). False after a diagnostic. */
bool samples_settle(Module *m, const char *const *paths, size_t n, Diags *d);
/* `count` samples made from a fixed seed: floats from a normal distribution, or uniform in the
 * range of the input's stat or quantization; integers uniform in their range. */
Samples *samples_random(Arena *a, const Module *m, size_t count);
void samples_close(Samples *s);

/* Writes the next sample to memory shaped like the graph inputs (`dst[i]` as runner_input gives
 * it). False at the end, or after a diagnostic: samples_ok tells which. */
bool samples_next(Samples *s, void *const *dst);
bool samples_ok(const Samples *s);
/* How the samples so far were given. */
typedef struct SamplesSeen {
    size_t n;     /* samples */
    size_t files; /* that they came from */
    bool extra;   /* along an axis of their own, and nowhere along a first dimension of 1 */
} SamplesSeen;
SamplesSeen samples_seen(const Samples *s);
/* Whether this input came sample by sample, and not with one value for all of them. */
bool samples_several(const Samples *s, const Value *input);
/* Back to the first sample. */
bool samples_rewind(Samples *s);
/* Of data in files: this part alone, from its first sample on. At first it is all of them. */
bool samples_take(Samples *s, SamplePart part);
/* How many there are in all; then back to the first. False after a diagnostic: a file is wrong. */
bool samples_count(Samples *s, size_t *n);
/* Passes over one sample of data in files, unread. False at the end, or after a diagnostic. */
bool samples_skip(Samples *s);

/* Convenience: the next sample straight into a runner. */
bool samples_load(Samples *s, Runner *r);

#endif
