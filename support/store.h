/* Large constants that are made once and only read from then on. A large model has more of them
 * than memory holds, so beyond a budget they lie in a file without a name, of which memory has the
 * part that is being read. Who makes one does not see which it is:
 *
 *     uint8_t *p = store_begin(a, n);
 *     ... writes to p ...
 *     const uint8_t *kept = store_end(a, p, n);
 */
#ifndef QXC_SUPPORT_STORE_H
#define QXC_SUPPORT_STORE_H

#include "support/arena.h"

typedef struct Store Store;

/* Gives the arena a store, with which it dies: what store_begin gives of it beyond `budget` bytes
 * lies in a file in the folder `dir`, which is made when it is needed. An arena without one keeps
 * everything in memory, as its scratch does, and so does a child of this process. */
void store_open(Arena *a, const char *dir, size_t budget);

/* n bytes of zeros, to be filled and handed to store_end with the same n before the next one. */
void *store_begin(Arena *a, size_t n);
/* Where they are from now on, for as long as the arena: not to be written to any more. Where the
 * disk has no room they lie in memory. */
const void *store_end(Arena *a, void *p, size_t n);
/* Whether n bytes more would lie in the file. */
bool store_is_out(const Arena *a, size_t n);
/* n bytes of zeros for what does, to be read at once: the next store_begin or store_room takes them
 * again. */
void *store_room(Arena *a, size_t n);
/* A copy of bytes. */
const void *store_copy(Arena *a, const void *p, size_t n);
/* Pages that hold `bytes`, a part of what lies in the file, may leave memory until they are read
 * again. Nothing happens to others. */
void store_release(const Arena *a, const void *p, size_t n);
/* The same of all that lies there. */
void store_release_all(const Arena *a);

/* For arena_free. */
void store_close(Store *s);

#endif
