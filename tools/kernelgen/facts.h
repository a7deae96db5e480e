/* What the text of an instance uses, for the table: nobody has to look into C text later. */
#ifndef KERNELGEN_FACTS_H
#define KERNELGEN_FACTS_H

#include "tools/kernelgen/instance.h"

typedef struct {
    bool is_float; /* computes in floating point, with -integer-only too */
    bool math;     /* needs <math.h> and libm */
    bool string;   /* calls memcpy or its kin */
} Facts;

/* Of `in` and the chunks that it uses. */
Facts find_facts(const Instances *all, const Instance *in);

/* What -integer-only leaves of a chunk: some have micro-kernels that use floating point, for
 * processors with vector units. Their text says `#if ... && !defined(QXC_INTEGER_ONLY)`, and only
 * what stands after #else is kept. Such groups hold no others. NULL if that is all of it. */
const char *integer_part(const char *text);

#endif
