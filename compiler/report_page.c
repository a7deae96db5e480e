/* The page of a report: the texts of compiler/report/, and the JSON in their middle. */
#include "compiler/report_parts.h"
#include "support/embedded.h"

#include <stdlib.h>

static Str text_named(Str name) {
    for (size_t i = 0; i < report_texts_n; i++)
        if (str_is(name, report_texts[i].name))
            return (Str){report_texts[i].text, report_texts[i].size};
    return STR_NONE;
}

/* In a script element nothing ends it but `</`, and ASCII is the same in every encoding. */
static void put_data(Buf *b, const json_t *root) {
    char *dumped = json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
    for (const char *p = dumped ? dumped : "null"; *p; p++)
        if (*p == '<')
            buf_text(b, "\\u003c");
        else
            buf_byte(b, *p);
    free(dumped);
}

/* The frame names what belongs in it: a line `@report.css@` is that file, `@data@` the JSON. */
static void put_line(Buf *b, Str line, const json_t *root) {
    bool marked = line.n > 2 && line.s[0] == '@' && line.s[line.n - 1] == '@';
    Str name = {line.s + 1, marked ? line.n - 2 : 0};
    if (!marked)
        buf_str(b, line);
    else if (str_is(name, "data"))
        put_data(b, root);
    else
        buf_str(b, text_named(name));
    buf_byte(b, '\n');
}

Str report_page(Arena *a, const json_t *root) {
    Buf b = buf_new(a);
    Str frame = text_named(STR("report.html"));
    for (size_t at = 0; at < frame.n;) {
        const char *end = memchr(frame.s + at, '\n', frame.n - at);
        size_t n = end ? (size_t)(end - frame.s) - at : frame.n - at;
        put_line(&b, (Str){frame.s + at, n}, root);
        at += n + 1;
    }
    return buf_as_str(&b);
}
