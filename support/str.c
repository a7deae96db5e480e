#include "support/str.h"

#include <strings.h>

int str_cmp(Str a, Str b) {
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.s, b.s, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

const char *plural(int64_t n) {
    return n == 1 ? "" : "s";
}

bool str_starts(Str a, const char *prefix) {
    size_t n = strlen(prefix);
    return a.n >= n && (n == 0 || memcmp(a.s, prefix, n) == 0);
}

bool str_ends(Str a, const char *suffix) {
    size_t n = strlen(suffix);
    return a.n >= n && (n == 0 || memcmp(a.s + a.n - n, suffix, n) == 0);
}

static bool is_escape(const char *p) {
    return p[0] == '\\' && p[1] && strchr("*?,\\", p[1]);
}

/* On a mismatch only the last `*` needs to take one more byte: an earlier one taking more could
 * not make anything match that this one cannot. */
bool str_glob(const char *pattern, Str text) {
    const char *p = pattern, *star = NULL;
    size_t i = 0, star_i = 0;
    while (i < text.n) {
        const char *byte = p + is_escape(p);
        if (*p == '*') {
            star = p++;
            star_i = i;
        } else if (*p && (*p == '?' || *byte == text.s[i])) {
            p = byte + 1;
            i++;
        } else if (star) {
            p = star + 1;
            i = ++star_i;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return *p == 0;
}

bool str_glob_is_text(const char *pattern, char *text, size_t *n) {
    *n = 0;
    for (const char *p = pattern; *p; p++) {
        if (*p == '*' || *p == '?')
            return false;
        p += is_escape(p);
        text[(*n)++] = *p;
    }
    return true;
}

bool str_next_item(const char **list, Str *item) {
    const char *begin = *list, *end = begin;
    if (!begin)
        return false;
    while (*end && *end != ',')
        end += 1 + is_escape(end);
    *item = (Str){begin, (size_t)(end - begin)};
    *list = *end ? end + 1 : NULL;
    return true;
}

bool str_same_letters(Str a, Str b) {
    return a.n == b.n && strncasecmp(a.s ? a.s : "", b.s ? b.s : "", a.n) == 0;
}

static int min2(int a, int b) {
    return a < b ? a : b;
}

int str_distance(Str a, Str b, int max) {
    enum { LONGEST = 128 }; /* nobody mistypes longer words; keeps the rows on the stack */
    size_t gap = a.n < b.n ? b.n - a.n : a.n - b.n;
    if (a.n > LONGEST || b.n > LONGEST || gap > (size_t)max)
        return max + 1;
    int rows[3][LONGEST + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b.n; j++)
        above[j] = (int)j;
    for (size_t i = 1; i <= a.n; i++) {
        row[0] = (int)i;
        for (size_t j = 1; j <= b.n; j++) {
            bool same = a.s[i - 1] == b.s[j - 1];
            row[j] = min2(above[j - 1] + !same, min2(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.s[i - 1] == b.s[j - 2] && a.s[i - 2] == b.s[j - 1])
                row[j] = min2(row[j], before[j - 2] + 1);
        }
        int *old = before;
        before = above;
        above = row;
        row = old;
    }
    return min2(above[b.n], max + 1);
}
