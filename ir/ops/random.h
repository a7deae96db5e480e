/* Operators that draw numbers: each node begins anew with its seed in each run, and without one
 * with 0, so that all runs, emitted C and other machines draw the same. The generator is
 * kernels/random/mersenne.qk; ONNX names none. */
#ifndef QXC_IR_OPS_RANDOM_H
#define QXC_IR_OPS_RANDOM_H

#include "ir/ops/bind.h"

/* What the generator keeps, during the next call. */
int bind_random_state(Binder *b);

#endif
