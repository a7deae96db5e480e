/* How far a type reaches that a rule states of some values, not of all: through what is fused with
 * them, as parameters do (passes/quantize/sharing.h). Movers, MaxPool and Relu hand it on to their
 * result; backwards it goes to what nobody else reads. */
#ifndef QXC_PASSES_QUANTIZE_TRAVEL_H
#define QXC_PASSES_QUANTIZE_TRAVEL_H

#include "passes/quantize/choice.h"

/* From here on choice_of_value knows of it. */
void types_travel(Module *m, PassContext *c, const Uses *uses);
/* A remark for each rule whose type others have got. */
void types_tell(Module *m, const PassContext *c);
/* A warning for each rule whose type no value has got, as all that it speaks of stays float. */
void types_tell_idle(Module *m, const PassContext *c, const Uses *uses);

#endif
