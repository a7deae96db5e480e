#include "support/map.h"

/* Entries stand in insertion order in one array; `slots` is an open-addressing index into it, at
 * most half full. A slot holds a part of the hash too, so that a key that is not there is seldom
 * looked for in memory far away. Nothing is ever removed. */
typedef struct Entry {
    Str key;
    void *value;
    uint64_t hash;
} Entry;

typedef struct Slot {
    uint32_t entry; /* its number + 1; 0: empty */
    uint32_t tag;   /* the hash's upper half */
} Slot;

struct Map {
    Arena *arena;
    Entry *entries;
    size_t n, cap;
    Slot *slots;
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
static Slot *slot_of(const Map *m, Str key, uint64_t hash) {
    uint32_t tag = (uint32_t)(hash >> 32);
    for (size_t i = (size_t)hash & m->mask;; i = (i + 1) & m->mask) {
        Slot *s = &m->slots[i];
        if (!s->entry || (s->tag == tag && str_eq(m->entries[s->entry - 1].key, key)))
            return s;
    }
}

static void rehash(Map *m) {
    size_t n = m->slots ? 2 * (m->mask + 1) : 16;
    m->slots = NEW_ARRAY(m->arena, Slot, n);
    m->mask = n - 1;
    for (size_t e = 0; e < m->n; e++) {
        uint64_t hash = m->entries[e].hash;
        size_t i = (size_t)hash & m->mask;
        while (m->slots[i].entry)
            i = (i + 1) & m->mask;
        m->slots[i] = (Slot){(uint32_t)e + 1, (uint32_t)(hash >> 32)};
    }
}

void *map_get(const Map *m, Str key) {
    if (!m->slots)
        return NULL;
    const Slot *s = slot_of(m, key, hash_of(m, key));
    return s->entry ? m->entries[s->entry - 1].value : NULL;
}

/* With `copies` the key is no longer the caller's to keep. */
static bool set(Map *m, Str key, void *value, bool copies) {
    if (!m->slots || 2 * m->n > m->mask)
        rehash(m);
    uint64_t hash = hash_of(m, key);
    Slot *s = slot_of(m, key, hash);
    if (s->entry) {
        m->entries[s->entry - 1].value = value;
        return false;
    }
    Entry e = {copies ? arena_str(m->arena, key) : key, value, hash};
    ARENA_PUSH(m->arena, m->entries, m->n, m->cap, e);
    *s = (Slot){(uint32_t)m->n, (uint32_t)(hash >> 32)};
    return true;
}

bool map_set(Map *m, Str key, void *value) {
    return set(m, key, value, false);
}

static Str address_key(const void *const *address) {
    return (Str){(const char *)address, sizeof *address};
}

void *map_get_at(const Map *m, const void *address) {
    return map_get(m, address_key(&address));
}

bool map_set_at(Map *m, const void *address, void *value) {
    return set(m, address_key(&address), value, true);
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

static Str key_of_item(const char *item) {
    Str key;
    memcpy(&key, item, sizeof key);
    return key;
}

/* Few are compared pairwise, many through a map. */
const void *key_before(Arena *a, Map **seen, const void *items, size_t size, size_t n, size_t i) {
    enum { FEW = 8 };
    const char *first = items, *item = first + i * size;
    Str key = key_of_item(item);
    if (n <= FEW) {
        for (size_t k = i; k-- > 0;)
            if (str_eq(key_of_item(first + k * size), key))
                return first + k * size;
        return NULL;
    }
    *seen = *seen ? *seen : map_new(a);
    const void *old = map_get(*seen, key);
    map_set(*seen, key, (void *)item);
    return old;
}
