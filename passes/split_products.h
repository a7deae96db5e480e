/* What split-products takes apart. */
#ifndef QXC_PASSES_SPLIT_PRODUCTS_H
#define QXC_PASSES_SPLIT_PRODUCTS_H

#include "passes/pass.h"

/* com.microsoft's operators that multiply matrices within. */
bool holds_products(const Node *n);
/* Why such a node stays as it is; NULL: it is taken apart. */
const char *split_refusal(const Node *n);

#endif
