/* Large constants that are made when they are written: of a result that is larger than memory each
 * part then goes to the disk once. Until then they have no data, only a way to make it.
 *
 * Whoever reads elements of such a constant calls later_make before, or later_made for a look. Only
 * what makes a constant for a writer that knows of this leaves it for later. */
#ifndef QXC_IR_LATER_H
#define QXC_IR_LATER_H

#include "ir/ir.h"

/* Makes the elements at `out`, which holds zeros; always the same ones. */
typedef void LaterFn(const Module *m, const void *ctx, uint8_t *out);

typedef struct Later {
    LaterFn *make;
    const void *ctx; /* lives as long as the module */
} Later;

/* A tensor whose elements are made now; or later, where that `may_wait` and they would not stay in
 * memory (support/store.h). */
Tensor *later_tensor(Module *m, ElemType elem, int rank, const int64_t *dims, Later how,
                     bool may_wait);
/* From now on it has its elements, as others do. */
void later_make(Module *m, Tensor *t);
/* The same of all constants. */
void later_make_all(Module *m);
/* Its elements, where they were made or else in memory that the next constant takes again
 * (store_room). */
const uint8_t *later_made(const Module *m, const Tensor *t);
/* The same in memory of an arena, for what is itself made of it. */
const uint8_t *later_made_in(Arena *a, const Module *m, const Tensor *t);

#endif
