/* Large arrays of bytes as strings.
 *
 * Compilers read a string ten times as fast as numbers, in a tenth of the memory: what large models
 * take. Smaller arrays stay numbers, as C99 promises to take no more than 4095 characters. */
#include "backend/c/writer.h"

enum { SMALLEST = 65536, WIDE = 4000 };

bool c_is_string(const Buffer *b) {
    return elem_bits(b->elem) == 8 && b->count >= SMALLEST;
}

/* The characters of a byte within a string, as few as can be: weights lie around zero, where
 * letters of escapes stand too. An octal number may not run into a digit behind it. */
static size_t escape(char out[8], uint8_t v, bool digits_before) {
    static const char letters[] = "abtnvfr"; /* 7 to 13 */
    bool plain = v >= ' ' && v < 127 && v != '"' && v != '\\' && v != '?';
    if (plain && !(digits_before && v >= '0' && v <= '7')) {
        out[0] = (char)v;
        return 1;
    }
    if (v >= '\a' && v <= '\r')
        return (size_t)snprintf(out, 8, "\\%c", letters[v - '\a']);
    if (v == '"' || v == '\\' || v == '?')
        return (size_t)snprintf(out, 8, "\\%c", v);
    return (size_t)snprintf(out, 8, "\\%o", v);
}

static void put_string(FILE *f, const uint8_t *data, size_t count) {
    char line[WIDE + 16];
    size_t n = 0;
    bool short_octal = false;
    for (size_t i = 0; i < count; i++) {
        size_t length = escape(line + n, data[i], short_octal);
        short_octal = (length == 2 || length == 3) && line[n + length - 1] >= '0' &&
                      line[n + length - 1] <= '7';
        n += length;
        if (n >= WIDE || i + 1 == count) {
            fprintf(f, "\n\"%.*s\"", (int)n, line);
            n = 0;
            short_octal = false;
        }
    }
}

void c_put_string_const(CWriter *w, const Buffer *b, Str name) {
    fprintf(w->f, "#if defined(__GNUC__)\n#pragma GCC diagnostic push\n"
                  "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n#endif\n");
    c_put_alignment(w, b);
    fprintf(w->f, "static const %s " STR_FMT "[%zu + 1] =", c_type(b->elem), STR_ARG(name),
            b->count);
    put_string(w->f, b->data, b->count);
    fputs(";\n#if defined(__GNUC__)\n#pragma GCC diagnostic pop\n#endif\n\n", w->f);
}
