/* GraphProto: inputs, initializers, nodes, and the graphs inside nodes. */
#include "frontend/onnx/read.h"

/* ---- inputs and initializers ---- */

static void read_inputs(Reader *r, Scope *s, const Onnx__GraphProto *p) {
    for (size_t i = 0; i < p->n_input; i++) {
        const Onnx__ValueInfoProto *in = p->input[i];
        Loc at = reader_loc(r, "input", pb_str(in->has_name, in->name));
        Str name = read_name(r, at, in->has_name, in->name);
        Value *v = graph_add_input(s->graph, name, TYPE_UNKNOWN);
        v->loc = at;
        v->index = (int)i; /* for read_outputs */
        v->declared = in->type != NULL;
        read_info(r, v, in);
        if (name.n == 0)
            diag_error(r->diags, at, "an input has no name");
        else
            scope_define(r, s, v);
    }
}

/* The value an initializer is for: a new constant, or an input whose default it is. NULL after a
 * diagnostic. */
static Value *initialized(Reader *r, Scope *s, Loc at, Str name, Type type) {
    if (name.n == 0) {
        diag_error(r->diags, at, "an initializer has no name");
        return NULL;
    }
    Value *v = map_get(s->values, name);
    if (v && v->kind == VALUE_INPUT && !v->data && !v->sparse)
        return v;
    if (v) {
        diag_error(r->diags, at, "value \"%s\" is defined twice", diag_name(r->diags, name));
        diag_note(r->diags, v->loc, "first defined here");
        if (v->kind == VALUE_CONST)
            diag_note(r->diags, at,
                      "onnxruntime takes the last one: leave that, and drop the others");
        return NULL;
    }
    v = graph_add_const(s->graph, name, type, NULL);
    v->loc = at;
    map_set(s->values, name, v);
    return v;
}

/* A constant's type is its tensor's; a value_info is taken where it says just that, or nothing of
 * the type. */
static void take_const_info(Reader *r, Infos *infos, Value *v) {
    Info *info = map_get(infos->by_name, v->name);
    if (!info || map_get(infos->outputs, v->name))
        return;
    const Onnx__ValueInfoProto *p = info->proto;
    Value stated = *v;
    read_info(r, &stated, p);
    if (p->type ? !plain_type_of(v->data, &stated.type)
                : !p->has_doc_string && !p->n_metadata_props)
        return;
    v->doc = stated.doc;
    v->meta = stated.meta;
    v->extra = stated.extra;
    v->declared = p->type != NULL;
    info->value = v;
}

static void read_initializers(Reader *r, Scope *s, const Onnx__GraphProto *p, Infos *infos) {
    for (size_t i = 0; i < p->n_initializer; i++) {
        const Onnx__TensorProto *t = p->initializer[i];
        Loc at = reader_loc(r, "initializer", pb_str(t->has_name, t->name));
        Str name = read_name(r, at, t->has_name, t->name);
        Tensor *data = read_tensor(r, at, t, false);
        Type type = data ? tensor_type(r->arena, data) : TYPE_UNKNOWN;
        Value *v = initialized(r, s, at, name, type);
        if (!v || !data)
            continue;
        v->data = data;
        if (!tensor_fits(data, v->type))
            diag_error(r->diags, v->loc, "its type is %s, its initializer is %s",
                       type_text(r->arena, v->type), type_text(r->arena, type));
        if (v->kind == VALUE_CONST)
            take_const_info(r, infos, v);
    }
}

static Str sparse_name(const Onnx__SparseTensorProto *p) {
    return p->values ? pb_str(p->values->has_name, p->values->name) : STR_NONE;
}

static void read_sparse_initializers(Reader *r, Scope *s, const Onnx__GraphProto *p) {
    for (size_t i = 0; i < p->n_sparse_initializer; i++) {
        Str name = sparse_name(p->sparse_initializer[i]);
        Loc at = reader_loc(r, "sparse initializer", name);
        SparseTensor *sp = read_sparse(r, at, p->sparse_initializer[i]);
        if (!sp)
            continue;
        Type type = sparse_type(r->arena, sp);
        Value *v = initialized(r, s, at, name, type);
        if (!v)
            continue;
        v->sparse = sp;
        if (!sparse_fits(sp, v->type))
            diag_error(r->diags, v->loc, "its type is %s, its initializer is %s",
                       type_text(r->arena, v->type), type_text(r->arena, type));
    }
}

