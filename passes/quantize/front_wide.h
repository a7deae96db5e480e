/* What front_end.c does where no floats are allowed: 16 bits in place of 8. */
#ifndef QXC_PASSES_QUANTIZE_FRONT_WIDE_H
#define QXC_PASSES_QUANTIZE_FRONT_WIDE_H

#include "passes/pass.h"

typedef struct Wide {
    Module *m;
    PassContext *c;
    const Uses *uses;
    const Quant **decided; /* by value id: what each has in 8 bits, or NULL */
    const Quant **instead; /* by value id: what it gets, or NULL */
    bool *set;             /* by value id: gets 16 bits */
    bool *never;           /* by value id: cannot or must not */
    Map *of;               /* what stands for each quantization: who shares one shares the other */
} Wide;

/* Signed where the target stores that, as C does; else unsigned, or ELEM_UNDEFINED. */
ElemType wide_storage(const TargetPage *t);
/* `decided` and `set` are the caller's, who may mark `never`. */
Wide wide_new(Module *m, PassContext *c, const Uses *uses, const Quant **decided, bool *set);
/* Adds to `set` what has to have 16 bits because of others there (operators whose operands and
 * result have one storage type), takes out what cannot have them, and fills in `instead`. */
void wide_settle(Wide *w);

#endif
