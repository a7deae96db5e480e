#include "support/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "support/utf8.h"

Buf buf_new(Arena *a) {
    return (Buf){.arena = a};
}

/* Makes room for `n` more bytes and a NUL. */
static void reserve(Buf *b, size_t n) {
    if (n < b->cap - b->n)
        return;
    size_t need = n > SIZE_MAX / 4 ? SIZE_MAX / 2 : b->n + n + 1;
    size_t cap = b->cap ? 2 * b->cap : 64;
    b->cap = cap > need ? cap : need;
    b->p = arena_grow(b->arena, b->p, b->n, b->cap);
}

void buf_put(Buf *b, const void *data, size_t n) {
    reserve(b, n);
    if (n)
        memcpy(b->p + b->n, data, n);
    b->n += n;
}

void buf_byte(Buf *b, char c) {
    reserve(b, 1);
    b->p[b->n++] = c;
}

void buf_str(Buf *b, Str s) {
    buf_put(b, s.s, s.n);
}
void buf_text(Buf *b, const char *text) {
    buf_put(b, text, strlen(text));
}

void buf_fmt(Buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_fmt_v(b, fmt, ap);
    va_end(ap);
}

void buf_fmt_v(Buf *b, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n > 0) {
        reserve(b, (size_t)n);
        vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

Str buf_as_str(Buf *b) {
    reserve(b, 0);
    b->p[b->n] = 0;
    return (Str){b->p, b->n};
}

void buf_u64(Buf *b, uint64_t v) {
    size_t n = 1;
    for (uint64_t rest = v; rest >= 10; rest /= 10)
        n++;
    reserve(b, n);
    for (size_t i = n; i-- > 0; v /= 10)
        b->p[b->n + i] = (char)('0' + v % 10);
    b->n += n;
}

void buf_i64(Buf *b, int64_t v) {
    if (v < 0)
        buf_byte(b, '-');
    buf_u64(b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static void put_hex(Buf *b, const char *s, size_t n) {
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        char hex[] = {'\\', 'x', digit[c >> 4], digit[c & 15]};
        buf_put(b, hex, sizeof hex);
    }
}

/* How many of the bytes from `i` on stand for themselves: mostly all of them. */
static size_t plain_run(Str s, size_t i) {
    size_t n = 0;
    while (i + n < s.n && s.s[i + n] >= ' ' && s.s[i + n] < 0x7f && s.s[i + n] != '"' &&
           s.s[i + n] != '\\')
        n++;
    return n;
}

void buf_escaped(Buf *b, Str s) {
    for (size_t i = 0, len; i < s.n; i += len) {
        uint32_t c;
        if ((len = plain_run(s, i)) > 0) {
            buf_put(b, s.s + i, len);
            continue;
        }
        len = utf8_decode(s.s + i, s.n - i, &c);
        if (!len) {
            len = 1;
            put_hex(b, s.s + i, 1);
        } else if (c == '\n') {
            buf_put(b, "\\n", 2);
        } else if (c == '\t') {
            buf_put(b, "\\t", 2);
        } else if (!utf8_printable(c)) {
            put_hex(b, s.s + i, len);
        } else {
            if (c == '"' || c == '\\')
                buf_byte(b, '\\');
            buf_put(b, s.s + i, len);
        }
    }
}

void buf_quoted(Buf *b, Str s) {
    buf_byte(b, '"');
    buf_escaped(b, s);
    buf_byte(b, '"');
}
