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
    bool ok;
    int guesses; /* that it is inside of */
} Infer;

/* Result `i` of the node, inferred in `c` (by `op`, which may be NULL), meets its value's type,
 * which becomes the better known of the two. False after a diagnostic where they contradict. */
bool infer_join(const Infer *s, const OpCtx *c, const OpDef *op, size_t i);

#endif
