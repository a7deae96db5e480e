/* Strings that grow, errors and files for kernelgen. Whoever holds a Text owns it; nothing is ever
 * freed. What fails ends the process: this is a short-lived tool. */
#ifndef KERNELGEN_TEXT_H
#define KERNELGEN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char *p; /* NULL while empty */
    size_t n, cap;
} Text;

void put(Text *t, const char *s, size_t n);
void puts_to(Text *t, const char *s);
__attribute__((format(printf, 2, 3))) void print(Text *t, const char *fmt, ...);
/* As a C string literal, one line of it for each line of s. */
void print_string(Text *t, const char *s);

char *copy(const char *s, size_t n);
bool starts(const char *s, const char *prefix);
bool ends(const char *s, size_t n, const char *tail);
/* How many bytes at s are a word of C: a name, or a number with its point. */
size_t word_length(const char *s);

/* FILE:LINE: error: message, exit status 1. */
__attribute__((format(printf, 3, 4))) _Noreturn void fail(const char *path, int line,
                                                          const char *fmt, ...);
/* p, of an allocation that succeeded. */
void *check(void *p);

/* The lines of a file without their ends. */
char **read_lines(const char *path, int *n);
/* DIR/NAME.EXT becomes `t`; left untouched where it holds that already, so that make sees no
 * change. */
void write_file(const char *dir, const char *name, const char *ext, const Text *t);

#endif
