/* A growing byte buffer for text and binary output. It lives in an arena. */
#ifndef QXC_SUPPORT_BUF_H
#define QXC_SUPPORT_BUF_H

#include <stdarg.h>

#include "support/arena.h"

typedef struct Buf {
    Arena *arena;
    char *p;
    size_t n, cap;
} Buf;

Buf buf_new(Arena *a);
void buf_put(Buf *b, const void *data, size_t n);
void buf_byte(Buf *b, char c);
void buf_str(Buf *b, Str s);
void buf_text(Buf *b, const char *text);
void buf_fmt(Buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_fmt_v(Buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
Str buf_as_str(Buf *b); /* NUL-terminated view of what was written so far */

/* Numbers, independent of the locale. */
void buf_i64(Buf *b, int64_t v);
void buf_u64(Buf *b, uint64_t v);
/* The shortest decimal that reads back to the same bits, always with '.' or 'e' (1.0, 1e-05 is
 * written 1.0e-05); inf, -inf, nan, and nan(0x...) with the bit pattern where it is not the
 * default quiet NaN. */
void buf_f32(Buf *b, float v);
void buf_f64(Buf *b, double v);
/* A string literal: "..." with \n \t \" \\ \xHH for all else that is not printable ASCII;
 * well-formed UTF-8 stays as it is. */
void buf_quoted(Buf *b, Str s);
/* For messages on a terminal: like buf_quoted, without the quotes. */
void buf_escaped(Buf *b, Str s);
/* One word for a shell: as it is where that is safe, else '...', or $'...' where bytes are no
 * printable text. */
void buf_shell(Buf *b, Str s);
/* A command of the user's about a file, for `sh -c`, which gets the path as $1: that stands in the
 * place of {}, else it is the last word. */
void buf_command(Buf *b, const char *command);

#endif
