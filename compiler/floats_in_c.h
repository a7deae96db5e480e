/* What emitted C computes in floating point, and what it converts between integers, for the summary
 * and the report. */
#ifndef QXC_COMPILER_FLOATS_IN_C_H
#define QXC_COMPILER_FLOATS_IN_C_H

#include "compiler/pipeline.h"
#include "exec/exec.h"

/* Fills j->c_floats and what is counted of it, and j->c_converted. */
void find_floats(Job *j, const Program *p);
/* In a model that has integers, each of these nodes of which no pass has said why becomes a remark.
 */
void note_floats(Job *j, const Program *p);

#endif
