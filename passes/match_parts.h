/* Matching inside: the walk (match.c), and what it asks of attributes and numbers
 * (match_attrs.c). */
#ifndef QXC_PASSES_MATCH_PARTS_H
#define QXC_PASSES_MATCH_PARTS_H

#include "passes/match.h"

enum { MATCH_VALUES = 96 };

/* A body that is being matched: the function's own, or that of one which it calls. */
typedef struct Frame {
    const Function *f;
    const Node *call; /* in the body of `up`; NULL: the function itself */
    const struct Frame *up;
    int depth;
} Frame;

/* What is still to be shown: that `value` is what `pattern` stands for. */
typedef struct Goal {
    const Frame *frame;
    const Value *pattern;
    Value *value;
    const Node *reader; /* of the value; NULL: the chain ends with it */
    const struct Goal *next;
} Goal;

typedef struct Matcher {
    Library *library;
    const Uses *uses;
    Match *m;
    const Graph *graph;
    struct {
        const Frame *frame;
        const Value *pattern;
        Value *value;
    } bound[MATCH_VALUES];
    size_t n_bound;
    bool explain;
} Matcher;

/* Notes why `at` is no match, where that is asked for; false. */
bool match_miss(Matcher *x, const Node *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether the goal's value is the number that the Constant of its body is. */
bool match_constant(Matcher *x, const Goal *g);
/* Whether the node has the attributes of the goal's one. */
bool match_attrs(Matcher *x, const Goal *g, const Node *n);
/* The list that an operand in a body is; NULL: it is none. */
const Attr *match_list(const Frame *f, const Value *pattern);
/* Whether the node has these axes, as operand `i` or as an attribute. */
bool match_axes(Matcher *x, const Node *n, size_t i, const Attr *want);

#endif