/* ---- nodes ---- */

/* The names that the nodes of a list define, made when a name cannot be found. */
static Map *names_defined(Reader *r, size_t n, Onnx__NodeProto **nodes) {
    Map *names = map_new(r->arena);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i]->n_output; k++)
            map_set(names, pb_str(true, nodes[i]->output[k]), nodes[i]);
    return names;
}

static void read_node_inputs(Reader *r, const Scope *s, Node *n, const Onnx__NodeProto *p,
                             size_t n_nodes, Onnx__NodeProto **nodes, Map **later) {
    for (size_t i = 0; i < p->n_input; i++) {
        Str name = pb_str(true, p->input[i]);
        if (name.n == 0)
            continue;
        n->in[i] = scope_find(s, name);
        if (n->in[i])
            continue;
        if (!*later)
            *later = names_defined(r, n_nodes, nodes);
        diag_error(r->diags, n->loc,
                   map_get(*later, name)
                       ? "input \"%s\" is defined by this node or a later one: the nodes are not "
                         "in order, or form a cycle"
                       : "input \"%s\" is not defined",
                   diag_name(r->diags, name));
    }
}

static void read_node_attrs(Reader *r, const Scope *s, Node *n, const Onnx__NodeProto *p) {
    n->n_attrs = p->n_attribute;
    n->attrs = NEW_ARRAY(r->arena, Attr, n->n_attrs);
    Map *seen = n->n_attrs > 8 ? map_new(r->arena) : NULL;
    for (size_t i = 0; i < n->n_attrs; i++) {
        Attr *at = &n->attrs[i];
        read_attr(r, n->loc, p->attribute[i], s, n, at);
        bool twice = seen && !map_set(seen, at->name, at);
        for (size_t k = 0; !seen && k < i; k++)
            twice |= str_eq(n->attrs[k].name, at->name);
        if (twice)
            diag_error(r->diags, n->loc, "attribute \"%s\" is given twice",
                       diag_name(r->diags, at->name));
    }
}

static void read_node_outputs(Reader *r, Scope *s, Node *n, const Onnx__NodeProto *p,
                              Infos *infos) {
    for (size_t i = 0; i < p->n_output; i++) {
        Str name = read_name(r, n->loc, true, p->output[i]);
        if (name.n == 0)
            continue;
        Value *v = node_add_output(n, i, name, TYPE_UNKNOWN);
        v->loc = n->loc;
        if (scope_define(r, s, v))
            take_info(r, infos, v);
    }
}

static Node *read_node_head(Reader *r, const Scope *s, const Onnx__NodeProto *p, Loc at) {
    Str op = read_name(r, at, p->has_op_type, p->op_type);
    Str domain = read_name(r, at, p->has_domain, p->domain);
    Node *n = node_new(s->graph, domain, op, p->n_input, p->n_output);
    n->overload = read_name(r, at, p->has_overload, p->overload);
    n->name = read_name(r, at, p->has_name, p->name);
    n->doc = pb_str(p->has_doc_string, p->doc_string);
    n->meta = read_meta(r, at, p->n_metadata_props, p->metadata_props);
    n->loc = at;
    if (op.n == 0)
        diag_error(r->diags, at, "a node has no operator");
    Buf extra = buf_new(r->arena);
    for (size_t i = 0; i < p->n_device_configurations; i++)
        extra_message(&extra, NODE_DEVICE_CONFIGURATION, &p->device_configurations[i]->base);
    extra_unknown(&extra, &p->base);
    n->extra = extra_done(&extra);
    return n;
}

