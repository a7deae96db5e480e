/* Lays out .qir text as the printer does, keeping comments, literals and the line breaks inside of
 * brackets: what the printer wrote stays as it is. It works on tokens, so a text need only be
 * correct in syntax, not in meaning.
 *
 * The text begins with line `first_line` of the file `name`; the result is in the arena. False
 * after diagnostics, when there is a syntax error. */
#ifndef QXC_FRONTEND_QIR_QIR_FORMAT_H
#define QXC_FRONTEND_QIR_QIR_FORMAT_H

#include "support/buf.h"
#include "support/diag.h"

bool qir_format(Arena *a, Diags *d, const char *name, Str text, int first_line, Str *out);
/* How many comments a text has, whether or not its syntax is right. `a` is for what that takes. */
size_t qir_comments(Arena *a, Str text);

#endif
