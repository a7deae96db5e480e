/* One line on a terminal that says how far a long run is: "calibration: sample 12 of 200, 0:31
 * left". It appears where nothing was printed for two seconds, changes in place, and is taken away
 * before anything else is printed and at the end. Whoever works in steps begins a level and counts;
 * levels within levels are shown behind each other. All functions take NULL, which shows nothing.
 */
#ifndef QXC_SUPPORT_PROGRESS_H
#define QXC_SUPPORT_PROGRESS_H

#include <stdio.h>

#include "support/arena.h"

typedef struct Progress Progress;

/* Lines are shorter than `columns`. `clock` gives seconds. */
Progress *progress_new(Arena *a, FILE *out, int columns, double (*clock)(void));

/* A level of `total` steps, 0: nobody knows how many. `what` is one step, or what is done where
 * none are counted, and stays the caller's. One of the same name within itself is no other. */
size_t progress_begin(Progress *p, const char *what, size_t total);
/* So many steps of it are done. */
void progress_step(Progress *p, size_t level, size_t done);
/* It has ended, and all within. */
void progress_end(Progress *p, size_t level);
/* Takes the line away, as something else is printed. */
void progress_clear(Progress *p);

#endif
