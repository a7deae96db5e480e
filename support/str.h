/* Byte strings with a length. ONNX names may hold any byte, NUL included, so a length always
 * travels along; every Str that an arena made is also NUL-terminated. A Str owns nothing. */
#ifndef QXC_SUPPORT_STR_H
#define QXC_SUPPORT_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Str {
    const char *s; /* NULL when absent; "" when empty but present */
    size_t n;
} Str;

#define STR(lit)   ((Str){(lit), sizeof(lit) - 1})
#define STR_NONE   ((Str){NULL, 0})
#define STR_FMT    "%.*s"
#define STR_ARG(x) (int)(x).n, (x).s

static inline Str str_from(const char *s) {
    return (Str){s, s ? strlen(s) : 0};
}
static inline bool str_eq(Str a, Str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}
static inline bool str_is(Str a, const char *b) {
    return str_eq(a, str_from(b));
}
int str_cmp(Str a, Str b);     /* bytewise order */
const char *plural(int64_t n); /* "s" behind a word; "" for 1 */
bool str_starts(Str a, const char *prefix);
bool str_ends(Str a, const char *suffix);
/* Shell-like match with `*` and `?`; no classes. `\` before one of these, a comma or itself takes
 * that byte as it is. Linear in practice, never recursive. */
bool str_glob(const char *pattern, Str text);
/* Writes the one text that a pattern without wildcards matches, of at most as many bytes, and
 * returns true; false where it has some. */
bool str_glob_is_text(const char *pattern, char *text, size_t *n);
/* The items of a list of globs, "a,b*", one by one; `\,` is part of one. `*list` is NULL behind the
 * last; an item may be empty. */
bool str_next_item(const char **list, Str *item);
bool str_same_letters(Str a, Str b); /* equal but for upper and lower case (ASCII) */
/* Edit distance (Damerau, adjacent swaps count one), at most `max`+1; words
 * over 128 bytes are never close. For did-you-mean. */
int str_distance(Str a, Str b, int max);

#endif
