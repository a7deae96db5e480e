/* com.microsoft's operators with integer weights and an input quantized at run time
 * (DynamicQuantizeLSTM, QAttention, QEmbedLayerNormalization), by the DynamicForm of their float
 * operator. Nothing fails: what does not fit is left to others. */
#ifndef QXC_PASSES_DYNAMIC_FORM_H
#define QXC_PASSES_DYNAMIC_FORM_H

#include "ir/ops/op.h"

enum { FORM_OPERANDS = 16 };

/* Where the form has operand i of the float operator, its scale and its zero point; -1: nowhere. */
typedef struct FormLayout {
    int value[FORM_OPERANDS], scale[FORM_OPERANDS], zp[FORM_OPERANDS];
    size_t n_operands;
} FormLayout;

FormLayout form_layout(const DynamicForm *f);
/* The float operator whose form this node is, or NULL. */
const OpDef *form_find(const Node *n);
bool form_is_weight(const DynamicForm *f, size_t i);

#endif
