/* Whether the nodes that make a value compute what a function of the library does.
 *
 * The function's body is interpreted as it stands: from its result backwards each node is looked
 * for, its operands in any order where the operator commutes (OpDef.commutes), numbers up to
 * rounding, axes from either end, as an operand or as the attribute of the same name. A call of
 * another function in it stands for any of that one's overloads. Operands of the function are
 * whatever stands there, the same for the same; attributes that it refers to are what the nodes
 * have. Types that it states of values are conditions on their rank and known dimensions. Values
 * between are read by nothing but the match. */
#ifndef QXC_PASSES_MATCH_H
#define QXC_PASSES_MATCH_H

#include "passes/library.h"

enum { MATCH_NODES = 48, MATCH_ATTRS = 8, MATCH_DEPTH = 8 /* of calls within calls */ };

typedef struct Match {
    const Function *f;
    Value *in[MATCH_NODES];  /* for each operand of the function, or NULL */
    Attr attrs[MATCH_ATTRS]; /* of the function, as found */
    size_t n_attrs;
    Node *nodes[MATCH_NODES]; /* the last of the chain first */
    size_t n_nodes;
    /* Where the furthest of the attempts that failed ended, and why: for -explain-match. */
    const Node *stopped;
    const char *why;
    size_t reached; /* nodes that fitted before */
} Match;

/* `uses` may be older than the module by matches that were replaced. False where there is none; of
 * `out` then only the last three are set. */
bool match_function(Library *l, const Uses *uses, const Function *f, Value *result, bool explain,
                    Match *out);
/* What a node of a body stands for, where it calls a function that is no operator; else NULL. */
const Overloads *match_overloads(Library *l, const Node *n);
/* The most nodes that the function may stand for. */
size_t match_size(Library *l, const Function *f);

#endif
