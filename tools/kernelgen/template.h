/* A kernel template as it was read (format: kernels/kernel.h). Read once, never changed, never
 * freed. A malformed one ends the process with FILE:LINE: message. */
#ifndef KERNELGEN_TEMPLATE_H
#define KERNELGEN_TEMPLATE_H

#include "tools/kernelgen/text.h"

enum { MAX_LETTERS = 8, MAX_TYPES = 32, MAX_WORDS = 32 };

typedef struct {
    const char *id, *ctype, *min, *max;
    int bits; /* 0: a word that is no type */
} Type;

typedef struct { /* one template letter: listed types, or derived from other letters */
    char letter;
    const Type *list[MAX_TYPES];
    int n;
    char derived; /* 'a'cc, 'e'xpand, 'w'iden, 0 = listed */
    char from[MAX_LETTERS + 1];
} Letter;

typedef struct {
    int line;
    char *text;
} Line;

typedef struct {
    const char *path;
    char name[64];
    bool chunk, math;
    Line math_if;      /* its condition; text NULL: always */
    bool twin;         /* once more in double: `also f64` */
    bool wide;         /* compiled once more for wide vectors */
    const char *split; /* SPLIT_ROWS, ... of kernels/kernel.h */
    Line each;         /* `each ARG...`: the names; text NULL: none */
    Letter letters[MAX_LETTERS];
    int n_letters;
    Line skips[MAX_WORDS], uses[MAX_WORDS];
    char *use_if[MAX_WORDS]; /* condition of each use, or NULL */
    int n_skips, n_uses;
    Text params; /* comment and struct */
    int params_line;
    Line *body;
    int n_body;
} Template;

/* NULL if there is none of this name. */
const Type *find_type(const char *id);
/* The template in a file. */
const Template *read_template(const char *path);

#endif
