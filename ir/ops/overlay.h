/* By how much the result of a kernel has to begin before its operand to share memory with it
 * (bind_over). The kernels read their operand and write their result front to back; no byte may be
 * written that is still to be read. Leads are in bytes, of tensors without gaps, and negative where
 * the result may begin after the operand. */
#ifndef QXC_IR_OPS_OVERLAY_H
#define QXC_IR_OPS_OVERLAY_H

#include "ir/ops/bind.h"

/* Of kernels that read `read` bytes, then write `written` bytes, `steps` times. */
int64_t lead_steps(int64_t steps, int64_t read, int64_t written);
/* Of kernels with windows on [n, h, w, c]; the window of a position is read before the result of
 * the position is written, or, with `ahead`, before that of the one `ahead` positions after it. */
int64_t lead_window(const Spatial *s, ElemType x, ElemType y, int32_t ahead);
/* The same on [n, c, h, w], by planes of a channel: c results of c operands. */
int64_t lead_planes(const Spatial *s, ElemType x, ElemType y, int32_t ahead);
/* Of those that keep the rows of a window aside: they read a row of input only once, and before the
 * first row of results that needs it. */
int64_t lead_kept_rows(const Spatial *s, ElemType x, ElemType y);

/* For kernels that map each of n elements of argument `arg` alone. */
void bind_over_each(Binder *b, int arg, int64_t n, ElemType x, ElemType y);

#endif
