/* How products of matrices are bound: what Gemm and MatMul share. */
#ifndef QXC_IR_OPS_MATMUL_BIND_H
#define QXC_IR_OPS_MATMUL_BIND_H

#include "ir/ops/bind.h"

/* A product as the kernels take it: y[batch.., m, n] = a[i, k] . b[k, j] through strides. */
typedef struct Product {
    int32_t rank, dim[MAX_RANK], as[MAX_RANK], bs[MAX_RANK]; /* batch */
    int32_t m, n, k, am, ak, bk, bn;
} Product;

/* Calls the kernels of y = alpha * a . b + beta * bias (NULL: none) for a node whose operands are
 * a, b and perhaps the bias. `axis` of b counts the channels of its parameters; -1 where it has
 * none. False after saying why not. */
bool bind_product(Binder *b, const Node *n, const Product *p, const Value *bias, int axis,
                  float alpha, float beta);

#endif
