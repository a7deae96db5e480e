#include "passes/annotations.h"

#include "ir/extra.h"
#include "ir/onnx_fields.h"

/* ---- one ---- */

static const char *take_name(Str *to, const WireField *f, const char *twice) {
    if (to->s)
        return twice;
    *to = f->payload;
    return f->type == WIRE_LEN ? NULL : "it is malformed";
}

static const char *read_parameter(Annotation *a, Str entry) {
    Str key = STR_NONE, value = STR_NONE;
    WireField f;
    while (entry.n) {
        if (wire_next(&entry, &f) || f.type != WIRE_LEN ||
            (f.number != ENTRY_KEY && f.number != ENTRY_VALUE))
            return "it is malformed";
        *(f.number == ENTRY_KEY ? &key : &value) = f.payload;
    }
    if (str_is(key, "SCALE_TENSOR"))
        return take_name(&a->scale, &(WireField){.type = WIRE_LEN, .payload = value},
                         "it has two scales");
    if (str_is(key, "ZERO_POINT_TENSOR"))
        return take_name(&a->zp, &(WireField){.type = WIRE_LEN, .payload = value},
                         "it has two zero points");
    return "it has a key besides SCALE_TENSOR and ZERO_POINT_TENSOR";
}

static const char *read_fields(Annotation *a) {
    const char *why = NULL;
    WireField f;
    for (Str rest = a->bytes; rest.n && !why;) {
        if (wire_next(&rest, &f))
            return "it is malformed";
        if (f.number == ANNOTATION_TENSOR)
            why = take_name(&a->tensor, &f, "it names two tensors");
        else if (f.number == ANNOTATION_PARAMETER && f.type == WIRE_LEN)
            why = read_parameter(a, f.payload);
        else
            why = "it has a field that is not known";
    }
    return why ? why : !a->tensor.n ? "it names no tensor" : !a->scale.n ? "it has no scale" : NULL;
}

static void put_parameter(Buf *b, const char *key, Str name) {
    Buf entry = buf_new(b->arena);
    wire_put_bytes(&entry, ENTRY_KEY, str_from(key));
    wire_put_bytes(&entry, ENTRY_VALUE, name);
    wire_put_bytes(b, ANNOTATION_PARAMETER, buf_as_str(&entry));
}

Str annotation_bytes(Arena *a, Str tensor, Str scale, Str zp) {
    Buf b = buf_new(a);
    wire_put_bytes(&b, ANNOTATION_TENSOR, tensor);
    put_parameter(&b, "SCALE_TENSOR", scale);
    if (zp.n)
        put_parameter(&b, "ZERO_POINT_TENSOR", zp);
    return buf_as_str(&b);
}

bool annotation_says(Str bytes, const Annotation *a) {
    Annotation b = {.bytes = bytes};
    return !read_fields(&b) && str_eq(a->tensor, b.tensor) && str_eq(a->scale, b.scale) &&
           str_eq(a->zp, b.zp);
}

/* ---- those of a graph ---- */

Annotations annotations_of(const Graph *g) {
    Annotations all = {0};
    WireField f;
    for (Str rest = g->extra; rest.n && !wire_next(&rest, &f);) {
        if (f.number != GRAPH_ANNOTATION)
            continue;
        Annotation one = {.bytes = f.payload, .at = -1};
        one.why = f.type == WIRE_LEN ? read_fields(&one) : "it is malformed";
        ARENA_PUSH(g->module->arena, all.items, all.n, all.cap, one);
    }
    return all;
}

void annotations_set(Graph *g, const Annotations *list) {
    Buf b = buf_new(g->module->arena);
    WireField f;
    for (Str rest = g->extra; rest.n && !wire_next(&rest, &f);)
        if (f.number != GRAPH_ANNOTATION)
            buf_str(&b, f.whole);
    for (size_t i = 0; i < list->n; i++)
        wire_put_bytes(&b, GRAPH_ANNOTATION, list->items[i].bytes);
    g->extra = b.n ? buf_as_str(&b) : STR_NONE;
}

Node *annotation_note(const Value *v) {
    for (Node *n = v->onnx; n; n = n->next)
        if (str_is(n->op, "annotation"))
            return n;
    return NULL;
}

/* ---- names ---- */

struct Names {
    Arena *arena;
    Map *graphs; /* by the graph's address: its values by name */
};

Names *annotation_names(Arena *a) {
    Names *n = NEW(a, Names);
    *n = (Names){a, map_new(a)};
    return n;
}

static void note_name(Map *values, Value *v) {
    if (v)
        map_set(values, v->name, v);
}

static Map *values_of(Names *n, Graph *g) {
    Str key = {(const char *)&g, sizeof g};
    Map *values = map_get(n->graphs, key);
    if (values)
        return values;
    values = map_new(n->arena);
    map_set(n->graphs, (Str){arena_copy(n->arena, &g, sizeof g), sizeof g}, values);
    for (size_t i = 0; i < g->n_in; i++)
        note_name(values, g->in[i]);
    for (size_t i = 0; i < g->n_consts; i++)
        note_name(values, g->consts[i]);
    FOR_NODES(node, g)
    for (size_t i = 0; i < node->n_out; i++)
        note_name(values, node->out[i]);
    return values;
}

Value *annotation_find(Names *n, Graph *g, Str name, bool own) {
    for (; g; g = own || !g->owner ? NULL : g->owner->graph) {
        Value *v = map_get(values_of(n, g), name);
        if (v)
            return v;
    }
    return NULL;
}

/* ---- constants ---- */

typedef struct Params {
    Names *names;
    const Uses *uses;
    void (*fn)(Value *v, void *ctx);
    void *ctx;
} Params;

static void each_param(Graph *g, void *ctx) {
    const Params *p = ctx;
    const Annotations all = annotations_of(g);
    for (size_t i = 0; i < all.n; i++) {
        const Str names[] = {all.items[i].scale, all.items[i].zp};
        for (size_t k = 0; k < 2; k++) {
            Value *v = names[k].n ? annotation_find(p->names, g, names[k], false) : NULL;
            const Use *use;
            if (v && v->kind == VALUE_CONST && uses_of(p->uses, v, &use) == 0)
                p->fn(v, p->ctx);
        }
    }
}

void annotation_each_param(Module *m, void (*fn)(Value *v, void *ctx), void *ctx) {
    Arena *outer = scratch_begin(m);
    Params p = {annotation_names(m->scratch), uses_new(m), fn, ctx};
    module_each_graph(m, each_param, &p);
    scratch_end(m, outer);
}
