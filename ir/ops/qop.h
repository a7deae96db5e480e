/* QOperator nodes (QLinearConv, com.microsoft::QGemm, ...) seen through their float operator's
 * QopForm: which operand is data, which is the scale or zero point of what.
 *
 * The layout alone serves the pass that writes such nodes, the view those that read them. Memory is
 * the module's arena. qop_view fails with a diagnostic on a wrong number of operands; that a node
 * is no QOperator is `false` without one. */
#ifndef QXC_IR_OPS_QOP_H
#define QXC_IR_OPS_QOP_H

#include "ir/ops/op.h"

typedef struct QopLayout {
    size_t n_data;          /* operands of the float operator */
    size_t n_operands;      /* of the QOperator */
    int *data, *scale, *zp; /* by data operand: index among the operands; -1: it has no such */
    int y_scale, y_zp;
} QopLayout;

/* Where everything stands for a float node with `n_data` inputs. False: the form cannot hold them.
 */
bool qop_layout(const QopForm *f, size_t n_data, QopLayout *l, Arena *a);

typedef struct QopView {
    const OpDef *op; /* the float operator */
    QopLayout at;
    size_t n_in;         /* data inputs up to the last given one */
    Value **in;          /* as the float operator has them; NULL: omitted */
    Value **scale, **zp; /* by data input; NULL: none, or omitted */
    Value *y_scale, *y_zp;
} QopView;

/* The float operator of a QOperator node; NULL for all others. */
const OpDef *qop_of(const Node *n);
bool qop_view(const Node *n, const OpDef **op, QopView *view, Diags *d);
/* The float operator's context over the view; attributes must be resolved. */
OpCtx qop_ctx(const Node *n, const QopView *view, Diags *d);
/* Element type of the result: the zero point's, the input's where there is none, float for a
 * QGemm without output scale. ELEM_UNDEFINED where unknown. */
ElemType qop_result_elem(const QopView *view);

/* What constant scale and zero point operands say, for values of element type `storage` along
 * `axis` when they are vectors. NULL when they are not constant or not usable (then the caller can
 * say nothing). */
const Quant *qop_quant(Arena *a, ElemType storage, const Value *scale, const Value *zp, int axis);

#endif
