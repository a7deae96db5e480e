/* What is told of a model that was decided in part. */
#ifndef QXC_COMPILER_COMPLETE_H
#define QXC_COMPILER_COMPLETE_H

#include "compiler/pipeline.h"

/* "kept 12 as written, decided 1: r1 (uint4q<2^-3, 0>)", where something was left open. */
void completed_print(const Job *j);

/* Whether decisions or types leave something float that can be decided, or are to be decided anew.
 */
bool job_leaves_float(const Job *j, Module *m);

#endif
