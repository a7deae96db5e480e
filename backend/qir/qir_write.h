/* Writes a Module as .qir text. The same module always gives the same bytes, whatever the locale.
 *
 * Large constants stand in the text, are left out (elided), or go to a safetensors file beside it.
 * Quantizations keep their names; a vector of parameters, or parameters that several values share,
 * get a name from the first value that has them. */
#ifndef QXC_BACKEND_QIR_QIR_WRITE_H
#define QXC_BACKEND_QIR_QIR_WRITE_H

#include "ir/ir.h"

typedef struct QirWriteOptions {
    bool elide; /* leave out constants of more than elide_larger bytes */
    size_t elide_larger;
    bool plain;   /* no statistics, no `from`, no `onnx` lines */
    bool no_blob; /* qir_write_file: keep everything in the text */
    bool has_few; /* else 16 are */
    size_t few;   /* constants of more elements stand behind the nodes, or in the blob */
    /* qir_print: called for each node (its operator), input, constant and function (its name), with
     * the bytes of the text where it stands. May be NULL. */
    void (*mark)(void *ctx, Loc at, size_t begin, size_t end);
    void *mark_ctx;
} QirWriteOptions;

/* Options may be NULL. */
void qir_print(const Module *m, Buf *b, const QirWriteOptions *options);
/* To a stream; all constants are inline or elided. That a write failed the caller learns from it.
 */
void qir_write(const Module *m, FILE *f, const QirWriteOptions *options);
/* To a file, with NAME.safetensors beside it where there are large constants. Both are opened in
 * `out`, which the caller commits. False after a diagnostic. */
bool qir_write_file(const Module *m, OutFiles *out, const char *path,
                    const QirWriteOptions *options);

/* Parts of a text, as the metadata of an ONNX file hold them (compiler/metadata.c); data is never
 * elided. What stands between the < > of a `stat` line, empty where it says nothing; a `from`
 * clause. */
Str qir_stat_text(const Module *m, const Stat *s);
Str qir_from_text(const Module *m, Provenance from);

#endif
