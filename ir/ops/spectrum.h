/* What DFT and STFT share. x is their first operand. */
#ifndef QXC_IR_OPS_SPECTRUM_H
#define QXC_IR_OPS_SPECTRUM_H

#include "ir/ops/bind.h"

enum {
    SPECTRUM_LONGEST = 1 << 24
}; /* elements: their tables take 16 bytes each, what works in them 32 */

/* A length that is constant, -1 where it is not known; `absent` where it is omitted. */
bool spectrum_length(const OpCtx *c, size_t i, int64_t absent, int64_t *out);
/* Real and imaginary part lie side by side: 1, 2, or -1 where it is not known. */
bool spectrum_parts(const OpCtx *c, Type x, int64_t *parts);
/* The bins of a real signal of n that do not follow from the others; -1 where n is. */
int64_t spectrum_half(int64_t n);
/* Whether operand `i` is there and for a run to tell. */
bool spectrum_is_told(const OpCtx *c, size_t i);

/* What has to be constant for a table and strides: false after saying that operand `i` is not. */
bool spectrum_known(Binder *b, const Node *n, const OpCtx *c, size_t i);
/* False after saying that operand `i`, which a run tells, is not one number. */
bool spectrum_one_number(Binder *b, const Node *n, size_t i);
/* True after saying so. */
bool spectrum_too_long(Binder *b, const Node *n, int64_t length);
/* Transforms of `most` numbers at most; turns and factors are those of p->n, or what a run makes of
 * `told`. */
bool spectrum_call(Binder *b, const Node *n, const qk_dft_params *p, const Value *window, int told,
                   int64_t most);

#endif
