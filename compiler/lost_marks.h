/* Types that a text writes and leaves open (`~ int16q<?>`) on values that fusing does away with. */
#ifndef QXC_COMPILER_LOST_MARKS_H
#define QXC_COMPILER_LOST_MARKS_H

#include "ir/ops/op.h"

typedef struct Marks Marks;

/* Those that there are before. */
Marks *marks_note(Module *m);
/* A warning that names those which are gone by now. */
void warn_of_lost_marks(const Marks *marks, Module *m, Diags *d);

#endif
