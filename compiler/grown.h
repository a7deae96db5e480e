/* Why a file became larger than the model it was made from. */
#ifndef QXC_COMPILER_GROWN_H
#define QXC_COMPILER_GROWN_H

#include "compiler/session.h"

/* By `more` bytes: one line on stderr for each large cause that is found in the module as it was
 * written (constants kept beside their integers, computed ahead of time, or widened), else what is
 * left as a cause. */
void explain_growth(const Job *j, Module *m, long long more);

#endif
