/* What the files of -search share. */
#ifndef QXC_COMPILER_SEARCH_PARTS_H
#define QXC_COMPILER_SEARCH_PARTS_H

#include "compiler/search_try.h"

typedef enum Group {
#define GROUP(id) GROUP_##id,
#include "compiler/search.def"
    N_GROUPS
} Group;

typedef struct Row {
    Group group;
    const char *options;
    size_t wide;
    double least;
} Row;

enum {
    N_ROWS = 0
#define TRY(...) +1
#include "compiler/search.def"
    ,
    NO_ROW = N_ROWS
};

/* By group: the row that is chosen, or NO_ROW. */
typedef struct Choices {
    size_t of[N_GROUPS];
} Choices;

typedef struct Tried {
    Choices choices;
    Try made;
    bool taken;
    bool narrow; /* better on samples held back, worse on those that set the ranges */
} Tried;

typedef struct Search {
    Session *s;
    Job *j;
    Tried *tries;
    size_t n, cap;
    size_t best; /* of them */
    size_t most; /* tries; 0: as many as there are */
    TryLimits limits;
    bool cut; /* more would have been tried */
    const SearchName *wide;
    size_t n_wide;
    bool given_up[N_ROWS]; /* rows that are not tried a second time */
} Search;

extern const Row search_rows[N_ROWS];

/* What was tried, what is best, and how to have it without a search. */
void search_tell(const Search *x);
/* The rules of -scheme, with those of `found`, the options that were taken, for -search-scheme.
 * False after a diagnostic. */
bool search_write_scheme(const Search *x, const Options *found);

#endif
