/* Two models in step: the float model, and the same as far as it is decided. Runs the nodes of a
 * graph part by part on all samples, and keeps what the parts behind will read. Within shapes_fix
 * and shapes_restore; memory is scratch of the module's arena. */
#ifndef QXC_PASSES_QUANTIZE_IN_STEP_H
#define QXC_PASSES_QUANTIZE_IN_STEP_H

#include "passes/pass.h"

typedef enum Side { SIDE_FLOAT, SIDE_NOW, SIDES } Side;

typedef struct InStep InStep;

/* Why the graph cannot be run so; NULL: it can. */
const char *in_step_why_not(Module *m, const PassContext *c);
/* For the nodes up to `last`. At most `most` samples, and so many as memory allows; `hold_back`
 * leaves those out that output_errors looks at. NULL after diagnostics of the data. */
InStep *in_step_new(Module *m, PassContext *c, const Node *last, size_t most, bool hold_back);
size_t in_step_samples(const InStep *s);
/* Runs all in front of the node that has not been run. What nodes have for operands now is what
 * SIDE_NOW computes with; SIDE_FLOAT takes those that they had in the beginning. False where it
 * cannot, with no diagnostic. */
bool in_step_to(InStep *s, const Node *n);
/* What the node's operand 0 is in a sample. */
const float *in_step_operand(const InStep *s, const Node *n, Side side, size_t sample);
void in_step_free(InStep *s);

#endif
