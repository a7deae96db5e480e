/* Statistics that say nothing: a range that is upside down, or no number. Legal, as calibration of
 * anything may have seen that, but nothing is quantized by them: a warning for each such value. */
#ifndef QXC_IR_VERIFY_STAT_H
#define QXC_IR_VERIFY_STAT_H

#include "ir/ir.h"

void verify_stats(Module *m, Diags *d);

#endif
