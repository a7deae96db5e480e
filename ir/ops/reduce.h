/* What reduce.c shares with its kernels on integers (reduce_integers.c). */
#ifndef QXC_IR_OPS_REDUCE_H
#define QXC_IR_OPS_REDUCE_H

#include "ir/ops/bind.h"

enum { REDUCE_DATA };

/* The kept and the reduced dimensions with their strides, neighbours merged. */
typedef struct Reduction {
    int32_t kept, kdim[8], kstride[8];
    int32_t reduced, rdim[8], rstride[8];
    int64_t count; /* elements that one result is made of */
} Reduction;

/* All params begin with one, but for `count`. */
#define COPY_REDUCTION(p, r) memcpy(&(p), &(r), offsetof(Reduction, count))

/* `what` of reducesum_f32, reducenorm_q and reduce_i, the last ones of one of them */
enum { REDUCE_PLAIN, REDUCE_ABSOLUTE, REDUCE_SQUARE, REDUCE_ROOT, REDUCE_PRODUCT = REDUCE_ROOT };

/* Quantized operand and result; in double where no kernel takes their types. */
bool reduce_sum_integers(Binder *b, const Node *n, const Reduction *r, bool mean);
bool reduce_norm_integers(Binder *b, const Node *n, const Reduction *r, int what);
bool reduce_product_integers(Binder *b, const Node *n, const Reduction *r);
bool reduce_log_integers(Binder *b, const Node *n, const Reduction *r, bool exponentials);
/* Plain integers, as models compute with shapes. */
bool reduce_plain(Binder *b, const Node *n, const Reduction *r, int what, bool mean);

#endif
