/* Names of the operators that there are, for messages about those that there are not: those with a
 * schema (ir/onnx_schema.h), those that texts of lib/ define, and functions of a library that have
 * been read, people's own among them. A library may be NULL. */
#ifndef QXC_PASSES_OPERATOR_NAMES_H
#define QXC_PASSES_OPERATOR_NAMES_H

#include "passes/library.h"

typedef struct OperatorNames {
    const Library *library;
    size_t schema, text, own; /* the next of each kind */
    const char *line;         /* within the text */
    Str domain;               /* of the name that came last */
} OperatorNames;

/* The next name, perhaps again; false at the end. `names` begins with what was not named as 0: a
 * DiagNext. */
bool operator_names_next(void *names, Str *name);
/* Whether some domain has an operator of that name. `*has` is `domain` where that does. */
bool operator_is_named(const Library *l, Str op, Str domain, Str *has);
/* A note with the name that was meant, where there is a guess: of any domain, as rules match. */
bool operator_did_you_mean(const Library *l, Diags *d, Loc at, Str op);
/* The same of a node's: a name of another domain is told with that. */
bool node_did_you_mean(const Library *l, Diags *d, const Node *n);

#endif
