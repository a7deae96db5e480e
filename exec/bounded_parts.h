/* What the files of exec/bounded.h share. Private to them. */
#ifndef QXC_EXEC_BOUNDED_PARTS_H
#define QXC_EXEC_BOUNDED_PARTS_H

#include "exec/bounded.h"
#include "exec/build.h"

/* How numbers of the program with the largest lengths, `program`, change with each length. Lists
 * of slopes are by number, then by bound; NULL: it is the same for all lengths. */
typedef struct Fit {
    Arena *arena;
    Program *program;
    const LengthBound *bounds;
    size_t n;
    int64_t **params; /* by call: of the numbers of its params, in order */
    int64_t **tables; /* by buffer: of the elements of a constant */
    int64_t *counts;  /* by buffer: of how many elements it has */
    int64_t **dims;   /* by value: of its dimensions */
    Type *types;      /* by value, with the largest lengths */
    size_t n_values, n_buffers;
    const Node *odd; /* which does not fit, and why */
    const char *why;
} Fit;

/* The module has the shapes of `p`; of others below it has theirs. */
Fit *fit_new(Arena *a, Program *p);
/* Learns from a program whose length `i` is less by 1. False where more than numbers changed: see
 * `odd`. */
bool fit_learn(Fit *f, const Program *p, const LengthBound *lengths, size_t i);
/* Whether the program of these lengths is the one that was learnt. */
bool fit_holds(Fit *f, const Program *p, const LengthBound *lengths, size_t i);
/* Whether it serves lengths of which `i` is 1 or 0, as far as what is learnt tells. */
bool fit_takes_few(Fit *f, const Program *p, const LengthBound *lengths, size_t i);
/* Puts an earlier node in the place of `odd`, if there is one whose result has two dimensions that
 * follow from lengths: a product of lengths changes along no straight line. */
void fit_blame_product(Fit *f);
/* A buffer that the call writes, -1 unless all that it writes have no elements for the same
 * lengths, for which it need not be called. */
int fit_filled(const Fit *f, const Call *c);
/* How many numbers params have; the field of one of these, and where in it. */
size_t params_count(const KernelDef *k);
const KernelField *params_field(const KernelDef *k, size_t at, size_t *index);
/* One of them, of the elements of a constant; false where it is no whole number that can change
 * with lengths. */
bool params_number(const KernelField *f, const void *params, size_t i, int64_t *out);
bool table_number(const Buffer *b, size_t i, int64_t *out);

/* Calls get their patches, constants that follow from lengths calls that make them, and outputs
 * their counts. False after a diagnostic. */
bool fit_apply(Fit *f, Binder *b, Diags *d);
/* The slopes of one number, as a function of the lengths. */
LengthFn fit_affine(const Fit *f, int64_t largest, const int64_t *slopes);

/* Values of which a run tells the length get the one that results state which are made of them.
 * Each run is held against it (OpDef.bind_length). */
void lengths_from_results(Module *m);

#endif
