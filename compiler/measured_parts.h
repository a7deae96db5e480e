/* What the files that measure a result share. */
#ifndef QXC_COMPILER_MEASURED_PARTS_H
#define QXC_COMPILER_MEASURED_PARTS_H

#include "compiler/measured.h"
#include "exec/kept.h"

/* A value of the quantized module and the one of its name in the float model. */
typedef struct Pair {
    const KeptValue *was;
    const Value *is;
    ErrorSums sums;
} Pair;

typedef struct Pairs {
    Pair **at; /* by Value.id; NULL: it has none */
    uint32_t n;
} Pairs;

/* measured_values.c: the worst of them, into `out`. */
void measured_worst(const Pairs *pairs, Module *m, Measured *out);
/* Each node states the SQNR of its results in its metadata. */
void measured_state(const Pairs *pairs, Module *m);
/* No node states any. */
void measured_state_none(Module *m);

#endif
