/* The command line's shorthands as rules of a scheme. Arena: the session's. */
#ifndef QXC_COMPILER_SCHEME_FLAGS_H
#define QXC_COMPILER_SCHEME_FLAGS_H

#include "compiler/options.h"
#include "ir/scheme.h"

/* -weights, -activations, -per-channel, ..., in the order in which they overlay each other. False
 * after a diagnostic. */
bool scheme_of_flags(Scheme *s, const Options *o, Arena *a, Diags *d);

#endif
