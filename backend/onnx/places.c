/* The orders that an ONNX file has and the IR has not: of value_info and outputs, as the reader
 * kept them in `extra`. */
#include <stdlib.h>

#include "backend/onnx/write.h"
#include "ir/onnx_fields.h"

typedef struct Keyed {
    size_t key;
    const void *item;
} Keyed;

static int by_key(const void *x, const void *y) {
    size_t a = ((const Keyed *)x)->key, b = ((const Keyed *)y)->key;
    return (a > b) - (a < b);
}

/* Where fields `number` of `places` list a name. Those without a name count by themselves. */
typedef struct Ranks {
    Map *by_name; /* NULL: there is no such field */
    size_t n;
    size_t *unnamed;
    size_t n_unnamed, cap_unnamed, next;
} Ranks;

static Ranks ranks_of(Arena *a, Str places, uint32_t number) {
    Ranks r = {0};
    WireField f;
    for (Str rest = places; rest.n && !wire_next(&rest, &f);) {
        if (f.number != number)
            continue;
        if (!r.by_name)
            r.by_name = map_new(a);
        size_t *at = NEW(a, size_t);
        *at = r.n++;
        if (f.payload.n)
            map_set(r.by_name, f.payload, at);
        else
            ARENA_PUSH(a, r.unnamed, r.n_unnamed, r.cap_unnamed, *at);
    }
    return r;
}

/* What is not in the list comes last; `i` is its place among all. */
static size_t rank_of(Ranks *r, Str name, size_t i) {
    if (!name.n && r->next < r->n_unnamed)
        return r->unnamed[r->next++];
    const size_t *at = name.n ? map_get(r->by_name, name) : NULL;
    return at ? *at : r->n + i;
}

static void sort_list(Writer *w, ValueList *l, Str places, uint32_t number) {
    Ranks ranks = ranks_of(w->e.arena, places, number);
    if (!ranks.by_name)
        return;
    Keyed *keyed = NEW_ARRAY(w->e.arena, Keyed, l->n);
    for (size_t i = 0; i < l->n; i++)
        keyed[i] = (Keyed){rank_of(&ranks, l->items[i]->name, i), l->items[i]};
    qsort(keyed, l->n, sizeof *keyed, by_key);
    for (size_t i = 0; i < l->n; i++)
        l->items[i] = (Value *)keyed[i].item;
}

static Str first_result(const Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            return n->out[i]->name;
    return STR("");
}

static const Node **sorted_nodes(Writer *w, const Graph *g, Str places) {
    Arena *a = w->e.arena;
    Ranks ranks = ranks_of(a, places, PLACE_NODE);
    if (!ranks.by_name)
        return NULL;
    Keyed *keyed = NULL;
    size_t n = 0, cap = 0;
    for (const Node *p = g->first; p; p = p->next) {
        Keyed k = {rank_of(&ranks, first_result(p), n), p};
        ARENA_PUSH(a, keyed, n, cap, k);
    }
    qsort(keyed, n, sizeof *keyed, by_key);
    const Node **nodes = NEW_ARRAY(a, const Node *, n);
    for (size_t i = 0; i < n; i++)
        nodes[i] = keyed[i].item;
    return nodes;
}

/* What the file says of an output, if the output is still the one that it was said of. */
static void read_output(const Graph *g, Str entry, Str *outputs) {
    WireField index, info, name;
    if (wire_valid(entry) && extra_find(entry, OUTPUT_INDEX, &index) &&
        extra_find(entry, OUTPUT_INFO, &info) && index.value < g->n_out &&
        wire_valid(info.payload) && extra_find(info.payload, INFO_NAME, &name) &&
        str_eq(name.payload, g->out[index.value]->name))
        outputs[index.value] = info.payload;
}

static const Str *read_outputs(Writer *w, const Graph *g, Str places) {
    Str *outputs = NULL;
    WireField f;
    for (Str rest = places; rest.n && !wire_next(&rest, &f);)
        if (f.number == PLACE_OUTPUT) {
            if (!outputs)
                outputs = NEW_ARRAY(w->e.arena, Str, g->n_out);
            read_output(g, f.payload, outputs);
        }
    return outputs;
}

/* Values in their order, and between them what no value has, where the file had it. */
static void place_infos(Writer *w, const ValueList *values, Str places, Places *out) {
    size_t cap = 0, next = 0;
    WireField f;
    for (Str rest = places; rest.n && !wire_next(&rest, &f);) {
        bool value = f.number == PLACE_VALUE_INFO && next < values->n &&
                     str_eq(values->items[next]->name, f.payload);
        InfoPlace place = {value ? values->items[next++] : NULL, f.payload};
        if (value || (f.number == PLACE_OTHER_INFO && wire_valid(f.payload)))
            ARENA_PUSH(w->e.arena, out->infos, out->n_infos, cap, place);
    }
    while (next < values->n) {
        InfoPlace place = {.value = values->items[next++]};
        ARENA_PUSH(w->e.arena, out->infos, out->n_infos, cap, place);
    }
}

void write_value_infos(Writer *w, uint32_t field, const Places *p) {
    for (size_t i = 0; i < p->n_infos; i++) {
        const Value *v = p->infos[i].value;
        if (v)
            write_info(w, field, v, v->declared);
        else
            encode_str(&w->e, field, p->infos[i].raw);
    }
}

static ValueList sorted(Writer *w, const Graph *g, OnnxList which, Str places) {
    ValueList all = onnx_list(w->e.arena, g, which);
    size_t n = 0;
    for (size_t i = 0; i < all.n; i++) {
        Value *v = all.items[i];
        if (which != LIST_VALUE_INFOS || (has_info(v) && !w->is_output[v->id]))
            all.items[n++] = v;
    }
    all.n = n;
    sort_list(w, &all, places, which);
    return all;
}

Places places_of(Writer *w, const Graph *g, Str extra) {
    WireField f;
    Str places = extra_find(extra, EXTRA_PLACES, &f) ? f.payload : STR_NONE;
    ValueList infos = sorted(w, g, LIST_VALUE_INFOS, places);
    Places out = {.nodes = sorted_nodes(w, g, places),
                  .initializers = sorted(w, g, LIST_INITIALIZERS, places),
                  .sparse = sorted(w, g, LIST_SPARSE_INITIALIZERS, places),
                  .outputs = read_outputs(w, g, places)};
    place_infos(w, &infos, places, &out);
    return out;
}
