/* Statistics that say nothing: a range that is upside down, no number, or has one end. Legal, as
 * calibration of anything may have seen that, but nothing is quantized by them: a warning for each
 * such value. */
#ifndef QXC_IR_VERIFY_STAT_H
#define QXC_IR_VERIFY_STAT_H

#include "ir/ir.h"

void verify_stats(Module *m, Diags *d);
/* Why nothing can be quantized by it, as a sentence; NULL where it is a finite range. A bound that
 * is infinite is told here alone: calibration meets that in masks. */
const char *stat_why_no_range(const Stat *s);
/* The same as a note at the statistic of a value, which has one, unless a warning told it. */
void note_no_range(const Value *v, Diags *d);

#endif
