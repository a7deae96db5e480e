/* Region allocator: everything that belongs to one module lives in one arena and dies with it.
 * Nothing has to be freed singly. Memory is zeroed. An arena never returns NULL: when the system or
 * the arena's own limit (-max-memory) refuses, it jumps to the handler given at creation, which
 * reports the failure and destroys the arena. Without a handler it aborts (unit tests only). */
#ifndef QXC_SUPPORT_ARENA_H
#define QXC_SUPPORT_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/str.h"

typedef struct Arena Arena;

typedef struct OutOfMemory {
    jmp_buf env;      /* set by the owner with setjmp */
    size_t requested; /* bytes that could not be had, for the message */
    size_t limit;     /* the limit that was hit, 0 when the system refused */
    /* What was going on, for the message; borrowed, NULL where nobody noted it: the input, the pass
     * that runs on it, and while a text is read that text and how far it was. */
    const char *input, *pass, *text;
    const char *const *at;
    const char *largest; /* "'y', float[1,64,512,512], of node ...": what takes the most */
} OutOfMemory;

/* `limit` in bytes, 0 for none. `handler` is borrowed and may be NULL. */
Arena *arena_new(size_t limit, OutOfMemory *handler);
void arena_free(Arena *a); /* NULL is fine */
/* An arena for what is needed only for a while: what it uses counts against the limit of `parent`,
 * with which it dies unless arena_free gives it back before. */
Arena *arena_scratch(Arena *parent);
/* Everything in it is gone, but its memory is there for the next; it has no scratch of its own. */
void arena_clear(Arena *a);
/* Calls `work`. False where memory did not last: what had to come behind the allocation that failed
 * was not done, scratch of `a` that was made meanwhile is gone, and what `a` itself gave stays. */
bool arena_try(Arena *a, void (*work)(void *ctx), void *ctx);
size_t arena_used(const Arena *a);
OutOfMemory *arena_handler(const Arena *a); /* or NULL */
size_t arena_left(const Arena *a);          /* until the limit; SIZE_MAX where there is none */

/* Where large constants lie (support/store.h), or NULL; it dies with the arena. */
struct Store;
void arena_set_store(Arena *a, struct Store *s);
struct Store *arena_store(const Arena *a);

void *arena_alloc(Arena *a, size_t bytes);
/* `count * size` checked for overflow; treated as out of memory when it does. */
void *arena_array(Arena *a, size_t count, size_t size);
/* Gives back what an allocation of so many bytes got, of which nobody knows any more. Small ones,
 * which share their memory with others, stay until the arena goes. */
void arena_release(Arena *a, const void *p, size_t bytes);
/* A larger copy of an array; the old one stays valid. */
void *arena_grow(Arena *a, const void *old, size_t old_bytes, size_t new_bytes);
void *arena_copy(Arena *a, const void *data, size_t bytes);
Str arena_str(Arena *a, Str s); /* a copy, NUL-terminated */
Str arena_strf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "N others" between two texts, behind the name of the first; "" where there are none. */
const char *arena_others(Arena *a, const char *before, size_t n, const char *behind);

#define NEW(a, T)          ((T *)arena_alloc((a), sizeof(T)))
#define NEW_ARRAY(a, T, n) ((T *)arena_array((a), (n), sizeof(T)))

/* Appends to a growing array `items` with `n` entries and capacity `cap` (amortised doubling). */
#define ARENA_PUSH(a, items, n, cap, item)                                                         \
    do {                                                                                           \
        if ((n) == (cap)) {                                                                        \
            size_t cap_ = (cap) ? 2 * (size_t)(cap) : 8;                                           \
            (items) = arena_grow((a), (items), (n) * sizeof *(items), cap_ * sizeof *(items));     \
            (cap) = cap_;                                                                          \
        }                                                                                          \
        (items)[(n)++] = (item);                                                                   \
    } while (0)

#endif
