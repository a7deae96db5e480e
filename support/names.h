/* Names in use, and new ones made from a base: base, base_1, base_2, ... Counts on from the last
 * suffix of each base, so that many copies of one cost no more than as many names. New names live
 * in an arena, the table in another, which may go first; names given to it are borrowed. */
#ifndef QXC_SUPPORT_NAMES_H
#define QXC_SUPPORT_NAMES_H

#include "support/arena.h"

typedef struct Names Names;

Names *names_new(Arena *a, Arena *scratch);
/* From now on `name` is in use. */
void names_use(Names *n, Str name);
/* A name that was not in use and now is: `base` itself where it can be. */
Str names_make(Names *n, Str base);

#endif
