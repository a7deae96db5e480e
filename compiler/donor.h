/* Another model's facts for this one, by name: trained weights, quantizations, statistics. Memory
 * of what is taken is that of the model it goes to. */
#ifndef QXC_COMPILER_DONOR_H
#define QXC_COMPILER_DONOR_H

#include "compiler/pipeline.h"

/* -weights-from: every float constant of `m` takes the numbers of `from`'s of the same name, and
 * every value (weights among them) its quantization, as `float ~ q`: with these nothing is left to
 * decide. `from` is changed into true-quant form. False after diagnostics, of all names that are
 * missing on either side and of all shapes that differ. */
bool donor_weights(const Job *j, Module *m, Module *from);
/* -scales-from, of a quantized model: a `value` rule for each quantization, appended to `out`; of
 * one with statistics alone: values of the same name take those. */
bool donor_scales(const Job *j, Module *m, Module *from, Scheme *out);

#endif
