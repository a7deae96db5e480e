/* The public calls (include/qxc.h) over session_run.
 *
 * The program prints to stdout and stderr. In the library these names, and the functions that print
 * to stdout without naming it, are those below (library/redefined): each call has streams of its
 * own, and the caller's are left alone. As the names are the library's, one call goes at a time. */
#define _GNU_SOURCE
#include "include/qxc.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/session.h"
#include "compiler/version.h"

struct QxcResult {
    QxcCode code;
    char *text[2]; /* of stdout and stderr */
    size_t n[2];
};

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* ---- what stands for the names of C's library ---- */

FILE *qxc_internal_stdout, *qxc_internal_stderr;
int qxc_internal_puts(const char *text);
int qxc_internal_putchar(int c);
int qxc_internal_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int qxc_internal_printf_chk(int flag, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int qxc_internal_isatty(int fd);

int qxc_internal_puts(const char *text) {
    return fputs(text, qxc_internal_stdout) < 0 ? EOF : fputc('\n', qxc_internal_stdout);
}

int qxc_internal_putchar(int c) {
    return fputc(c, qxc_internal_stdout);
}

int qxc_internal_printf(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vfprintf(qxc_internal_stdout, fmt, ap);
    va_end(ap);
    return n;
}

/* printf where -D_FORTIFY_SOURCE is on. */
int qxc_internal_printf_chk(int flag, const char *fmt, ...) {
    (void)flag;
    va_list ap;
    va_start(ap, fmt);
    int n = vfprintf(qxc_internal_stdout, fmt, ap);
    va_end(ap);
    return n;
}

/* The streams are memory, whatever the caller's are. */
int qxc_internal_isatty(int fd) {
    (void)fd;
    return 0;
}

/* ---- the calls ---- */

const char *qxc_version(void) {
    return QXC_VERSION;
}

/* session_run takes what main gets. */
static QxcCode run(size_t n, const char *const *words) {
    char **argv = calloc(n + 2, sizeof *argv);
    if (!argv)
        return QXC_WRONG;
    argv[0] = "qxc";
    for (size_t i = 0; i < n; i++)
        argv[i + 1] = (char *)words[i]; /* which nobody writes to */
    QxcCode code = (QxcCode)session_run((int)n + 1, argv);
    free(argv);
    return code;
}

static void call(QxcResult *r, size_t n, const char *const *words) {
    qxc_internal_stdout = open_memstream(&r->text[0], &r->n[0]);
    qxc_internal_stderr = open_memstream(&r->text[1], &r->n[1]);
    r->code = qxc_internal_stdout && qxc_internal_stderr ? run(n, words) : QXC_WRONG;
    if (qxc_internal_stdout && fclose(qxc_internal_stdout) != 0 && r->code == QXC_DONE)
        r->code = QXC_IO;
    if (qxc_internal_stderr)
        fclose(qxc_internal_stderr);
}

QxcResult *qxc_call(size_t n, const char *const *words) {
    QxcResult *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    pthread_mutex_lock(&one_at_a_time);
    call(r, n, words);
    pthread_mutex_unlock(&one_at_a_time);
    return r;
}

QxcCode qxc_code(const QxcResult *r) {
    return r->code;
}

static const char *text_of(const QxcResult *r, int which, size_t *n) {
    if (n)
        *n = r->text[which] ? r->n[which] : 0;
    return r->text[which] ? r->text[which] : "";
}

const char *qxc_output(const QxcResult *r, size_t *n) {
    return text_of(r, 0, n);
}

const char *qxc_messages(const QxcResult *r, size_t *n) {
    return text_of(r, 1, n);
}

void qxc_free(QxcResult *r) {
    if (!r)
        return;
    free(r->text[0]);
    free(r->text[1]);
    free(r);
}
