/* -search: the options that suit a model best, found by trying.
 *
 * A candidate is the default with one choice of each group of search.def, or none. Each is made of
 * two thirds of the calibration data and judged on the rest (SAMPLES_HELD_BACK) by the SQNR of the
 * worst output. The search is greedy: group by group all choices are tried beside what was taken
 * before, and the best is taken where it wins enough, and loses nothing on the samples that it was
 * made of. That goes on in rounds until one takes
 * nothing. What the command line says stays as it is.
 *
 * Each try is a process of its own, and as many run at once as there are processors. Which are
 * made, and what is taken, depends on their results alone: a limit in seconds cuts the list short,
 * as a limit in tries does. */
#ifndef QXC_COMPILER_SEARCH_H
#define QXC_COMPILER_SEARCH_H

#include "compiler/session.h"

/* Adds what was found to the options and rules of the job, which is made anew from them, and prints
 * what was tried. */
ExitCode search_decide(Session *s, Job *j);

#endif
