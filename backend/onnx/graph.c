/* Graphs as ONNX messages: attributes, nodes, inputs, outputs and initializers. */
#include "backend/onnx/write.h"
#include "ir/onnx_fields.h"

/* ---- attributes ---- */

static void write_floats(Writer *w, uint32_t field, const Attr *at) {
    for (size_t i = 0; i < at->n; i++)
        encode_float(&w->e, field, at->v.f[i]);
}

static void write_ints(Writer *w, uint32_t field, const Attr *at) {
    for (size_t i = 0; i < at->n; i++)
        encode_number(&w->e, field, (uint64_t)at->v.i[i]);
}

static void write_strings(Writer *w, uint32_t field, const Attr *at) {
    for (size_t i = 0; i < at->n; i++)
        encode_str(&w->e, field, at->v.s[i].s ? at->v.s[i] : STR(""));
}

static void write_tensors(Writer *w, uint32_t field, const Attr *at) {
    for (size_t i = 0; i < at->n; i++)
        write_tensor(w, field, at->v.t[i], at->v.t[i]->name);
}

static void write_graphs(Writer *w, uint32_t field, const Attr *at) {
    for (size_t i = 0; i < at->n; i++)
        write_graph(w, field, at->v.g[i]);
}

static void write_sparses(Writer *w, uint32_t field, const Attr *at) {
    for (size_t i = 0; i < at->n; i++)
        write_sparse(w, field, at->v.sp[i], at->v.sp[i]->values->name);
}

static void write_types(Writer *w, uint32_t field, const Attr *at) {
    for (size_t i = 0; !extra_has(at->extra, field) && i < at->n; i++)
        write_type(w, field, &at->v.ty[i]);
}

typedef void WriteValues(Writer *w, uint32_t field, const Attr *at);

static const struct {
    WriteValues *write;
    uint32_t field;
} kinds[] = {
    [ATTR_FLOAT] = {write_floats, ATTR_FIELD_F},
    [ATTR_INT] = {write_ints, ATTR_FIELD_I},
    [ATTR_STRING] = {write_strings, ATTR_FIELD_S},
    [ATTR_TENSOR] = {write_tensors, ATTR_FIELD_T},
    [ATTR_GRAPH] = {write_graphs, ATTR_FIELD_G},
    [ATTR_FLOATS] = {write_floats, ATTR_FIELD_FLOATS},
    [ATTR_INTS] = {write_ints, ATTR_FIELD_INTS},
    [ATTR_STRINGS] = {write_strings, ATTR_FIELD_STRINGS},
    [ATTR_TENSORS] = {write_tensors, ATTR_FIELD_TENSORS},
    [ATTR_GRAPHS] = {write_graphs, ATTR_FIELD_GRAPHS},
    [ATTR_SPARSE] = {write_sparses, ATTR_FIELD_SPARSE},
    [ATTR_SPARSES] = {write_sparses, ATTR_FIELD_SPARSES},
    [ATTR_TYPE] = {write_types, ATTR_FIELD_TP},
    [ATTR_TYPES] = {write_types, ATTR_FIELD_TYPE_PROTOS},
};

void write_attr(Writer *w, uint32_t field, const Attr *at) {
    encode_begin(&w->e, field);
    encode_str(&w->e, ATTR_FIELD_NAME, at->name);
    if (kinds[at->kind].write && !was_absent(at->extra, kinds[at->kind].field))
        kinds[at->kind].write(w, kinds[at->kind].field, at);
    encode_str(&w->e, ATTR_FIELD_DOC, at->doc);
    if (!was_absent(at->extra, ATTR_FIELD_TYPE) && !extra_has(at->extra, ATTR_FIELD_TYPE))
        encode_number(&w->e, ATTR_FIELD_TYPE, at->kind);
    encode_str(&w->e, ATTR_FIELD_REF, at->ref);
    write_extra(w, at->extra);
    encode_end(&w->e);
}

