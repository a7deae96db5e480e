/* Private helpers of kernels ($NAME_something) that are the same in several instances of a
 * template, but for the instance's name, are compiled once. The text that goes into emitted C has
 * them all. */
#ifndef KERNELGEN_FOLD_H
#define KERNELGEN_FOLD_H

#include "tools/kernelgen/instance.h"

typedef struct {
    char *key; /* its text; what it defines is called @something, the rest by the final names */
    const char *owner; /* the instance that has it */
} Helper;

typedef struct { /* of one part */
    Helper *list;
    int n;
} Helpers;

/* The text of `in` as it is compiled: without the helpers that an instance before it has, which it
 * calls instead. */
char *fold(Helpers *seen, const Instance *in);

#endif
