/* Where an emitted file came from, as its first comment tells it. */
#ifndef QXC_COMPILER_ORIGIN_H
#define QXC_COMPILER_ORIGIN_H

#include "compiler/session.h"

/* Lines without comment signs: qxc's version, the input's name and SHA-256, the options that shaped
 * the result (of paths the last part alone), the licence. They are the same on every machine.
 * The text lives in `a`. */
Str origin_text(const Session *s, Arena *a);

#endif
