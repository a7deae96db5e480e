/* What split-products takes apart. */
#ifndef QXC_PASSES_SPLIT_PRODUCTS_H
#define QXC_PASSES_SPLIT_PRODUCTS_H

#include "passes/pass.h"

/* Operands of com.microsoft's Attention. */
enum {
    ATTENTION_INPUT,
    ATTENTION_WEIGHTS,
    ATTENTION_BIAS,
    ATTENTION_MASK,
    ATTENTION_PAST,
    ATTENTION_SCORES,
    ATTENTION_PAST_LENGTH
};

bool node_is_attention(const Node *n);

/* What its mask holds: ends of rows [B], ends and beginnings [2*B], truth values [B,S] or [B,S,S].
 */
typedef enum Mask { MASK_NONE, MASK_ENDS, MASK_SPANS, MASK_STEPS, MASK_PAIRS, MASK_OTHER } Mask;

Mask attention_mask(const Node *n);

/* com.microsoft's operators that multiply matrices within. */
bool holds_products(const Node *n);
/* Why such a node stays as it is; NULL: it is taken apart. */
const char *split_refusal(const Node *n);
/* Why nothing of such a node is integer while it is one; NULL of other operators. */
const char *whole_refusal(const Node *n);

#endif
