/* Candidates of -search, each made and measured by a process of its own. */
#ifndef QXC_COMPILER_SEARCH_TRY_H
#define QXC_COMPILER_SEARCH_TRY_H

#include "compiler/session.h"

enum {
    SEARCH_WIDE_MOST = 4,   /* values that get 16 bits */
    SEARCH_NAME_MOST = 256, /* bytes of the name of such a value */
    SEARCH_WHY_MOST = 512,
};

typedef char SearchName[SEARCH_NAME_MOST];

/* What a process finds out: of fixed size, as memory is shared with it. */
typedef struct TryResult {
    bool measured;
    double sqnr;   /* dB, of the worst output on the samples that are held back */
    double fitted; /* the same on the samples that it was made of */
    double metric; /* -metric of them; 0 without */
    size_t samples;
    SearchName lossy[SEARCH_WIDE_MOST]; /* values that 8 bits are too few for, worst first */
    size_t n_lossy;
    char why[SEARCH_WHY_MOST]; /* not measured */
} TryResult;

typedef struct Try {
    Options o;
    const SearchName *wide; /* values that get 16 bits */
    size_t n_wide;
    bool done;
    TryResult result;
} Try;

typedef struct TryLimits {
    double end; /* by clock_seconds; 0: none */
    bool over;  /* it was reached */
    bool interrupted;
} TryLimits;

/* Makes and measures candidates, several at once; those that are `done` are the first ones. False
 * after a diagnostic: the system has no process or memory for them. */
bool tries_run(Session *s, Try *tries, size_t n, TryLimits *limits);
/* Rules that give these values 16 bits. */
void search_widen(Scheme *to, Arena *a, const SearchName *names, size_t n);

#endif
