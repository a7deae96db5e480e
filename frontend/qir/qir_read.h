/* Reads .qir text into a Module.
 *
 * All memory, the text included, is in the arena, which the module owns; blob files are mapped for
 * as long as the module lives. Every mistake in the text is reported with its place; one run
 * reports all of them. */
#ifndef QXC_FRONTEND_QIR_QIR_READ_H
#define QXC_FRONTEND_QIR_QIR_READ_H

#include "ir/ir.h"

typedef struct QirReadOptions {
    Folders in;           /* of blobs and external data; `dir` NULL: beside the file */
    int first_line;       /* of the file that the text is a part of; 0: it is all of it */
    bool wide_zp;         /* zero points may lie outside their range */
    bool functions_alone; /* no graph: a library; the module has an empty one */
    bool skip_checksums;  /* do not read blob data just to compare its checksum */
} QirReadOptions;

/* `path` may be "-". Options may be NULL. NULL after diagnostics; the arena is then still the
 * caller's. */
Module *qir_read(Arena *a, Diags *d, const char *path, const QirReadOptions *options);
/* The same for text at hand, copied; `name` stands in messages and is the module's path. */
Module *qir_read_text(Arena *a, Diags *d, const char *name, Str text,
                      const QirReadOptions *options);

/* The rules of a scheme alone, appended to `out`: a file that holds `scheme { ... }`, after the
 * line `qir 1` or without it, and quant lines for its types. False after diagnostics. */
bool qir_read_scheme(Arena *a, Diags *d, const char *path, Scheme *out);
bool qir_read_scheme_text(Arena *a, Diags *d, const char *name, Str text, Scheme *out);

/* Does the word qir come next, perhaps behind a byte order mark, blank lines and comments?
 * `comment`: whether there is one, if only the beginning of it. May be NULL. */
bool qir_begins(Str text, bool *comment);

#endif
