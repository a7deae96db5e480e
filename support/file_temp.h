/* Temporary files in the folder of what they are to become. Whoever writes one holds a lock on it
 * (flock), which goes with the process: what nobody holds is left of a killed run. Private to
 * support. */
#ifndef QXC_SUPPORT_FILE_TEMP_H
#define QXC_SUPPORT_FILE_TEMP_H

#include "support/arena.h"

/* Creates one beside `target` and opens it for writing; *name is its path. Those that killed runs
 * left in that folder are removed first. -1 with errno set. */
int temp_create(Arena *a, const char *target, const char **name);
/* A second name of the file `target`, beside it: NULL with errno set. *lock keeps others from
 * removing it and is the caller's to close; -1 where there is none. */
const char *temp_link(Arena *a, const char *target, int *lock);
/* The name is no temporary file any more. */
void temp_forget(const char *name);
/* Removes it. */
void temp_remove(const char *name);

#endif
