/* External data: the elements of initializers in a file beside the model. */
#include <inttypes.h>

#include "backend/onnx/write.h"

typedef struct Moving {
    Module *module;
    FILE *out;
    OnnxMoved moved;
} Moving;

/* Strings have no bytes, and what refers to a file already goes on doing so. */
static bool is_movable(const Tensor *t) {
    return t->place != TENSOR_EXTERNAL && !tensor_is_absent(t) && t->elem != ELEM_STRING &&
           t->bytes >= ONNX_EXTERNAL_FROM;
}

static StrPair number(Arena *a, const char *key, uint64_t v) {
    return (StrPair){.key = str_from(key), .value = arena_strf(a, "%" PRIu64, v)};
}

static void move(Moving *w, Tensor *t) {
    static const char zeros[ONNX_EXTERNAL_ALIGN];
    Arena *a = w->module->arena;
    OnnxMoved *m = &w->moved;
    size_t gap = (size_t)(-m->bytes & (ONNX_EXTERNAL_ALIGN - 1));
    StrPair *entries = NEW_ARRAY(a, StrPair, 3);
    if (gap)
        fwrite(zeros, 1, gap, w->out);
    write_elements(w->module, t, w->out);
    entries[0].key = str_from("location");
    entries[1] = number(a, "offset", m->bytes + gap);
    entries[2] = number(a, "length", t->bytes);
    m->bytes += gap + t->bytes;
    t->place = TENSOR_EXTERNAL;
    t->external = (Meta){entries, 3};
    ARENA_PUSH(a, m->locations, m->n, m->cap, &entries[0].value);
}

/* Functions have no initializers, and of their nested graphs readers may not know. */
static void move_graph(Graph *g, void *ctx) {
    Moving *w = ctx;
    if (g->function)
        return;
    ValueList l = onnx_list(w->module->arena, g, LIST_INITIALIZERS);
    for (size_t i = 0; i < l.n && !ferror(w->out); i++)
        if (is_movable(l.items[i]->data))
            move(w, l.items[i]->data);
}

static void count_graph(Graph *g, void *ctx) {
    Moving *w = ctx;
    ValueList l = onnx_list(w->module->arena, g, LIST_INITIALIZERS);
    for (size_t i = 0; i < l.n && !g->function; i++)
        w->moved.n += is_movable(l.items[i]->data);
}

bool onnx_can_move(const Module *m) {
    Moving w = {.module = (Module *)m};
    module_each_graph((Module *)m, count_graph, &w);
    return w.moved.n > 0;
}

OnnxMoved onnx_move(Module *m, FILE *out) {
    Moving w = {.module = m, .out = out};
    module_each_graph(m, move_graph, &w);
    return w.moved;
}

void onnx_name_moved(const OnnxMoved *moved, Str location) {
    for (size_t i = 0; i < moved->n; i++)
        *moved->locations[i] = location;
}
