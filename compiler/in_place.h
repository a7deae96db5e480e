/* -in-place: the text that is read is what is written over. */
#ifndef QXC_COMPILER_IN_PLACE_H
#define QXC_COMPILER_IN_PLACE_H

#include "compiler/session.h"

/* Makes the input the output, where that is asked for. False after an error: it cannot be. */
bool in_place_settle(Session *s);
/* False after an error: the text has comments, which the printer has no place for. To be asked
 * before any work. */
bool in_place_loses_nothing(Session *s);
/* Whether what was read is such a text. False after an error. */
bool in_place_fits(const Session *s);
/* Whether this is the file that is to be replaced. */
bool in_place_replaces(const Session *s, const FileMap *f);
/* Names the files that the text named when it was read and that no model names now, in a note. */
void in_place_tell_left(const Session *s, const Module *m);

/* The functions of the model as words, before it is compiled; NULL: nothing is to be told of them.
 */
const char *in_place_functions(const Session *s, const Module *m);
/* Says that they went, as calls are replaced where something is decided. */
void in_place_tell_functions(const Session *s, const Module *m, const char *functions);

#endif
