/* Loop and Scan, what their laws and their binding share. Nothing here fails. */
#ifndef QXC_IR_OPS_LOOP_H
#define QXC_IR_OPS_LOOP_H

#include "ir/ops/bind.h"

typedef struct LoopAttrs {
    Graph *body;
} LoopAttrs;

typedef struct ScanAttrs {
    Graph *body;
    int64_t num_scan_inputs;
    Ints scan_input_axes, scan_output_axes, scan_input_directions, scan_output_directions;
} ScanAttrs;

size_t loop_carried(const OpCtx *c); /* how many values */
/* How often the body of a Loop runs, where that is known and the condition has no say; else -1. */
int64_t loop_trips(const OpCtx *c);
/* At most, as its operand says; -1 where it does not. OpDef.longest */
int64_t loop_longest(const OpCtx *c);
/* How often that of a Scan does, by the first of its inputs that tells: its laws say that all have
 * one length.
 */
int64_t scan_length(const OpCtx *c);
/* Elements along an axis, which may count from the end; -1 where that is not known. */
int64_t scan_extent(Type t, int64_t axis);
int64_t scan_int(Ints list, size_t i); /* the i-th, 0 where the list is shorter */

bool loop_bind(Binder *b, const Node *n, const OpCtx *c);
bool scan_bind(Binder *b, const Node *n, const OpCtx *c);

/* Of opset 8 (scan_batch.c): its laws, and the way on. */
bool scan_batch_verify(const OpCtx *c);
bool scan_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d);

#endif
