/* -in-place: the text that is read is what is written over. */
#ifndef QXC_COMPILER_IN_PLACE_H
#define QXC_COMPILER_IN_PLACE_H

#include "compiler/session.h"

/* Makes the input the output, where that is asked for. False after an error: it cannot be. */
bool in_place_settle(Session *s);
/* Whether what was read is such a text; a note tells of comments, which the printer has no place
 * for. False after an error. */
bool in_place_fits(const Session *s);
/* Whether this is the file that is to be replaced. */
bool in_place_replaces(const Session *s, const FileMap *f);

#endif
