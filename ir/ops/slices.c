/* Along which axes operators compute slice by slice (OpDef.slices). */
#include "ir/ops/op.h"

int op_slices_each(const OpCtx *c, size_t i, int axis, size_t result) {
    const Value *y = result < c->node->n_out ? c->node->out[result] : NULL;
    int to = y ? axis + y->type.rank - op_type(c, i).rank : -1;
    return to < 0 ? -1 : to;
}

int op_slices_same(const OpCtx *c, size_t i, int axis, size_t result) {
    return i == 0 ? op_slices_each(c, i, axis, result) : -1;
}

int op_slices_first(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)c;
    return i == 0 && axis == 0 && result == 0 ? 0 : -1;
}

int op_slices(const OpDef *op, const OpCtx *c, size_t i, int axis, size_t result) {
    if (op->slices)
        return op->slices(c, i, axis, result);
    if (op->infer == op_broadcast)
        return op_slices_each(c, i, axis, result);
    bool moves = op->quant.kind == QUANT_MOVE || op->quant.kind == QUANT_ORDER;
    return moves && op->quant.move.axis && i == 0 ? op->quant.move.axis(c, axis) : -1;
}
