/* Fixing symbolic dimensions (-bind, -shape): programs need static shapes.
 *
 * Types are changed in place and inferred again. Fails with a diagnostic (unknown name with "did
 * you mean", a shape that does not fit). */
#ifndef QXC_EXEC_SPECIALISE_H
#define QXC_EXEC_SPECIALISE_H

#include "ir/ir.h"

typedef struct DimBind {
    Str name;
    int64_t value;
} DimBind;

/* Every dimension of these names becomes a number (0 or more), in all types of the module. */
bool module_bind_dims(Module *m, const DimBind *binds, size_t n, Diags *d);
/* The same for names that need not stand anywhere. */
bool module_bind_known(Module *m, const DimBind *binds, size_t n, Diags *d);
/* Open first dimensions of graph inputs, by input; below 0: left as it is. Other dimensions of the
 * same names become the same. */
bool module_bind_first(Module *m, const int64_t *sizes, Diags *d);
/* Another shape for a graph input, fixed dimensions too. */
bool module_set_shape(Module *m, Str input, int rank, const int64_t *dims, Diags *d);
/* Verifies a module whose dimensions were fixed. Conditions that they settle are folded first: the
 * branch that such a condition rules out need not fit. */
bool module_check_fixed(Module *m, Diags *d);
/* True when all graph inputs are static; else an error for each that names -bind. */
bool module_check_static(Module *m, Diags *d);
/* "-shape=x=SIZE0,3,8": an option that would fix the shape of a graph input; open dimensions are
 * SIZE and their number. */
const char *specialise_shape_option(Arena *a, const Value *v);
/* The options that would fix the shapes of all graph inputs, for a shell, SIZE in place of numbers:
 * "-bind=S=SIZE -shape=x=SIZE0,4". First dimensions stay open unless `first_too`. Empty where
 * nothing is open. */
Str specialise_options(Arena *a, const Graph *g, bool first_too);
/* What has to hold before anything runs: static shapes, which results follow from, and all laws. */
bool module_check_runnable(Module *m, Diags *d);
/* Whether all dimensions of graph inputs without a default are numbers, but for open first ones. */
bool module_others_known(const Module *m);

#endif