/* ---- nodes ---- */

static void write_names(Writer *w, uint32_t field, Value *const *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        encode_str(&w->e, field, values[i] ? values[i]->name : STR(""));
}

static void write_node(Writer *w, uint32_t field, const Node *n) {
    encode_begin(&w->e, field);
    write_names(w, NODE_INPUT, n->in, n->n_in);
    write_names(w, NODE_OUTPUT, n->out, n->n_out);
    encode_str(&w->e, NODE_NAME, n->name);
    encode_str(&w->e, NODE_OP_TYPE, n->op);
    for (size_t i = 0; i < n->n_attrs; i++)
        write_attr(w, NODE_ATTRIBUTE, &n->attrs[i]);
    encode_str(&w->e, NODE_DOC, n->doc);
    encode_str(&w->e, NODE_DOMAIN, n->domain);
    encode_str(&w->e, NODE_OVERLOAD, n->overload);
    write_meta(w, NODE_METADATA, n->meta);
    write_extra(w, n->extra);
    encode_end(&w->e);
}

void write_nodes(Writer *w, uint32_t field, const Graph *g, const Places *p) {
    const Node *const *sorted = p->nodes;
    for (const Node *n = g->first; n; n = n->next)
        write_node(w, field, sorted ? *sorted++ : n);
}

/* ---- values ---- */

bool has_info(const Value *v) {
    return v->declared || v->doc.s || v->meta.n || v->extra.n;
}

void write_info(Writer *w, uint32_t field, const Value *v, bool with_type) {
    encode_begin(&w->e, field);
    encode_str(&w->e, INFO_NAME, v->name);
    const Type *type = v->stated ? v->stated : &v->type;
    if (with_type && type->kind != TYPE_NONE && !extra_has(v->extra, INFO_TYPE))
        write_type(w, INFO_TYPE, type);
    encode_str(&w->e, INFO_DOC, v->doc);
    write_meta(w, INFO_METADATA, v->meta);
    write_extra(w, v->extra);
    encode_end(&w->e);
}

/* The main graph has to state the types of its interface; a body only repeats what it stated. */
static bool states_type(const Graph *g, const Value *v) {
    return !g->owner || v->declared;
}

static void write_outputs(Writer *w, const Graph *g, const Places *places) {
    for (size_t i = 0; i < g->n_out; i++) {
        if (places->outputs && places->outputs[i].s)
            encode_str(&w->e, GRAPH_OUTPUT, places->outputs[i]);
        else
            write_info(w, GRAPH_OUTPUT, g->out[i], states_type(g, g->out[i]));
    }
}

static void write_initializers(Writer *w, const ValueList *l) {
    for (size_t i = 0; i < l->n; i++)
        write_tensor(w, GRAPH_INITIALIZER, l->items[i]->data, l->items[i]->name);
}

static void write_sparse_initializers(Writer *w, const ValueList *l) {
    for (size_t i = 0; i < l->n; i++)
        write_sparse(w, GRAPH_SPARSE_INITIALIZER, l->items[i]->sparse, l->items[i]->name);
}

void write_graph(Writer *w, uint32_t field, const Graph *g) {
    Places places = places_of(w, g, g->extra);
    encode_begin(&w->e, field);
    write_nodes(w, GRAPH_NODE, g, &places);
    encode_str(&w->e, GRAPH_NAME, g->name);
    write_initializers(w, &places.initializers);
    encode_str(&w->e, GRAPH_DOC, g->doc);
    for (size_t i = 0; i < g->n_in; i++)
        write_info(w, GRAPH_INPUT, g->in[i], states_type(g, g->in[i]));
    write_outputs(w, g, &places);
    write_value_infos(w, GRAPH_VALUE_INFO, &places);
    write_sparse_initializers(w, &places.sparse);
    write_meta(w, GRAPH_METADATA, g->meta);
    write_extra(w, g->extra);
    encode_end(&w->e);
}
