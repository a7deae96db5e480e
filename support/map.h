/* Hash map from byte strings to pointers, in insertion order. Lives in an arena; keys borrowed. */
#ifndef QXC_SUPPORT_MAP_H
#define QXC_SUPPORT_MAP_H

#include "support/arena.h"

typedef struct Map Map;

Map *map_new(Arena *a);
/* The value of `key`, or NULL. */
void *map_get(const Map *m, Str key);
/* Sets the value; true when the key is new. */
bool map_set(Map *m, Str key, void *value);
/* The same by address; the map keeps what it needs of the key. */
void *map_get_at(const Map *m, const void *address);
bool map_set_at(Map *m, const void *address, void *value);
size_t map_size(const Map *m);
/* The i-th entry in insertion order. */
Str map_key(const Map *m, size_t i);
void *map_value(const Map *m, size_t i);

/* Of n items of `size` bytes, which begin with their key, a Str: the last before item i with the
 * same key, or NULL. To be asked of each i in order; `*seen` is NULL at first. */
const void *key_before(Arena *a, Map **seen, const void *items, size_t size, size_t n, size_t i);

#endif
