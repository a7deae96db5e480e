#include "support/diag_print.h"

#include <jansson.h>

#include "support/utf8.h"

enum { WINDOW = 160, BEFORE = 80, TAB = 8, LONGEST = 4096 };

static const struct {
    const char *word, *color;
} severities[] = {
    [DIAG_NOTE] = {"note", "\033[1;36m"},
    [DIAG_REMARK] = {"remark", "\033[1;34m"},
    [DIAG_WARNING] = {"warning", "\033[1;35m"},
    [DIAG_ERROR] = {"error", "\033[1;31m"},
};

/* Appends text to be shown as it is, escaping only what a terminal must not see. Returns the
 * columns taken. */
static int put_safe_char(Buf *b, const char *s, size_t n, size_t *len) {
    uint32_t c;
    *len = utf8_decode(s, n, &c);
    if (*len && utf8_printable(c)) {
        buf_put(b, s, *len);
        return utf8_width(c);
    }
    if (!*len)
        *len = 1;
    for (size_t i = 0; i < *len; i++)
        buf_fmt(b, "\\x%02x", (unsigned)(unsigned char)s[i]);
    return 4 * (int)*len;
}

static void put_safe(Buf *b, Str s) {
    for (size_t i = 0, len; i < s.n; i += len)
        put_safe_char(b, s.s + i, s.n - i, &len);
}

/* Where to start showing a line so that at most BEFORE columns stand before `at`. */
static size_t window_begin(Buf *scratch, Str text, size_t line_begin, size_t at) {
    size_t i = at;
    for (int columns = 0; i > line_begin;) {
        size_t prev = i - 1, len;
        while (prev > line_begin && i - prev < 4 && ((unsigned char)text.s[prev] & 0xC0) == 0x80)
            prev--;
        scratch->n = 0;
        columns +=
            text.s[prev] == '\t' ? TAB : put_safe_char(scratch, text.s + prev, i - prev, &len);
        if (columns > BEFORE)
            break;
        i = prev;
    }
    return i;
}

static void put_columns(Buf *b, char first, char rest, int width) {
    for (int k = 0; k < width; k++)
        buf_byte(b, k == 0 ? first : rest);
}

/* Appends the source line; `marks` is what stands under it. */
static void render_line(Buf *line, Buf *marks, const Message *m) {
    Str text = m->source;
    size_t begin = m->begin, end = m->end;
    size_t i = window_begin(marks, text, m->line_begin, begin);
    marks->n = 0;
    int column = 0;
    if (i > m->line_begin) {
        buf_text(line, "...");
        put_columns(marks, ' ', ' ', 3);
    }
    while (i < text.n && text.s[i] != '\n' && column < WINDOW) {
        size_t len = 1;
        int width;
        if (text.s[i] == '\r' && (i + 1 == text.n || text.s[i + 1] == '\n'))
            break;
        if (text.s[i] == '\t') {
            width = TAB - column % TAB;
            for (int k = 0; k < width; k++)
                buf_byte(line, ' ');
        } else {
            width = put_safe_char(line, text.s + i, text.n - i, &len);
        }
        if (i + len <= begin)
            put_columns(marks, ' ', ' ', width);
        else if (i <= begin)
            put_columns(marks, '^', '~', end > begin || width == 0 ? width : 1);
        else if (i < end)
            put_columns(marks, '~', '~', width);
        column += width;
        i += len;
    }
    if (i <= begin) /* the end of the line or of the file */
        buf_byte(marks, '^');
    if (i < text.n && text.s[i] != '\n' && text.s[i] != '\r')
        buf_text(line, "...");
}

/* node "m" (MatMul, #0 in then_branch of node "c" (If, #3) in graph "main"; line 9 of ...); no line
 * where it is 0. */
