/* Constant folding: nodes whose inputs are all constants are run and replaced by their results.
 *
 * An If whose condition is constant yields what its branch does. Left alone: operators that cannot
 * run, that are not deterministic, that hold other subgraphs, whose output type carries
 * quantization, and results above `max_bytes` each or in total (Expand and Tile bombs), of which
 * the caller is told. Never fails. */
#ifndef QXC_EXEC_FOLD_H
#define QXC_EXEC_FOLD_H

#include "exec/exec.h"

typedef struct FoldOptions {
    size_t max_bytes; /* of one result and of all that grow; 0: a part of what memory is left */
    void (*too_large)(const Node *n, void *ctx); /* stays for its size alone; NULL: nobody asks */
    bool (*wanted)(const Node *n, void *ctx);    /* which nodes to fold; NULL: all */
    void *ctx;
    bool conversions; /* of `wanted` also Q and DQ, which else are meant to be seen */
    bool drops;     /* large constants that are made here and that only nodes read which are folded,
                       too, go with these: the numbers of a weight are in memory once */
    const char *by; /* the pass that constants are from; NULL: fold-const */
} FoldOptions;

/* Needs a resolved and inferred module; keeps it so. Returns how many nodes were folded. Constants
 * keep the names of the values they replace. Dead inputs stay (another pass removes them). */
size_t module_fold(Module *m, const FoldOptions *o);

/* The same of one node for the pass `by`; its operands may be quantized where it only moves their
 * elements. False, and nothing has changed, where one is no constant or the node cannot run. */
bool module_fold_node(Module *m, Node *n, const char *by);

#endif
