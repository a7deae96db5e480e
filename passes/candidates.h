/* Functions of the library that are recognised (passes/match.h), by the operator that the last node
 * of their chain may be.
 *
 * Most nodes with such an operator end no chain, and nearly all of these are told by what makes
 * their operands: so each candidate says what may, for a test that costs less than an attempt. */
#ifndef QXC_PASSES_CANDIDATES_H
#define QXC_PASSES_CANDIDATES_H

#include "passes/library.h"

/* What may make a value: a bit for each operator of the functions' bodies, one for a number. */
typedef uint64_t Makers;

typedef struct Operands { /* what may make the first two operands of a node */
    Makers of[2];
} Operands;

typedef struct Ending { /* of a chain: its last node, and the nodes that make operands of that */
    Operands last, before[2];
} Ending;

typedef struct Candidate {
    const Function *f;
    size_t size; /* the most nodes that it stands for */
    Ending *endings;
    size_t n, cap;
} Candidate;

typedef struct Candidates { /* of one last operator, the largest first */
    Candidate *items;
    size_t n, cap;
} Candidates;

typedef struct CandidateTable CandidateTable;

/* Of the functions with this name, or (STR_NONE) of all. */
CandidateTable *candidates_new(Arena *a, Library *l, Str only);
/* NULL where no chain ends with such a node. */
const Candidates *candidates_of(const CandidateTable *t, const Node *last);
/* A node that may end a chain, and what makes its operands: `before` as far as it was asked for. */
typedef struct LastNode {
    const Node *n;
    Ending has;
    bool known[2];
} LastNode;

LastNode candidates_node(const CandidateTable *t, const Node *n);
/* Whether the candidate's chain may end with it. */
bool candidate_may_end(const CandidateTable *t, const Candidate *c, LastNode *last);

#endif
