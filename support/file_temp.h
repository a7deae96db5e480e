/* Temporary files in the folder of what they are to become. Whoever writes one holds a lock on it
 * (flock), which goes with the process: what nobody holds is left of a killed run. Nothing here
 * takes memory of an arena, so that none can run out halfway. Private to support. */
#ifndef QXC_SUPPORT_FILE_TEMP_H
#define QXC_SUPPORT_FILE_TEMP_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes that a name beside `target` takes. */
size_t temp_room(const char *target);
/* Creates one beside `target`, in the folder `dir`, and opens it for writing. Its path goes to
 * `name`, which has temp_room and stays until temp_forget or temp_remove. Those that killed runs
 * left in that folder are removed first. -1 with errno set. */
int temp_create(const char *dir, const char *target, char *name);
/* One in the folder `dir` that has no name and goes with its descriptor; -1 with errno set. */
int temp_unnamed(const char *dir);
/* A second name of the file `target`, beside it: false with errno set. *lock keeps others from
 * removing it and is the caller's to close; -1 where there is none. */
bool temp_link(const char *target, char *name, int *lock);
/* The name is no temporary file any more. */
void temp_forget(const char *name);
/* Removes it. */
void temp_remove(const char *name);

#endif
