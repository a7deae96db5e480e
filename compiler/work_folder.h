/* Folders for a while: in $TMPDIR, or /tmp. Each is locked as long as this process or a child of it
 * lives; what nobody holds is left of a killed run and goes when the next one begins. */
#ifndef QXC_COMPILER_WORK_FOLDER_H
#define QXC_COMPILER_WORK_FOLDER_H

#include "support/diag.h"

/* Makes one and gives its path, in the arena; NULL after a diagnostic. `lock` becomes the
 * descriptor that holds it, which the caller closes or leaves to the end of the process; -1 where
 * there are no locks. */
const char *work_folder(Arena *a, int *lock, Diags *d);
/* An empty folder at `path`, whatever was there; false after a diagnostic. */
bool fresh_folder(const char *path, Diags *d);
/* Removes it with all that is in it; links are not followed. */
void remove_folder(const char *path);

#endif
