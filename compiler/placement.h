/* Where quantizers stand, as the command line (-placement=) or a scheme (`placement products`) says
 * it. They report; memory is nobody's. */
#ifndef QXC_COMPILER_PLACEMENT_H
#define QXC_COMPILER_PLACEMENT_H

#include "compiler/pipeline.h"

/* Whether there is a choice of where quantizers stand. C computes on integers all that it can, and
 * so do targets without floats and -integer-only: they leave no choice. */
bool placement_is_open(const Job *j);
/* Of the command line, as soon as the target is known. False after an error. */
bool placement_init(Job *j);
/* What the whole scheme says, for the passes. False after an error. */
bool placement_take(Job *j);
/* What cannot be followed, as the rest of what is asked for leaves one place only: warnings. */
void warn_of_idle_placement(const Job *j);

#endif
