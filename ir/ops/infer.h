/* What the files of type inference share: infer.c walks over the nodes, infer_join.c holds what it
 * inferred against what is stated. Private to them. */
#ifndef QXC_IR_OPS_INFER_H
#define QXC_IR_OPS_INFER_H

#include "ir/ops/op.h"

typedef struct Infer {
    Diags *d;
    Diags *mute; /* counts what the verifier will say */
    bool refine; /* make stated types more precise too */
    bool keep;   /* stated types that contradict are set aside, not faults */
    bool early;  /* faults in bodies that may be skipped are not told yet */
    bool ok;
    int guesses;    /* that it is inside of */
    Arena *scratch; /* what is inferred of a node, until the next one */
} Infer;

/* The result of an operator that has no row, as passes take it apart. Operators of old opsets
 * behind it are converted, and functions chosen, before that: they ask for its shape. Nothing where
 * the operands do not go together, which is told of what it becomes. */
void infer_taken_apart(const Infer *s, OpCtx *c);

/* The node's attributes as the struct of `op`, which has the same ones and fewer: resolve.c. The
 * module's; NULL where one of them has another kind. */
const void *attrs_as(const Node *n, const OpDef *op, Diags *d);

/* Result `i` of the node, inferred in `c` (by `op`, which may be NULL), meets its value's type,
 * which becomes the better known of the two. What `c` allocated is not held on to. False after a
 * diagnostic where they contradict. */
bool infer_join(const Infer *s, const OpCtx *c, const OpDef *op, size_t i);
/* The types stated of operands and results do not go together: none of them is taken. */
void infer_doubt(const Infer *s, Node *n);
/* An input of a body gets the type of what the node `n` hands in, where it states none. False after
 * a diagnostic where it states another. */
bool infer_give(const Infer *s, const Node *n, Value *v, Type given);
/* The same, and the shape where the input leaves it open. */
void infer_guess(Arena *a, Value *v, Type given);

#endif
