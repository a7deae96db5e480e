/* One word of a POSIX shell, which reads back as the same bytes. */
#include "support/buf.h"
#include "support/utf8.h"

static bool is_plain(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_-./,:=@%+", c));
}

/* What must not reach a terminal, or is no text: only $'...' has words for it. */
static bool has_unprintable(Str s) {
    uint32_t c;
    for (size_t i = 0, n; i < s.n; i += n)
        if (!(n = utf8_decode(s.s + i, s.n - i, &c)) || !utf8_printable(c))
            return true;
    return false;
}

/* Three octal digits end by themselves, which \x does not in every shell. */
static void put_escaped(Buf *b, Str s) {
    buf_text(b, "$'");
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.s[i];
        if (c == '\'' || c == '\\')
            buf_fmt(b, "\\%c", c);
        else if (c < ' ' || c > '~')
            buf_fmt(b, "\\%03o", (unsigned)c);
        else
            buf_byte(b, (char)c);
    }
    buf_byte(b, '\'');
}

static void put_single(Buf *b, Str s) {
    buf_byte(b, '\'');
    for (size_t i = 0; i < s.n; i++)
        if (s.s[i] == '\'')
            buf_text(b, "'\\''");
        else
            buf_byte(b, s.s[i]);
    buf_byte(b, '\'');
}

void buf_shell(Buf *b, Str s) {
    bool plain = s.n > 0;
    for (size_t i = 0; i < s.n; i++)
        plain = plain && is_plain((unsigned char)s.s[i]);
    if (plain)
        buf_str(b, s);
    else if (has_unprintable(s))
        put_escaped(b, s);
    else
        put_single(b, s);
}

void buf_command(Buf *b, const char *command) {
    bool named = false;
    for (const char *p = command; *p; p++) {
        if (p[0] == '{' && p[1] == '}') {
            buf_str(b, STR("\"$1\""));
            named = true;
            p++;
        } else {
            buf_byte(b, *p);
        }
    }
    if (!named)
        buf_str(b, STR(" \"$1\""));
}
