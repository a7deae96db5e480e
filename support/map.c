#include "support/map.h"

/* Entries stand in insertion order in one array; `slots` is an open-addressing index into it
 * (0 = empty, else entry number + 1), at most half full. Nothing is ever removed. */
typedef struct Entry {
    Str key;
    void *value;
    uint64_t hash;
} Entry;

struct Map {
    Arena *arena;
    Entry *entries;
    size_t n, cap;
    uint32_t *slots;
    size_t mask; /* number of slots - 1; slots is NULL before the first key */
};

static uint64_t mix(uint64_t h) {
    h ^= h >> 32;
    h *= 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio */
    return h ^ h >> 29;
}

/* Keys come from untrusted files, so the hash depends on the map's address: nobody can prepare
 * names that collide. The order of entries does not depend on it. */
static uint64_t hash_of(const Map *m, Str key) {
    uint64_t h = mix((uintptr_t)m ^ key.n);
    size_t i = 0;
    for (uint64_t word; i + 8 <= key.n; i += 8) {
        memcpy(&word, key.s + i, 8);
        h = mix(h ^ word) + h;
    }
    uint64_t rest = 0;
    if (i < key.n)
        memcpy(&rest, key.s + i, key.n - i);
    return mix(mix(h ^ rest) + h);
}

Map *map_new(Arena *a) {
    Map *m = NEW(a, Map);
    m->arena = a;
    return m;
}

/* The slot of `key`, or the empty one where it belongs. */
static uint32_t *slot_of(const Map *m, Str key, uint64_t hash) {
    for (size_t i = (size_t)hash & m->mask;; i = (i + 1) & m->mask) {
        uint32_t e = m->slots[i];
        if (!e || (m->entries[e - 1].hash == hash && str_eq(m->entries[e - 1].key, key)))
            return &m->slots[i];
    }
}

static void rehash(Map *m) {
    size_t n = m->slots ? 2 * (m->mask + 1) : 16;
    m->slots = NEW_ARRAY(m->arena, uint32_t, n);
    m->mask = n - 1;
    for (size_t e = 0; e < m->n; e++) {
        size_t i = (size_t)m->entries[e].hash & m->mask;
        while (m->slots[i])
            i = (i + 1) & m->mask;
        m->slots[i] = (uint32_t)e + 1;
    }
}

void *map_get(const Map *m, Str key) {
    if (!m->slots)
        return NULL;
    uint32_t e = *slot_of(m, key, hash_of(m, key));
    return e ? m->entries[e - 1].value : NULL;
}

bool map_set(Map *m, Str key, void *value) {
    if (!m->slots || 2 * m->n > m->mask)
        rehash(m);
    uint64_t hash = hash_of(m, key);
    uint32_t *slot = slot_of(m, key, hash);
    if (*slot) {
        m->entries[*slot - 1].value = value;
        return false;
    }
    Entry e = {key, value, hash};
    ARENA_PUSH(m->arena, m->entries, m->n, m->cap, e);
    *slot = (uint32_t)m->n;
    return true;
}

size_t map_size(const Map *m) {
    return m->n;
}
Str map_key(const Map *m, size_t i) {
    return m->entries[i].key;
}
void *map_value(const Map *m, size_t i) {
    return m->entries[i].value;
}
