#include "ir/verify_extra.h"

#include "ir/extra.h"
#include "ir/onnx_fields.h"

typedef struct Check {
    Module *m;
    Diags *d;
} Check;

/* ---- fields ---- */

/* The text of a field, or STR_NONE. */
static Str text_of(Str message, uint32_t number) {
    WireField f;
    return extra_find(message, number, &f) ? f.payload : STR_NONE;
}

/* Takes the next message that is field `number`; false at the end. */
static bool next_of(Str *rest, uint32_t number, Str *message) {
    WireField f;
    while (rest->n && !wire_next(rest, &f))
        if (f.number == number && f.type == WIRE_LEN) {
            *message = f.payload;
            return true;
        }
    return false;
}

static void unknown_name(const Check *c, Loc at, const char *what, Str name) {
    diag_warning(c->d, at, "%s in 'extra' names '%s', which is no value there: was it renamed?",
                 what, diag_name(c->d, name));
}

/* ---- quantization annotations ---- */

static void add(Map *names, Value *v) {
    if (v)
        map_set(names, v->name, v);
}

/* The values that a graph sees: its own, and those of the graphs around it. */
static Map *names_seen(const Graph *g) {
    Map *names = map_new(g->module->arena);
    for (; g; g = g->owner ? g->owner->graph : NULL) {
        for (size_t i = 0; i < g->n_in; i++)
            add(names, g->in[i]);
        for (size_t i = 0; i < g->n_consts; i++)
            add(names, g->consts[i]);
        for (const Node *n = g->first; n; n = n->next)
            for (size_t i = 0; i < n->n_out; i++)
                add(names, n->out[i]);
    }
    return names;
}

static void check_annotation(const Check *c, const Graph *g, const Map *names, Str annotation) {
    static const char what[] = "quantization_annotation";
    Str name = text_of(annotation, ANNOTATION_TENSOR), rest = annotation, entry;
    if (name.n && !map_get(names, name))
        unknown_name(c, g->loc, what, name);
    while (next_of(&rest, ANNOTATION_PARAMETER, &entry)) {
        name = text_of(entry, ENTRY_VALUE);
        if (name.n && !map_get(names, name))
            unknown_name(c, g->loc, what, name);
    }
}

/* ---- devices ---- */

static bool node_has(const Node *n, Str name) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && str_eq(n->in[i]->name, name))
            return true;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && str_eq(n->out[i]->name, name))
            return true;
    return false;
}

static void check_devices(const Check *c, const Node *n) {
    Str rest = n->extra, configuration, spec;
    while (next_of(&rest, NODE_DEVICE_CONFIGURATION, &configuration))
        while (next_of(&configuration, DEVICE_SHARDING, &spec)) {
            Str name = text_of(spec, SHARDING_TENSOR);
            if (name.n && !node_has(n, name))
                unknown_name(c, n->loc, "a device configuration", name);
        }
}

static void check_graph(Graph *g, void *ctx) {
    const Check *c = ctx;
    Str rest = g->extra, annotation;
    const Map *names = NULL;
    while (next_of(&rest, GRAPH_ANNOTATION, &annotation)) {
        names = names ? names : names_seen(g);
        check_annotation(c, g, names, annotation);
    }
    FOR_NODES(n, g)
    if (n->extra.n)
        check_devices(c, n);
}

/* ---- training ---- */

static void add_initializers(Map *names, Str graph, const void *in) {
    Str tensor;
    while (next_of(&graph, GRAPH_INITIALIZER, &tensor))
        map_set(names, text_of(tensor, TENSOR_NAME), (void *)in);
}

/* What training sets are initializers: of the model, or of a training graph. */
static void check_training(const Check *c, Str info) {
    const Graph *g = c->m->graph;
    Map *names = map_new(c->m->arena);
    for (size_t i = 0; i < g->n_consts; i++)
        add(names, g->consts[i]);
    for (size_t i = 0; i < g->n_in; i++)
        if (g->in[i]->data || g->in[i]->sparse)
            add(names, g->in[i]);
    add_initializers(names, text_of(info, TRAINING_INITIALIZATION), g);
    add_initializers(names, text_of(info, TRAINING_ALGORITHM), g);
    for (uint32_t k = TRAINING_INITIALIZATION_BINDING; k <= TRAINING_UPDATE_BINDING; k++) {
        Str rest = info, entry;
        while (next_of(&rest, k, &entry)) {
            Str name = text_of(entry, ENTRY_KEY);
            if (name.n && !map_get(names, name))
                unknown_name(c, g->loc, "training_info", name);
        }
    }
}

void verify_extra(Module *m, Diags *d) {
    Check c = {m, d};
    Str rest = m->extra, info;
    module_each_graph(m, check_graph, &c);
    while (m->graph && next_of(&rest, MODEL_TRAINING_INFO, &info))
        check_training(&c, info);
}
