/* The command line for shells and man: see completion.c. */
#ifndef QXC_COMPILER_COMPLETION_H
#define QXC_COMPILER_COMPLETION_H

#include "support/arena.h"

/* Prints the page of man, bash, zsh or fish to stdout. False, and nothing is printed, where `topic`
 * is none of these. */
bool completion_print(Arena *a, const char *topic);

#endif
