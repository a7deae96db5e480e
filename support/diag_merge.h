/* Warnings that differ in names and numbers alone: where they are many, the first is printed, and
 * then how many there are. What makes them one is the format they are made from, never their text.
 *
 * The first of a format is printed at once. Those behind it wait until something else is to be
 * printed: a few are then printed as they are, in the order in which they came, else one note
 * stands for them. */
#ifndef QXC_SUPPORT_DIAG_MERGE_H
#define QXC_SUPPORT_DIAG_MERGE_H

#include "support/diag_print.h"

typedef struct Merger Merger;

Merger *merger_new(Arena *a);

/* What becomes of a warning. */
typedef enum MergeFate {
    MERGE_ALONE, /* it is printed, as its format has no words of its own ("%s: %s"): what that makes
                    may be about anything */
    MERGE_FIRST, /* it is printed, and to be kept: merger_keep */
    MERGE_WAITS, /* it is to be handed over as it would be printed: merger_wait */
    MERGE_MANY,  /* it is counted; nobody has to make its text */
} MergeFate;
MergeFate merger_ask(Merger *m, const char *fmt);
void merger_keep(Merger *m, const char *fmt);
void merger_wait(Merger *m, const char *fmt, Str shown);
/* Whether some wait: a first one of its format then waits, too, so that all stay in order. */
bool merger_is_busy(const Merger *m);
void merger_wait_first(Merger *m, Str shown);
/* A note to the warning that was handed over last. */
void merger_add(Merger *m, Str shown);

/* What waits, one by one: text as it is to be printed, or a note (its text has the memory of the
 * merger). False where nothing is left. */
typedef struct MergeNext {
    Str shown; /* STR_NONE: the note */
    Message note;
} MergeNext;
bool merger_next(Merger *m, MergeNext *next);

#endif
