/* What the system tells of time, memory and terminals, and C does not. Elsewhere each function has
 * an answer that costs no more than comfort. */
#ifndef QXC_SUPPORT_PLATFORM_H
#define QXC_SUPPORT_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Seconds from some start on, which nobody sets back. */
double clock_seconds(void);
/* The most memory that this process has had so far, in bytes; 0 where the system does not say. */
size_t memory_peak(void);
bool stream_is_terminal(FILE *f);
/* How many columns that terminal has; 80 where it does not say. */
int stream_columns(FILE *f);

#endif
