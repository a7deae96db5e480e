/* See compiler/metadata.h. */
#define _GNU_SOURCE
#include "compiler/metadata.h"

#include "backend/qir/qir_write.h"
#include "frontend/qir/qir_parts.h"

/* ---- out ---- */

/* An entry of the key alone: where another tool's entries came after ours, it keeps the place. */
static bool keeps_place(const StrPair *p, const char *key) {
    return str_is(p->key, key) && !p->value.s && !p->extra.n;
}

/* Where a place is kept for it, else behind all others. */
static void add(Arena *a, Meta *meta, const char *key, Str text) {
    StrPair *items = NEW_ARRAY(a, StrPair, meta->n + 1); /* lists may be shared */
    size_t at = 0;
    if (meta->n)
        memcpy(items, meta->items, meta->n * sizeof *items);
    while (at < meta->n && !keeps_place(&items[at], key))
        at++;
    items[at] = (StrPair){.key = str_from(key), .value = text};
    *meta = (Meta){items, meta->n + (at == meta->n)};
}

void metadata_set(Arena *a, Meta *meta, const char *key, Str text) {
    StrPair *items = NEW_ARRAY(a, StrPair, meta->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < meta->n; i++)
        if (!str_is(meta->items[i].key, key))
            items[n++] = meta->items[i];
    if (text.s)
        items[n++] = (StrPair){.key = str_from(key), .value = text};
    if (text.s || n < meta->n)
        *meta = (Meta){items, n};
}

static void put_stat(Value *v, void *ctx) {
    Module *m = ctx;
    Str stat = v->stat ? qir_stat_text(m, v->stat) : STR_NONE;
    if (stat.n)
        add(m->arena, &v->meta, META_STAT, stat);
}

static void put_from(Value *v, void *ctx) {
    Module *m = ctx;
    if (v->from.n)
        add(m->arena, &v->meta, META_FROM, qir_from_text(m, v->from));
}

static void put_nodes(Graph *g, void *ctx) {
    Module *m = ctx;
    FOR_NODES(n, g)
    if (n->from.n)
        add(m->arena, &n->meta, META_FROM, qir_from_text(m, n->from));
}

void metadata_put(Module *m, bool statistics) {
    if (statistics)
        module_each_value(m, put_stat, m);
    module_each_value(m, put_from, m);
    module_each_graph(m, put_nodes, m);
}

void metadata_put_external(Module *m, const char *name, const char *hash) {
    add(m->arena, &m->meta, META_EXTERNAL, arena_strf(m->arena, "%s sha256:%s", name, hash));
}

/* ---- in ---- */

typedef struct Take {
    Module *m;
    QirParts *parts;
} Take;

/* The last entry of that key, or NULL. One with more or less in it than we write is another's. */
static StrPair *find(const Meta *meta, const char *key) {
    StrPair *found = NULL;
    for (size_t i = 0; i < meta->n; i++) {
        if (keeps_place(&meta->items[i], key))
            return NULL;
        if (str_is(meta->items[i].key, key) && !meta->items[i].extra.n)
            found = &meta->items[i];
    }
    return found;
}

/* Entries are unread memory of this object alone. */
static void drop(Meta *meta, StrPair *entry) {
    if (entry == meta->items + meta->n - 1)
        meta->n--;
    else
        entry->value = STR_NONE;
}

static void warn(const Take *t, Loc at, const char *key, const char *what) {
    diag_warning(t->m->diags, at, "metadata \"%s\" is not %s as qxc writes it: kept as it is", key,
                 what);
}

static void take_stat(const Take *t, Value *v) {
    StrPair *entry = find(&v->meta, META_STAT);
    if (!entry)
        return;
    Stat *s = qir_part_stat(t->parts, entry->value);
    if (!s || !str_eq(qir_stat_text(t->m, s), entry->value)) {
        warn(t, v->loc, META_STAT, "a statistic");
        return;
    }
    v->stat = s;
    s->loc = v->loc;
    drop(&v->meta, entry);
}

static void take_from(const Take *t, Meta *meta, Provenance *to, Loc at) {
    StrPair *entry = find(meta, META_FROM);
    Provenance from;
    if (!entry)
        return;
    if (!qir_part_from(t->parts, entry->value, &from) ||
        !str_eq(qir_from_text(t->m, from), entry->value)) {
        warn(t, at, META_FROM, "provenance");
        return;
    }
    *to = from;
    drop(meta, entry);
}

static void take_value(Value *v, void *ctx) {
    if (v->meta.n) { /* the last first: neither is in the other's way */
        take_from(ctx, &v->meta, &v->from, v->loc);
        take_stat(ctx, v);
    }
}

static void take_nodes(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    if (n->meta.n)
        take_from(ctx, &n->meta, &n->from, n->loc);
}

static void take_external(const Take *t) {
    Module *m = t->m;
    StrPair *entry = find(&m->meta, META_EXTERNAL);
    if (!entry)
        return;
    if (memmem(entry->value.s, entry->value.n, " sha256:", 8))
        drop(&m->meta, entry);
    else
        warn(t, m->graph->loc, META_EXTERNAL, "the name and the hash of a file");
}

void metadata_take(Module *m) {
    Take t = {m, qir_parts_new(m->arena, path_dir(m->arena, m->path), false)};
    take_external(&t);
    module_each_value(m, take_value, &t);
    module_each_graph(m, take_nodes, &t);
}
