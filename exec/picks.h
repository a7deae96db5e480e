/* What a model chose and picked by in one sample (exec/choice.h), held against what another did.
 *
 * Two models name such values alike. Each makes sums of the numbers that they had in the sample, in
 * all iterations where they stand in a body: equal sums are taken for equal numbers. */
#ifndef QXC_EXEC_PICKS_H
#define QXC_EXEC_PICKS_H

#include "exec/choice.h"

/* Of one name, in the sample. */
typedef struct PickSum {
    uint64_t sum;
    size_t times; /* it was computed */
    bool known;   /* the model has a value of this name */
} PickSum;

typedef struct Picks {
    int *at;       /* by Value.id: which name, -1 where the value is none of these */
    PickSum *sums; /* of the current sample, by name */
    bool *counted; /* by name: how many elements there are is chosen */
    Map *names;    /* size_t *, by name */
    size_t n;
    uint32_t n_values;
} Picks;

/* All that nodes of `m` choose or pick by. */
Picks *picks_new(Module *m);
/* The values of `m` with the names of those in `other`, which get the same places. */
Picks *picks_like(Module *m, const Picks *other);
/* Before each sample, and in the observer of its run. */
void picks_start(Picks *p);
void picks_see(Picks *p, const Value *v, Type now, const void *data);
/* Whether all that was chosen so far are the same elements; of floats there have to be as many. */
bool picks_chose_alike(const Picks *p, const PickSum *other);

/* The nodes of the main graph of `m` whose results are of other elements in this sample. */
typedef struct Others {
    Module *m;
    const Uses *uses;
    const PickedBy *const *by;
    bool *nodes; /* by Node.id */
} Others;

Others others_new(Module *m, const PickedBy *const *by, const Uses *uses);
void others_start(Others *o);
/* When `n` has run: if it picked by other numbers than the other model did, its results and what
 * follows are of other elements. `p` is of o's module. */
void others_look(Others *o, const Node *n, const Picks *p, const PickSum *other);
bool is_other(const Others *o, const Value *v);

#endif
