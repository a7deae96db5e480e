/* What the ways to map a file share. Private to support. */
#ifndef QXC_SUPPORT_FILE_MAP_H
#define QXC_SUPPORT_FILE_MAP_H

#include <sys/stat.h>

#include "support/file.h"

/* Maps the open file `fd`, which is `name` in the folder `dir`. NULL after a diagnostic; `fd` stays
 * the caller's. */
FileMap *file_map_open(int fd, const struct stat *st, const char *dir, Str name, Loc at, Diags *d);

#endif
