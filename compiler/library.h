/* The library of composite operators: the texts of lib/ that are part of the program, read at first
 * need, and those of -define, read at once. */
#ifndef QXC_COMPILER_LIBRARY_H
#define QXC_COMPILER_LIBRARY_H

#include "passes/library.h"

/* Memory is the arena's. NULL after diagnostics, each with its place. */
Library *library_open(Arena *a, const char *const *defines, size_t n, Diags *d);
/* Whether chains are recognised as this operator; an error where not. */
bool library_knows(Library *l, const char *op);

#endif
