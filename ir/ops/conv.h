/* What Conv shares with ConvInteger: attributes, laws and windows. Contexts have the input and the
 * weights as operands 0 and 1. */
#ifndef QXC_IR_OPS_CONV_H
#define QXC_IR_OPS_CONV_H

#include "ir/ops/bind.h"

typedef struct ConvAttrs {
    WindowAttrs w;
    int64_t group;
} ConvAttrs;

extern const AttrSpec conv_attrs[];

/* Laws that Conv and ConvTranspose share: ranks, and a bias of `out` channels (-1: not known). */
bool conv_verify_operands(const OpCtx *c, int64_t group, int64_t out);
/* Operand 2, where there is one, is a bias. */
bool conv_verify(const OpCtx *c);
bool conv_infer(OpCtx *c);
bool conv_window(const OpCtx *c, Window *w);

#endif