void read_nodes(Reader *r, Scope *s, size_t n_nodes, Onnx__NodeProto **nodes, const size_t *order,
                Infos *infos) {
    Map *later = NULL;
    if (n_nodes > ONNX_MAX_NODES) {
        diag_error(r->diags, s->graph->loc, "%zu nodes; at most %d are supported", n_nodes,
                   ONNX_MAX_NODES);
        return;
    }
    for (size_t i = 0; i < n_nodes; i++) {
        size_t at = order ? order[i] : i;
        const Onnx__NodeProto *p = nodes[at];
        Node *n = read_node_head(r, s, p, node_loc(r, p, at));
        read_node_inputs(r, s, n, p, n_nodes, nodes, &later);
        read_node_attrs(r, s, n, p);
        read_node_outputs(r, s, n, p, infos);
        graph_append(s->graph, n);
    }
}

/* ---- graphs ---- */

static void warn_of_order(Reader *r, const Graph *g, const size_t *order, size_t late) {
    const Node *n = g->first;
    for (; n && *order != late; order++)
        n = n->next;
    diag_warning(r->diags, n ? n->loc : g->loc,
                 "it stands before what it uses: the nodes are sorted, as onnxruntime does");
}

static void keep_initializer_order(Reader *r, const Graph *g, const Onnx__GraphProto *p,
                                   Buf *places) {
    Str *names = NEW_ARRAY(r->arena, Str, p->n_initializer);
    for (size_t i = 0; i < p->n_initializer; i++)
        names[i] = pb_str(p->initializer[i]->has_name, p->initializer[i]->name);
    keep_order(r->arena, g, LIST_INITIALIZERS, names, p->n_initializer, places);
}

static void keep_sparse_order(Reader *r, const Graph *g, const Onnx__GraphProto *p, Buf *places) {
    Str *names = NEW_ARRAY(r->arena, Str, p->n_sparse_initializer);
    for (size_t i = 0; i < p->n_sparse_initializer; i++)
        names[i] = sparse_name(p->sparse_initializer[i]);
    keep_order(r->arena, g, LIST_SPARSE_INITIALIZERS, names, p->n_sparse_initializer, places);
}

static void keep_rest(Reader *r, Graph *g, const Onnx__GraphProto *p, const Infos *infos,
                      Buf *places) {
    Buf extra = buf_new(r->arena);
    keep_initializer_order(r, g, p, places);
    keep_sparse_order(r, g, p, places);
    keep_infos(g, infos, GRAPH_VALUE_INFO, &extra, places);
    if (places->n)
        wire_put_bytes(&extra, EXTRA_PLACES, buf_as_str(places));
    for (size_t i = 0; i < p->n_quantization_annotation; i++)
        extra_message(&extra, GRAPH_ANNOTATION, &p->quantization_annotation[i]->base);
    extra_unknown(&extra, &p->base);
    g->extra = extra_done(&extra);
}

static const Place *enter_graph(Reader *r, const Node *owner, Str name, Str attr) {
    if (owner)
        return enter_place(r, "", attr, arena_strf(r->arena, " of %s", owner->loc.what->words).s);
    return name.n ? enter_place(r, "graph \"", name, "\"") : enter_place(r, "the graph", name, "");
}

Graph *read_graph(Reader *r, const Onnx__GraphProto *p, const Scope *outer, Node *owner, Str attr) {
    const Place *around = enter_graph(r, owner, pb_str(p->has_name, p->name), attr);
    Loc at = owner ? owner->loc : (Loc){.source = r->source};
    Graph *g = graph_new(r->module, read_name(r, at, p->has_name, p->name));
    g->owner = owner;
    g->loc = at;
    g->doc = pb_str(p->has_doc_string, p->doc_string);
    g->meta = read_meta(r, at, p->n_metadata_props, p->metadata_props);
    Scope s = {outer, g, map_new(r->arena)};
    Infos infos = read_infos(r, p->n_value_info, p->value_info, p->n_output, p->output);
    read_inputs(r, &s, p);
    read_initializers(r, &s, p, &infos);
    read_sparse_initializers(r, &s, p);
    size_t late = 0;
    const size_t *order = owner ? NULL : node_order(r, p->n_node, p->node, &late);
    read_nodes(r, &s, p->n_node, p->node, order, &infos);
    Buf places = buf_new(r->arena);
    if (order) {
        warn_of_order(r, g, order, late);
        keep_node_order(p, &places);
    }
    read_outputs(r, &s, p, &places);
    keep_rest(r, g, p, &infos, &places);
    r->in = around;
    return g;
}
