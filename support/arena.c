#define _GNU_SOURCE
#include "support/store.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Under AddressSanitizer every allocation is followed by poisoned bytes, so that running off the
 * end of one is caught although its neighbours share a chunk. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(POISON)
#define POISON 1
#endif
#ifdef POISON
#include <sanitizer/asan_interface.h>
#define RED_ZONE ((size_t)16)
#define MAPPED   0 /* its search for leaks does not look into mappings */
#else
#define MAPPED                            1
#define RED_ZONE                          ((size_t)0)
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)0)
#endif

enum {
    ALIGN = 16,
    LARGE_ALIGN = 64,  /* tensors: whole cache lines and vector registers */
    LARGE = 16 * 1024, /* from here on an allocation gets a chunk of its own */
    FIRST_CHUNK = 16 * 1024,
    LAST_CHUNK = 8 * 1024 * 1024,
    PAGE = 64 * 1024, /* a multiple of any system's */
    HUGE_PAGE = 2 * 1024 * 1024
};

typedef struct Chunk {
    struct Chunk *next;
    char *free, *end;
    size_t mapped; /* bytes of its own mapping; 0: on the heap */
} Chunk;

struct Arena {
    Chunk *chunks; /* the first is the one small allocations come from */
    size_t used, limit;
    size_t next_chunk;
    OutOfMemory *handler;
    Arena *parent;       /* of scratch: what it uses counts there too */
    Arena *scratch;      /* the first child */
    Arena *next, **back; /* the parent's next one, and what points to this one */
    Store *store;
};

static _Noreturn void fail(Arena *a, size_t bytes, size_t limit) {
    if (!a->handler) {
        fprintf(stderr, "out of memory (%zu bytes requested)\n", bytes);
        abort();
    }
    a->handler->requested = bytes;
    a->handler->limit = limit;
    longjmp(a->handler->env, 1);
}

Arena *arena_new(size_t limit, OutOfMemory *handler) {
    Arena *a = calloc(1, sizeof *a);
    if (!a) {
        Arena none = {.handler = handler};
        fail(&none, sizeof *a, 0);
    }
    a->limit = limit;
    a->handler = handler;
    a->next_chunk = FIRST_CHUNK;
    return a;
}

Arena *arena_scratch(Arena *parent) {
    Arena *a = arena_new(0, parent->handler);
    a->parent = parent;
    a->next = parent->scratch;
    a->back = &parent->scratch;
    if (a->next)
        a->next->back = &a->next;
    parent->scratch = a;
    return a;
}

/* Scratch counts with its parents, whose limits are its own. */
static void count(Arena *a, size_t bytes) {
    for (; a; a = a->parent)
        a->used += bytes;
}

static void count_off(Arena *a, size_t bytes) {
    for (; a; a = a->parent)
        a->used -= bytes;
}

static void leave_parent(Arena *a) {
    *a->back = a->next;
    if (a->next)
        a->next->back = a->back;
    count_off(a->parent, a->used);
}

static char *align_up(char *p, size_t align) {
    return p + (-(uintptr_t)p & (align - 1));
}

static void chunk_free(Chunk *c) {
    if (c->mapped)
        munmap(c, c->mapped);
    else
        free(c);
}

void arena_free(Arena *a) {
    if (!a)
        return;
    while (a->scratch)
        arena_free(a->scratch);
    if (a->parent)
        leave_parent(a);
    store_close(a->store);
    for (Chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        chunk_free(c);
    }
    free(a);
}

void arena_clear(Arena *a) {
    assert(!a->scratch);
    Chunk *kept = a->chunks;
    if (!kept)
        return;
    for (Chunk *c = kept->next, *next; c; c = next) {
        next = c->next;
        chunk_free(c);
    }
    kept->next = NULL;
    char *from = align_up((char *)kept + sizeof *kept, ALIGN);
    ASAN_UNPOISON_MEMORY_REGION(from, (size_t)(kept->free - from));
    memset(from, 0, (size_t)(kept->free - from));
    ASAN_POISON_MEMORY_REGION(from, (size_t)(kept->free - from));
    kept->free = from;
    count_off(a, a->used);
}

bool arena_try(Arena *a, void (*work)(void *ctx), void *ctx) {
    if (!a->handler) {
        work(ctx);
        return true;
    }
    const OutOfMemory was = *a->handler;
    Arena *const oldest = a->scratch; /* of those that stay: new ones stand before it */
    if (setjmp(a->handler->env) == 0) {
        work(ctx);
        *a->handler = was;
        return true;
    }
    while (a->scratch != oldest)
        arena_free(a->scratch);
    *a->handler = was;
    return false;
}

OutOfMemory *arena_handler(const Arena *a) {
    return a->handler;
}

void arena_set_store(Arena *a, Store *s) {
    a->store = s;
}

Store *arena_store(const Arena *a) {
    return a->store;
}

