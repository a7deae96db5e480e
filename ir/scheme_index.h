/* Which rules of a scheme may be about a name. A rule whose pattern has no wildcard is found by the
 * name that it is; the others are in one list, and whoever asks tries them all. */
#ifndef QXC_IR_SCHEME_INDEX_H
#define QXC_IR_SCHEME_INDEX_H

#include "ir/scheme.h"
#include "support/map.h"

/* Numbers of rules, in rising order; one may stand there twice. */
typedef struct RuleNumbers {
    size_t *at;
    size_t n, cap;
} RuleNumbers;

typedef struct SchemeIndex {
    Arena *arena;
    size_t n;         /* how many rules are in it: a copy of the scheme may have fewer */
    bool of_readers;  /* some rule has `in` */
    Map *named;       /* name to RuleNumbers */
    RuleNumbers open; /* with a wildcard, and those of all nodes */
    RuleNumbers met;  /* room for whoever walks over rules (passes/quantize/rules.h) */
} SchemeIndex;

/* Enters the last rule of `s`, or all, where the index of `s` is another's. */
void scheme_index_last(Scheme *s, Arena *a);
void rule_numbers_add(RuleNumbers *r, Arena *a, size_t number);

#endif
