/* How one message looks: as text in clang's form, or as JSON. */
#ifndef QXC_SUPPORT_DIAG_PRINT_H
#define QXC_SUPPORT_DIAG_PRINT_H

#include "support/buf.h"
#include "support/diag.h"

/* A message and where it stands. Without a text, `line` is 0 and what follows it means nothing. */
typedef struct Message {
    Severity severity;
    Str text;
    const char *file;   /* "qxc" where no file is concerned */
    const Place *place; /* of a binary model, or NULL; `source` is then a text that shows the model,
                           `shows` in words */
    const char *shows;
    int line, column; /* from 1, columns in bytes */
    Str source;       /* what holds [begin, end), in the line that begins at `line_begin` */
    size_t line_begin, begin, end;
} Message;

/* NAME:LINE:COLUMN: error: TEXT, or NAME: PLACE: error: TEXT, the line and marks under it. */
void message_text(Buf *out, const Message *m, bool color);
/* The same facts as one line of JSON (docs/ir.md, Errors). */
void message_json(Buf *out, const Message *m);

#endif