size_t arena_used(const Arena *a) {
    return a->used;
}

/* The one that is said of an allocation that fails: the outermost arena's. */
static size_t limit_of(const Arena *a) {
    while (a->parent)
        a = a->parent;
    return a->limit;
}

size_t arena_left(const Arena *a) {
    size_t left = a->limit ? a->limit - a->used : SIZE_MAX;
    size_t above = a->parent ? arena_left(a->parent) : SIZE_MAX;
    return left < above ? left : above;
}

/* Large models touch new memory all the time: with huge pages that costs a fault every 2 MiB. Whole
 * ones they are only from a multiple of their size on. */
static void *map_aligned(size_t bytes) { /* a multiple of PAGE */
    char *all =
        mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    char *p = align_up(all, HUGE_PAGE), *end = p + bytes;
    if (p > all)
        munmap(all, (size_t)(p - all));
    if (end < all + bytes + HUGE_PAGE)
        munmap(end, (size_t)(all + bytes + HUGE_PAGE - end));
#ifdef MADV_HUGEPAGE
    madvise(p, (size_t)(end - p), MADV_HUGEPAGE);
#endif
    return p;
}

/* A chunk with room for `bytes` at an address that is a multiple of `align`. */
static Chunk *chunk_new(Arena *a, size_t bytes, size_t align) {
    size_t overhead = sizeof(Chunk) + align;
    size_t all = bytes > SIZE_MAX / 2 ? 0 : bytes + overhead;
    size_t mapped = MAPPED && all >= HUGE_PAGE ? (all + PAGE - 1) & ~(size_t)(PAGE - 1) : 0;
    Chunk *c = !all ? NULL : mapped ? map_aligned(mapped) : calloc(1, all);
    if (!c)
        fail(a, bytes, 0);
    c->mapped = mapped;
    c->free = align_up((char *)c + sizeof *c, align);
    c->end = c->free + bytes;
    ASAN_POISON_MEMORY_REGION(c->free, bytes);
    return c;
}

static void *chunk_take(Chunk *c, size_t bytes, size_t room) {
    char *p = c->free;
    c->free += room;
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
    (void)bytes;
    return p;
}

/* What an allocation takes of a chunk. */
static size_t room_of(size_t bytes) {
    return ((bytes ? bytes : 1) + RED_ZONE + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

void *arena_alloc(Arena *a, size_t bytes) {
    if (bytes > SIZE_MAX / 4)
        fail(a, bytes, limit_of(a));
    size_t room = room_of(bytes);
    if (room > arena_left(a))
        fail(a, bytes, limit_of(a));
    if (room >= LARGE) {
        Chunk *c = chunk_new(a, room, LARGE_ALIGN);
        /* Behind the current chunk, whose rest stays in use. */
        Chunk **link = a->chunks ? &a->chunks->next : &a->chunks;
        c->next = *link;
        *link = c;
        count(a, room);
        return chunk_take(c, bytes, room);
    }
    if (!a->chunks || room > (size_t)(a->chunks->end - a->chunks->free)) {
        Chunk *c = chunk_new(a, a->next_chunk, ALIGN);
        c->next = a->chunks;
        a->chunks = c;
        if (a->next_chunk < LAST_CHUNK)
            a->next_chunk *= 2;
    }
    count(a, room);
    return chunk_take(a->chunks, bytes, room);
}

void arena_release(Arena *a, const void *p, size_t bytes) {
    size_t room = room_of(bytes);
    Chunk **link = &a->chunks;
    while (room >= LARGE && *link && (*link)->end != (const char *)p + room)
        link = &(*link)->next;
    Chunk *c = *link;
    if (room < LARGE || !c)
        return;
    *link = c->next;
    chunk_free(c);
    count_off(a, room);
}

void *arena_array(Arena *a, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        fail(a, SIZE_MAX, limit_of(a));
    return arena_alloc(a, bytes);
}

void *arena_grow(Arena *a, const void *old, size_t old_bytes, size_t new_bytes) {
    void *p = arena_alloc(a, new_bytes);
    size_t n = old_bytes < new_bytes ? old_bytes : new_bytes;
    if (n)
        memcpy(p, old, n);
    return p;
}

void *arena_copy(Arena *a, const void *data, size_t bytes) {
    return arena_grow(a, data, bytes, bytes);
}

Str arena_str(Arena *a, Str s) {
    if (!s.s)
        return s;
    if (s.n == SIZE_MAX)
        fail(a, s.n, limit_of(a));
    return (Str){arena_grow(a, s.s, s.n, s.n + 1), s.n};
}

Str arena_strf(Arena *a, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        n = 0;
    char *p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return (Str){p, (size_t)n};
}

const char *arena_others(Arena *a, const char *before, size_t n, const char *behind) {
    return n ? arena_strf(a, "%s%zu other%s%s", before, n, plural((int64_t)n), behind).s : "";
}
