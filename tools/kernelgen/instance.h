/* The instances of the templates: one for each combination of types, as text. They stand in an
 * array that grows; find them by index while it does. Errors of a template end the process. */
#ifndef KERNELGEN_INSTANCE_H
#define KERNELGEN_INSTANCE_H

#include "tools/kernelgen/template.h"

typedef struct {
    const Template *t;
    const Type *bind[256]; /* letter -> type */
    char name[96];
    Text text;
    char *uses[MAX_WORDS]; /* names of chunks, direct */
    int n_uses;
} Instance;

typedef struct {
    Instance *list;
    int n;
} Instances;

/* Adds all instances of t. */
void instantiate(Instances *all, const Template *t);

/* All chunks `in` needs, each after those it needs itself; adds to the *n of them in `list`, which
 * has room for MAX_WORDS. */
void closure(const Instances *all, const Instance *in, const Instance **list, int *n);

/* ---- expand.c ---- */

/* True when every `X=s8,u8` or `X!=s8` in `text` holds. */
bool holds(const Instance *in, int line, const char *text);
/* s with its $X, $x, $NAME replaced. */
void substitute(const Instance *in, int line, const char *s, Text *out);
/* The lines of the template's body that are for this instance become its text. */
void expand_body(Instance *in);
/* `also f64`: the same text on double, float and its functions replaced. */
char *widened(const char *s);

#endif
