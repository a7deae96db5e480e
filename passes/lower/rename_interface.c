/* Gives the graph's inputs and outputs other names (-input-names, -output-names): all of them, in
 * order; an input with a default value is none. Values are referred to by address, so that uses in
 * bodies follow by themselves; what holds names as text is gone through here: quantization
 * annotations, and the order of ONNX's fields. Wrong lists are mistakes of usage. */
#include "ir/extra.h"
#include "passes/edit.h"

enum { GRAPH_ANNOTATION = 14, TENSOR_NAME = 1 }; /* fields of ONNX */

typedef struct Rename {
    PassContext *c;
    Module *m;
    Map *to;   /* by old name: the new one, as a Str */
    Str *name; /* by value id: the same */
} Rename;

typedef struct Ports { /* the inputs or outputs that a list is about */
    const char *option, *what;
    Value **v;
    size_t n;
} Ports;

/* ---- the lists ---- */

static bool misuse(Rename *r, const Ports *p, const char *what, Str name) {
    Buf list = buf_new(r->m->arena);
    for (size_t i = 0; i < p->n; i++) {
        buf_text(&list, i ? ", " : "");
        buf_text(&list, diag_name(r->c->d, p->v[i]->name));
    }
    r->c->misused = true;
    return diag_error(r->c->d, LOC_NONE, "%s: %s%s; the %s are: " STR_FMT, p->option, what,
                      name.n ? diag_name(r->c->d, name) : "", p->what, STR_ARG(buf_as_str(&list)));
}

static bool add(Rename *r, const Ports *p, const Value *v, Str name) {
    const Str *before = map_get(r->to, v->name);
    if (!name.n)
        return misuse(r, p, "an empty name", STR_NONE);
    if (before && !str_eq(*before, name))
        return misuse(
            r, p,
            "one value, an input and an output or an output twice, got two names, one of them ",
            name);
    map_set(r->to, v->name, arena_copy(r->m->arena, &name, sizeof name));
    r->name[v->id] = name;
    return true;
}

static bool read_list(Rename *r, const Ports *p, const char *text) {
    size_t n = 0;
    bool ok = true;
    for (const char *at = text; at; n++) {
        size_t length = strcspn(at, ",");
        if (n < p->n)
            ok = add(r, p, p->v[n], arena_str(r->m->arena, (Str){at, length})) && ok;
        at = at[length] ? at + length + 1 : NULL;
    }
    if (n == p->n)
        return ok;
    return misuse(r, p, arena_strf(r->m->arena, "%zu name%s for %zu", n, plural(n), p->n).s,
                  STR_NONE);
}

/* ---- collisions ---- */

typedef struct Collide {
    Rename *r;
    const Ports *ports;
    Map *taken; /* by new name: the old one */
    bool ok;
} Collide;

static void look_at_value(Value *v, void *ctx) {
    Collide *c = ctx;
    if (map_get(c->taken, v->name) && !c->r->name[v->id].s)
        c->ok = misuse(c->r, c->ports, "another value of the model is called ", v->name);
}

static bool check_unique(Rename *r, const Ports *p) {
    Collide c = {r, p, map_new(r->m->arena), true};
    for (size_t i = 0; i < map_size(r->to); i++) {
        const Str *name = map_value(r->to, i);
        if (!map_set(c.taken, *name, (void *)name))
            return misuse(r, p, "two values would be called ", *name);
    }
    module_each_value(r->m, look_at_value, &c);
    return c.ok;
}

/* ---- names in text ---- */

static Str new_name(const Rename *r, Str name) {
    const Str *to = map_get(r->to, name);
    return to ? *to : name;
}

static Str renamed_annotation(const Rename *r, Str bytes) {
    Buf b = buf_new(r->m->arena);
    WireField f;
    for (Str rest = bytes; rest.n && !wire_next(&rest, &f);)
        if (f.number == TENSOR_NAME && f.type == WIRE_LEN)
            wire_put_bytes(&b, TENSOR_NAME, new_name(r, f.payload));
        else
            buf_str(&b, f.whole);
    return buf_as_str(&b);
}

static Str renamed_places(const Rename *r, Str bytes) {
    Buf b = buf_new(r->m->arena);
    WireField f;
    for (Str rest = bytes; rest.n && !wire_next(&rest, &f);)
        if (f.number == PLACE_INITIALIZER || f.number == PLACE_SPARSE_INITIALIZER ||
            f.number == PLACE_VALUE_INFO)
            wire_put_bytes(&b, f.number, new_name(r, f.payload));
        else
            buf_str(&b, f.whole);
    return buf_as_str(&b);
}

static void rename_texts(Graph *g, void *ctx) {
    const Rename *r = ctx;
    Buf b = buf_new(r->m->arena);
    WireField f;
    for (Str rest = g->extra; rest.n && !wire_next(&rest, &f);) {
        if (f.type == WIRE_LEN && f.number == GRAPH_ANNOTATION && wire_valid(f.payload))
            wire_put_bytes(&b, f.number, renamed_annotation(r, f.payload));
        else if (f.type == WIRE_LEN && f.number == EXTRA_PLACES && wire_valid(f.payload))
            wire_put_bytes(&b, f.number, renamed_places(r, f.payload));
        else
            buf_str(&b, f.whole);
    }
    if (g->extra.n)
        g->extra = b.n ? buf_as_str(&b) : STR_NONE;
    Str *names = NEW_ARRAY(r->m->arena, Str, g->n_initializers + 1);
    for (size_t i = 0; i < g->n_initializers; i++)
        names[i] = new_name(r, g->initializers[i]);
    if (g->n_initializers)
        g->initializers = names;
}

static void rename_value(Value *v, void *ctx) {
    const Rename *r = ctx;
    if (r->name[v->id].s)
        v->name = r->name[v->id];
}

bool pass_rename_interface(Module *m, PassContext *c) {
    Rename r = {c, m, map_new(m->arena), NEW_ARRAY(m->arena, Str, m->n_values + 1)};
    Graph *g = m->graph;
    Ports in = {"-input-names", "inputs", NEW_ARRAY(m->arena, Value *, g->n_in + 1), 0};
    Ports out = {"-output-names", "outputs", g->out, g->n_out};
    for (size_t i = 0; i < g->n_in; i++)
        if (!g->in[i]->data)
            in.v[in.n++] = g->in[i];
    if ((c->input_names && !read_list(&r, &in, c->input_names)) ||
        (c->output_names && !read_list(&r, &out, c->output_names)) ||
        !check_unique(&r, c->output_names ? &out : &in))
        return false;
    module_each_graph(m, rename_texts, &r);
    module_each_value(m, rename_value, &r);
    module_forget_infos(m);
    edit_forget_outputs(m->graph);
    return true;
}
