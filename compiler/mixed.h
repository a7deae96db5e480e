/* Automatic mixed precision: -min-sqnr=DB and -max-drop=PERCENT -labels=KEY.
 *
 * Quantizes the model all in 8 bits; where that misses the gate, once more for each layer with that
 * layer left float (its sensitivity), and then keeps the fewest of the most sensitive layers float
 * for which the gate holds on the calibration data: found by bisection, and those given back that
 * it holds without. With -integer-only nothing may be float: layers get results of 16 bits, and
 * where that does not do, weights, too. A model
 * of N layers is quantized N + log2(N) + 2 times, and once for each layer that bisection spared.
 * The decisions are rules at the end of the scheme, so that -emit=scheme shows them and -scheme
 * takes them. */
#ifndef QXC_COMPILER_MIXED_H
#define QXC_COMPILER_MIXED_H

#include "compiler/session.h"

/* Whether the command line asks for it. */
bool mixed_wanted(const Options *o);

/* Adds rules to j->file. EXIT_MISSED after saying the best that was reached. */
ExitCode mixed_decide(Session *s, Job *j);

#endif
