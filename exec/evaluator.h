/* What the files of exec/evaluate.h share. Private to them. */
#ifndef QXC_EXEC_EVALUATOR_H
#define QXC_EXEC_EVALUATOR_H

#include "exec/evaluate.h"
#include "ir/ops/op.h"

typedef struct Segment Segment;

/* What a value is in the segment of that number, which counts from 1. */
typedef struct Copied {
    size_t segment;
    Value *copy;
} Copied;

struct Evaluator {
    Module *module;
    const Uses *uses;
    ProgramOptions options;
    Tensor **inputs; /* graph inputs without default */
    void **ports;    /* their elements */
    size_t n_inputs;
    Tensor **known; /* by value id: as it is now; NULL: not computed */
    Segment **kept; /* by node id: the last one that began there */
    Copied *copied; /* by value id, of the segment that is made at the time */
    size_t n_segments;
    int loops;      /* that are running, one inside the other */
    int64_t rounds; /* of the outermost, and of all inside it */
    Arena *results; /* where what is computed lives */
    EvaluatorObserver *observer;
    void *observer_ctx;
};

/* The value's type, in the shape that it has now. */
Type value_type_now(Arena *a, const Value *v, const Tensor *now);
/* Tells the observer, if there is one, what the value is now. */
void evaluator_show(Evaluator *e, const Value *v);
/* The same of what a node made. False after a diagnostic: the model states another shape. */
bool evaluator_made(Evaluator *e, const Value *v, Diags *d);

/* All nodes of a graph whose inputs are known; then its outputs are. False after a diagnostic. */
bool evaluate_graph(Evaluator *e, const Graph *g, Diags *d);
/* A node with bodies: If, Loop, Scan. */
bool evaluate_bodies(Evaluator *e, const Node *n, Diags *d);

/* Adds the node to those that run as the next program, which it may begin. False, with the node not
 * in it, where its shapes do not follow from what is known. With `as_constants` the operands are
 * constants of the program, and the node is in it whatever it is: the program says what it lacks.
 */
bool segment_take(Evaluator *e, Segment **s, const Node *n, bool as_constants);
/* Runs it, if there is one; what others read is known then. It is kept for the next time. */
bool segment_run(Evaluator *e, Segment **s, Diags *d);
void segment_drop(Segment **s);
/* The last node of those that were run together from `n` on, where shapes, and what had to be known
 * to build their program, are what they were; then segment_rerun runs them. Else NULL. */
const Node *segment_again(Evaluator *e, const Node *n);
bool segment_rerun(Evaluator *e, const Node *n, Diags *d);

#endif
