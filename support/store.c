#include "support/store.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/file_temp.h"
#include "support/platform.h"

enum {
    SMALL = 1 << 16,  /* what takes less than that stays in memory: models have few of these */
    WINDOW = 1 << 28, /* of the file, mapped at once: systems count mappings */
    PAGE = 1 << 16    /* a multiple of any system's */
};

typedef struct Window {
    char *p;
    size_t n;
} Window;

struct Store {
    Arena *arena;
    const char *dir;
    size_t budget; /* that is left */
    pid_t owner;   /* children have the same file */
    int fd;        /* -1: none yet */
    bool full;     /* nothing more goes to the disk */
    off_t size;    /* of the file, with what its windows have left */
    Window *windows;
    size_t n_windows, cap_windows;
    size_t left; /* of the last window */
    char *room;  /* that one constant after the other is made in, of malloc: it outlives a
                    try that runs out of the arena's memory */
    size_t room_size;
    bool in_use; /* between store_begin and store_end */
};

void store_open(Arena *a, const char *dir, size_t budget) {
    Store *s = NEW(a, Store);
    *s = (Store){.arena = a,
                 .dir = arena_str(a, str_from(dir)).s,
                 .budget = budget,
                 .owner = getpid(),
                 .fd = -1};
    arena_set_store(a, s);
}

void store_close(Store *s) {
    for (size_t i = 0; s && i < s->n_windows; i++)
        munmap(s->windows[i].p, s->windows[i].n);
    if (s && s->fd >= 0)
        close(s->fd);
    if (s)
        free(s->room);
}

/* A window of the file that begins at its end. */
static bool add_window(Store *s, size_t n) {
    Window w = {.n = n < WINDOW ? WINDOW : (n + PAGE - 1) & ~(size_t)(PAGE - 1)};
    w.p = mmap(NULL, w.n, PROT_READ, MAP_SHARED, s->fd, s->size);
    if (w.p == MAP_FAILED)
        return false;
    ARENA_PUSH(s->arena, s->windows, s->n_windows, s->cap_windows, w);
    s->size += (off_t)w.n;
    s->left = w.n;
    return true;
}

/* Room for n bytes at *at of the file, and where they will be read. NULL where that cannot be had.
 */
static char *take(Store *s, size_t n, off_t *at) {
    size_t room = (n + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (s->fd < 0 && (s->fd = temp_unnamed(s->dir)) < 0)
        return NULL;
    if (room > s->left && !add_window(s, room))
        return NULL;
    const Window *w = &s->windows[s->n_windows - 1];
    *at = s->size - (off_t)s->left;
    char *p = w->p + w->n - s->left;
    s->left -= room;
    return p;
}

static bool write_all(int fd, const char *p, size_t n, off_t at) {
    while (n) {
        ssize_t k = pwrite(fd, p, n, at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        p += k;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

bool store_is_out(const Arena *a, size_t n) {
    const Store *s = arena_store(a);
    return s && !s->full && !s->in_use && n >= SMALL && n > s->budget && s->owner == getpid();
}

/* NULL where there is no memory for it. */
static char *room_of(Store *s, size_t n) {
    if (n <= s->room_size)
        return memset(s->room, 0, n);
    free(s->room);
    s->room = calloc(n, 1);
    s->room_size = s->room ? n : 0;
    return s->room;
}

void *store_room(Arena *a, size_t n) {
    Store *s = arena_store(a);
    char *room = s && !s->in_use ? room_of(s, n) : NULL;
    return room ? room : arena_alloc(a, n);
}

void *store_begin(Arena *a, size_t n) {
    Store *s = arena_store(a);
    if (!store_is_out(a, n)) {
        if (s && n >= SMALL)
            s->budget -= n < s->budget ? n : s->budget;
        return arena_alloc(a, n);
    }
    char *room = room_of(s, n);
    s->in_use = room != NULL;
    return room ? room : arena_alloc(a, n);
}

const void *store_end(Arena *a, void *p, size_t n) {
    Store *s = arena_store(a);
    off_t at;
    if (!s || !s->in_use || p != s->room)
        return p;
    s->in_use = false;
    const char *kept = take(s, n, &at);
    /* Some file systems find out only when they bring pages to the disk that it is full: what was
     * there is lost then, and a read of it ends the program. */
    if (kept && file_reserve(s->fd, at, (off_t)n) && write_all(s->fd, p, n, at))
        return kept;
    s->full = true;
    return arena_copy(a, p, n);
}

const void *store_copy(Arena *a, const void *p, size_t n) {
    void *to = store_begin(a, n);
    if (n)
        memcpy(to, p, n);
    return store_end(a, to, n);
}

void store_release(const Arena *a, const void *p, size_t n) {
    const Store *s = arena_store(a);
    uintptr_t at = (uintptr_t)p;
    for (size_t i = 0; s && i < s->n_windows; i++) {
        uintptr_t begin = (uintptr_t)s->windows[i].p, end = begin + s->windows[i].n;
        if (at < begin || at >= end)
            continue;
        uintptr_t from = at & ~(uintptr_t)(PAGE - 1),
                  to = (at + n + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
        madvise((void *)from, (to < end ? to : end) - from, MADV_DONTNEED); /* a hint */
    }
}

void store_release_all(const Arena *a) {
    const Store *s = arena_store(a);
    for (size_t i = 0; s && i < s->n_windows; i++)
        madvise(s->windows[i].p, s->windows[i].n, MADV_DONTNEED);
}
