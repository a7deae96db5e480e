/* What `qxc reduce` tries: edits that make a model smaller. They may change what it computes; that
 * the result still makes sense is for the verifier to say, that it still shows the failure for the
 * user's command.
 *
 * A shrink walks the module in a fixed order and asks for every place it could change whether to.
 * All memory is the module's. An edit that fails has reported it to the module's diagnostics.
 * Afterwards the module has to be resolved, inferred and verified again. */
#ifndef QXC_PASSES_SHRINK_SHRINK_H
#define QXC_PASSES_SHRINK_SHRINK_H

#include "ir/ops/op.h"

/* Places numbered from 0 in the order asked: those of [begin, end) are taken. */
typedef struct Places {
    size_t begin, end;
    size_t seen; /* how many places there were */
} Places;

bool place_take(Places *p);

typedef struct Shrink {
    const char *name, *summary;
    void (*run)(Module *m, Places *places);
} Shrink;

size_t shrink_count(void);
const Shrink *shrink_at(size_t i); /* in the order that they are best tried */

#define SHRINK(id, summary) void shrink_##id(Module *m, Places *places);
#include "passes/shrink/shrink.def"
#undef SHRINK

/* ---- for the shrinks themselves (shrink.c) ---- */

/* How often each value is used, by id: as an operand and as a graph's output. */
uint32_t *shrink_uses(Module *m);
/* Calls fn for each graph whose values the main graph's inputs may replace: not function bodies. */
void shrink_each_graph(Module *m, void (*fn)(Graph *g, void *ctx), void *ctx);
/* Removes what was used before an edit and is not any more: constants, inputs of the main graph,
 * and nodes none of whose results is left in use. With `expose` results that lost their uses become
 * outputs of the main graph instead. */
void shrink_sweep(Module *m, const uint32_t *before, bool expose);
/* Every use of a value with an entry in `to` (by id) becomes a use of that entry, through chains
 * of entries. */
void shrink_redirect(Module *m, Value **to);
/* Turns a value into an input of the main graph; whoever uses it goes on doing so. */
void shrink_make_input(Module *m, Value *v, UniqueNames *names);

#endif
