/* See text.h. */
#include "tools/kernelgen/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *path, int line, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s:%d: error: ", path, line);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

void *check(void *p) {
    if (!p) {
        fputs("kernelgen: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

void put(Text *t, const char *s, size_t n) {
    if (t->n + n + 1 > t->cap) {
        t->cap = 2 * (t->n + n + 1);
        t->p = check(realloc(t->p, t->cap));
    }
    memcpy(t->p + t->n, s, n);
    t->n += n;
    t->p[t->n] = 0;
}

void puts_to(Text *t, const char *s) {
    put(t, s, strlen(s));
}

void print(Text *t, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    size_t n = (size_t)vsnprintf(NULL, 0, fmt, ap);
    char *s = check(malloc(n + 1));
    vsnprintf(s, n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    put(t, s, n);
    free(s);
}

void print_string(Text *t, const char *s) {
    puts_to(t, "    \"");
    for (; *s; s++) {
        if (*s == '\n')
            puts_to(t, s[1] ? "\\n\"\n    \"" : "\\n");
        else if (*s == '"' || *s == '\\')
            print(t, "\\%c", *s);
        else
            put(t, s, 1);
    }
    puts_to(t, "\"");
}

char *copy(const char *s, size_t n) {
    char *p = check(calloc(n + 1, 1));
    return memcpy(p, s, n);
}

bool starts(const char *s, const char *prefix) {
    return !strncmp(s, prefix, strlen(prefix));
}

bool ends(const char *s, size_t n, const char *tail) {
    size_t m = strlen(tail);
    return n >= m && !strncmp(s + n - m, tail, m);
}

size_t word_length(const char *s) {
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_' ||
           (s[n] == '.' && isdigit((unsigned char)*s)))
        n++;
    return n;
}

char **read_lines(const char *path, int *n) {
    FILE *f = fopen(path, "r");
    if (!f)
        fail(path, 1, "cannot read");
    char **lines = NULL, *line = NULL;
    size_t cap = 0;
    *n = 0;
    for (ssize_t len; (len = getline(&line, &cap, f)) >= 0;) {
        while (len > 0 && strchr("\r\n", line[len - 1]))
            len--;
        lines = check(realloc(lines, (size_t)(*n + 1) * sizeof *lines));
        lines[(*n)++] = copy(line, (size_t)len);
    }
    fclose(f);
    return lines;
}

static bool holds_already(const char *path, const Text *t) {
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    char *old = check(malloc(t->n + 1));
    bool same = fread(old, 1, t->n + 1, f) == t->n && !memcmp(old, t->p, t->n);
    fclose(f);
    free(old);
    return same;
}

void write_file(const char *dir, const char *name, const char *ext, const Text *t) {
    Text path = {0};
    print(&path, "%s/%s.%s", dir, name, ext);
    if (holds_already(path.p, t))
        return;
    FILE *f = fopen(path.p, "w");
    bool whole = f && fwrite(t->p, 1, t->n, f) == t->n;
    if (!f || fclose(f) || !whole)
        fail(path.p, 1, "cannot write");
}
