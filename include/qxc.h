/* qxc as a C library: what the program does, called from C. docs/library.md has an example.
 *
 * A call is a command line without the program's name. What the program would print comes back as
 * text; files that -o, -report and the like name are written. Nothing of the caller's standard
 * output and error is touched, and no mistake of a user ends the process. Calls of several threads
 * are done one after the other. */
#ifndef QXC_H
#define QXC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum QxcCode {
    QXC_DONE = 0,
    QXC_WRONG = 1,  /* the model or the text is wrong, or cannot do what was asked */
    QXC_USAGE = 2,  /* the command line is */
    QXC_IO = 3,     /* a file cannot be read or written */
    QXC_MISSED = 4, /* an accuracy that was asked for was missed */
} QxcCode;

/* What a call gave. */
typedef struct QxcResult QxcResult;

/* "0.2.0" */
const char *qxc_version(void);

/* Does what the words say: {"info", "model.onnx"}. NULL where there is no memory for a result. */
QxcResult *qxc_call(size_t n, const char *const *words);

QxcCode qxc_code(const QxcResult *r);
/* What the program prints on standard output: n bytes, which a 0 follows. `n` may be NULL. The
 * result owns them. */
const char *qxc_output(const QxcResult *r, size_t *n);
/* Errors, warnings and the summary; with -diagnostics=json in a form to be read by programs. */
const char *qxc_messages(const QxcResult *r, size_t *n);
void qxc_free(QxcResult *r); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
