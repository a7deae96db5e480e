/* See compiler/metadata.h. */
#include "compiler/metadata.h"

#include "backend/qir/qir_write.h"
#include "frontend/qir/qir_parts.h"

/* ---- out ---- */

static void add(Arena *a, Meta *meta, const char *key, Str text) {
    StrPair *items = NEW_ARRAY(a, StrPair, meta->n + 1); /* lists may be shared */
    if (meta->n)
        memcpy(items, meta->items, meta->n * sizeof *items);
    items[meta->n] = (StrPair){.key = str_from(key), .value = text};
    *meta = (Meta){items, meta->n + 1};
}

static void put_value(Value *v, void *ctx) {
    Module *m = ctx;
    Str stat = v->stat ? qir_stat_text(m, v->stat) : STR_NONE;
    if (stat.n)
        add(m->arena, &v->meta, META_STAT, stat);
    if (v->from.n)
        add(m->arena, &v->meta, META_FROM, qir_from_text(m, v->from));
}

static void put_nodes(Graph *g, void *ctx) {
    Module *m = ctx;
    FOR_NODES(n, g)
    if (n->from.n)
        add(m->arena, &n->meta, META_FROM, qir_from_text(m, n->from));
}

void metadata_put(Module *m) {
    module_each_value(m, put_value, m);
    module_each_graph(m, put_nodes, m);
}

/* ---- in ---- */

typedef struct Take {
    Module *m;
    QirParts *parts;
} Take;

/* The last entry of that key, or NULL. One with more in it than we write is another's. */
static StrPair *find(const Meta *meta, const char *key) {
    for (size_t i = meta->n; i > 0; i--)
        if (str_is(meta->items[i - 1].key, key) && !meta->items[i - 1].extra.n)
            return &meta->items[i - 1];
    return NULL;
}

/* Entries are unread memory of this object alone. */
static void drop(Meta *meta, StrPair *entry) {
    size_t after = (size_t)(meta->items + meta->n - entry) - 1;
    memmove(entry, entry + 1, after * sizeof *entry);
    meta->n--;
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
    if (v->meta.n) {
        take_stat(ctx, v);
        take_from(ctx, &v->meta, &v->from, v->loc);
    }
}

static void take_nodes(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    if (n->meta.n)
        take_from(ctx, &n->meta, &n->from, n->loc);
}

void metadata_take(Module *m) {
    Take t = {m, qir_parts_new(m->arena, path_dir(m->arena, m->path))};
    module_each_value(m, take_value, &t);
    module_each_graph(m, take_nodes, &t);
}