static void put_place(Buf *b, const Message *m, int line) {
    enum { DEEPEST = 4 };
    const Place *p = m->place;
    Str words = str_from(p->words);
    bool bracket = str_ends(words, ")");
    words.n -= bracket;
    put_safe(b, words);
    int depth = 0;
    for (const Place *in = p->in; in; in = in->in) {
        buf_text(b, " in ");
        if (depth++ == DEEPEST) {
            buf_text(b, "...");
            break;
        }
        put_safe(b, str_from(in->words));
    }
    if (line)
        buf_fmt(b, "%sline %d of %s%s", bracket ? "; " : " (", line, m->shows, bracket ? "" : ")");
    if (bracket)
        buf_byte(b, ')');
}

static void put_title(Buf *b, const Message *m, bool color) {
    const char *bold = color ? "\033[1m" : "", *plain = color ? "\033[0m" : "";
    buf_text(b, bold);
    put_safe(b, str_from(m->file));
    if (m->place) {
        buf_text(b, ": ");
        put_place(b, m, m->line);
    } else if (m->line) {
        buf_fmt(b, ":%d:%d", m->line, m->column);
    }
    buf_fmt(b, ": %s%s: %s%s", color ? severities[m->severity].color : "",
            severities[m->severity].word, plain, bold);
    put_safe(b, m->text);
    buf_text(b, plain);
    buf_byte(b, '\n');
}

void message_text(Buf *out, const Message *m, bool color) {
    put_title(out, m, color);
    if (!m->line)
        return;
    Buf marks = buf_new(out->arena);
    size_t before = out->n;
    render_line(out, &marks, m);
    if (out->n == before) /* an empty line has nothing to point at */
        return;
    buf_fmt(out, "\n%s", color ? "\033[1;32m" : "");
    buf_str(out, buf_as_str(&marks));
    buf_fmt(out, "%s\n", color ? "\033[0m" : "");
}

/* Where the line of the message ends. */
static size_t line_end(const Message *m) {
    const char *nl = memchr(m->source.s + m->line_begin, '\n', m->source.n - m->line_begin);
    return nl ? (size_t)(nl - m->source.s) : m->source.n;
}

static json_t *safe_json(Buf *scratch, Str s) {
    scratch->n = 0;
    put_safe(scratch, s);
    return json_stringn(scratch->p, scratch->n);
}

/* Tabs stay, as columns count them; the end of a line of Windows goes. */
static json_t *line_json(Buf *scratch, Str s) {
    scratch->n = 0;
    if (s.n && s.s[s.n - 1] == '\r')
        s.n--;
    for (size_t i = 0, len; i < s.n; i += len) {
        len = 1;
        if (s.s[i] == '\t')
            buf_byte(scratch, '\t');
        else
            put_safe_char(scratch, s.s + i, s.n - i, &len);
    }
    return json_stringn(scratch->p, scratch->n);
}

static void add_line(json_t *o, Buf *scratch, const Message *m) {
    size_t end = line_end(m), last = m->end < end ? m->end : end;
    size_t width = last > m->begin ? last - m->begin : 1;
    size_t n = end - m->line_begin;
    json_object_set_new(o, "line", json_integer(m->line));
    json_object_set_new(o, "column", json_integer(m->column));
    json_object_set_new(o, "end_column", json_integer(m->column + (json_int_t)width));
    if (n <= LONGEST)
        json_object_set_new(o, "source", line_json(scratch, (Str){m->source.s + m->line_begin, n}));
}

void message_json(Buf *out, const Message *m) {
    Buf scratch = buf_new(out->arena);
    json_t *o = json_object();
    json_object_set_new(o, "severity", json_string(severities[m->severity].word));
    json_object_set_new(o, "message", safe_json(&scratch, m->text));
    json_object_set_new(o, "file", safe_json(&scratch, str_from(m->file)));
    if (m->place) {
        scratch.n = 0;
        put_place(&scratch, m, 0);
        json_object_set_new(o, "place", json_stringn(scratch.p, scratch.n));
    }
    if (m->line && m->place)
        json_object_set_new(o, "shown_by", json_string(m->shows));
    if (m->line)
        add_line(o, &scratch, m);
    char *text = json_dumps(o, JSON_COMPACT);
    buf_text(out, text ? text : "{}");
    buf_byte(out, '\n');
    free(text);
    json_decref(o);
}
