/* The orders that an ONNX file has and the IR has not: of value_info and outputs, as the reader
 * kept them in `extra`. */
#include <stdlib.h>

#include "backend/onnx/write.h"

typedef struct Keyed {
    size_t key;
    Value *value;
} Keyed;

static int by_key(const void *x, const void *y) {
    size_t a = ((const Keyed *)x)->key, b = ((const Keyed *)y)->key;
    return (a > b) - (a < b);
}

/* Sorts by the place of the names that fields `number` of `places` list; others keep their order
 * and come last. */
static void sort_list(Writer *w, ValueList *l, Str places, uint32_t number) {
    WireField f;
    Map *rank = NULL;
    size_t n = 0;
    for (Str rest = places; rest.n && !wire_next(&rest, &f);) {
        if (f.number != number)
            continue;
        if (!rank)
            rank = map_new(w->e.arena);
        size_t *at = NEW(w->e.arena, size_t);
        *at = n++;
        map_set(rank, f.payload, at);
    }
    if (!rank)
        return;
    Keyed *keyed = NEW_ARRAY(w->e.arena, Keyed, l->n);
    for (size_t i = 0; i < l->n; i++) {
        const size_t *at = map_get(rank, l->items[i]->name);
        keyed[i] = (Keyed){at ? *at : n + i, l->items[i]};
    }
    qsort(keyed, l->n, sizeof *keyed, by_key);
    for (size_t i = 0; i < l->n; i++)
        l->items[i] = keyed[i].value;
}

/* What the file says of an output, if the output is still the one that it was said of. */
static void read_output(const Graph *g, Str entry, Str *outputs) {
    WireField index, info, name;
    if (wire_valid(entry) && extra_find(entry, 1, &index) && extra_find(entry, 2, &info) &&
        index.value < g->n_out && wire_valid(info.payload) && extra_find(info.payload, 1, &name) &&
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
    Places out = {.initializers = sorted(w, g, LIST_INITIALIZERS, places),
                  .sparse = sorted(w, g, LIST_SPARSE_INITIALIZERS, places),
                  .outputs = read_outputs(w, g, places)};
    place_infos(w, &infos, places, &out);
    return out;
}
