/* Modules: walks over all graphs and values, names that nobody has yet. */
#include "ir/extra.h"
#include "ir/ir.h"
#include "ir/onnx_fields.h"
#include "support/names.h"
#include "support/store.h"

Module *module_new(Arena *a, Diags *d) {
    Module *m = NEW(a, Module);
    m->arena = m->scratch = a;
    m->diags = d;
    m->mute = diags_new(a, NULL, false);
    return m;
}

Module *module_like(Arena *a, const Module *from, Diags *d) {
    Module *m = module_new(a, d);
    m->path = from->path;
    m->ir_version = from->ir_version;
    m->has_ir_version = from->has_ir_version;
    m->imports = from->imports;
    m->n_imports = from->n_imports;
    m->wide_zp = from->wide_zp;
    m->graph = graph_new(m, from->graph->name);
    return m;
}

Arena *scratch_begin(Module *m) {
    Arena *outer = m->scratch;
    m->scratch = arena_scratch(outer);
    return outer;
}

void scratch_end(Module *m, Arena *outer) {
    arena_free(m->scratch);
    m->scratch = outer;
}

void module_unmap(Module *m) {
    for (; m->n_maps; m->n_maps--)
        file_unmap(m->maps[m->n_maps - 1]);
}

void module_free(Module *m) {
    if (!m)
        return;
    module_unmap(m);
    arena_free(m->arena); /* m itself lives there */
}

void module_keep_map(Module *m, FileMap *f) {
    ARENA_PUSH(m->arena, m->maps, m->n_maps, m->cap_maps, f);
}

void module_release(const Module *m, const Tensor *t) {
    for (size_t i = 0; i < m->n_maps; i++)
        file_release(m->maps[i], (Str){(const char *)t->data, t->bytes});
    store_release(m->arena, t->data, t->bytes);
}

void module_release_quant(const Module *m, const Quant *q) {
    store_release(m->arena, q->scale, q->n_scale * sizeof *q->scale);
    store_release(m->arena, q->zp, q->n_zp * sizeof *q->zp);
}

void module_add_quant(Module *m, Quant *q) {
    ARENA_PUSH(m->arena, m->quants, m->n_quants, m->cap_quants, q);
}

static void each_graph(Graph *g, void (*fn)(Graph *g, void *ctx), void *ctx);

static void each_attr_graph(const Attr *attrs, size_t n, void (*fn)(Graph *g, void *ctx),
                            void *ctx) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < attr_graphs(&attrs[i]); k++)
            each_graph(attrs[i].v.g[k], fn, ctx);
}

static void each_graph(Graph *g, void (*fn)(Graph *g, void *ctx), void *ctx) {
    fn(g, ctx);
    for (Node *n = g->first; n; n = n->next)
        each_attr_graph(n->attrs, n->n_attrs, fn, ctx);
}

void module_each_graph(Module *m, void (*fn)(Graph *g, void *ctx), void *ctx) {
    if (m->graph)
        each_graph(m->graph, fn, ctx);
    for (size_t i = 0; i < m->n_functions; i++) {
        const Function *f = m->functions[i];
        each_attr_graph(f->defaults, f->n_defaults, fn, ctx);
        each_graph(f->body, fn, ctx);
    }
}

typedef struct ValueVisit {
    void (*fn)(Value *v, void *ctx);
    void *ctx;
} ValueVisit;

static void visit_values(Graph *g, void *ctx) {
    const ValueVisit *visit = ctx;
    for (size_t i = 0; i < g->n_in; i++)
        visit->fn(g->in[i], visit->ctx);
    for (size_t i = 0; i < g->n_consts; i++)
        visit->fn(g->consts[i], visit->ctx);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            visit->fn(n->out[i], visit->ctx);
}

void module_each_value(Module *m, void (*fn)(Value *v, void *ctx), void *ctx) {
    module_each_graph(m, visit_values, &(ValueVisit){fn, ctx});
}

static void add_bytes(Value *v, void *ctx) {
    size_t *bytes = ctx;
    if (value_is_const(v))
        *bytes += v->data->bytes;
}

size_t module_const_bytes(Module *m) {
    size_t bytes = 0;
    module_each_value(m, add_bytes, &bytes);
    return bytes;
}

static bool is_type(const WireField *f, bool place, void *ctx) {
    (void)ctx;
    return !place && f->number == INFO_TYPE;
}

static void forget_stated(Value *v, void *ctx) {
    v->stated = NULL;
    v->extra = extra_without(ctx, v->extra, is_type, NULL);
}

static void note_name(Value *v, void *names) {
    map_set(names, v->name, v);
}

/* A value_info beside those that values took: a second one of a value, most likely stale. */
static bool is_info_of_value(const WireField *f, bool place, void *names) {
    WireField name;
    return f->number == (place ? PLACE_OTHER_INFO : GRAPH_VALUE_INFO) &&
           (!wire_valid(f->payload) || !extra_find(f->payload, INFO_NAME, &name) ||
            map_get(names, name.payload));
}

static void forget_infos(Graph *g, void *names) {
    g->extra = extra_without(g->module->arena, g->extra, is_info_of_value, names);
}

void module_forget_infos(Module *m) {
    Arena *outer = scratch_begin(m);
    Map *names = map_new(m->scratch);
    module_each_value(m, note_name, names);
    module_each_graph(m, forget_infos, names);
    scratch_end(m, outer);
}

static bool is_node_order(const WireField *f, bool place, void *ctx) {
    (void)ctx;
    return place && f->number == PLACE_NODE;
}

static void forget_node_order(Graph *g, void *ctx) {
    g->extra = extra_without(g->module->arena, g->extra, is_node_order, ctx);
}

void module_forget_file(Module *m) {
    module_each_value(m, forget_stated, m->arena);
    module_each_graph(m, forget_node_order, NULL);
    module_forget_infos(m);
}

typedef struct TensorVisit {
    TensorFn *fn;
    void *ctx;
} TensorVisit;

static void visit_sparse(const TensorVisit *visit, const SparseTensor *s, Str name) {
    visit->fn(s->values, name, visit->ctx);
    if (s->indices)
        visit->fn(s->indices, name, visit->ctx);
}

static void visit_attrs(const TensorVisit *visit, const Attr *attrs, size_t n) {
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < attrs[k].n; i++) {
            const Attr *at = &attrs[k];
            if (at->kind == ATTR_TENSOR || at->kind == ATTR_TENSORS)
                visit->fn(at->v.t[i], at->name, visit->ctx);
            else if (at->kind == ATTR_SPARSE || at->kind == ATTR_SPARSES)
                visit_sparse(visit, at->v.sp[i], at->name);
        }
}

static void visit_value_tensors(Value *v, void *ctx) {
    if (v->data)
        ((TensorVisit *)ctx)->fn(v->data, v->name, ((TensorVisit *)ctx)->ctx);
    if (v->sparse)
        visit_sparse(ctx, v->sparse, v->name);
    for (const Node *note = v->onnx; note; note = note->next)
        visit_attrs(ctx, note->attrs, note->n_attrs);
}

static void visit_node_tensors(Graph *g, void *ctx) {
    for (const Node *n = g->first; n; n = n->next)
        visit_attrs(ctx, n->attrs, n->n_attrs);
}

void module_each_tensor(Module *m, TensorFn *fn, void *ctx) {
    TensorVisit visit = {fn, ctx};
    module_each_value(m, visit_value_tensors, &visit);
    module_each_graph(m, visit_node_tensors, &visit);
    for (size_t i = 0; i < m->n_functions; i++)
        visit_attrs(&visit, m->functions[i]->defaults, m->functions[i]->n_defaults);
}

typedef struct Required {
    Diags *d;
    Loc first; /* of those that are elided, which have one cause */
    size_t n_elided;
} Required;

static void require(Tensor *t, Str name, void *ctx) {
    Required *r = ctx;
    bool elided = tensor_is_absent(t) && t->place != TENSOR_EXTERNAL;
    r->n_elided += elided;
    if (elided && r->n_elided > 1)
        return;
    tensor_required(t, name, t->loc, r->d);
    if (elided)
        r->first = t->loc;
}

bool module_data_required(Module *m, Diags *d) {
    int before = diags_errors(d);
    Required r = {.d = d};
    module_each_tensor(m, require, &r);
    if (r.n_elided > 1)
        diag_note(d, r.first,
                  "so are %zu more; a text that is printed without -elide-larger has all",
                  r.n_elided - 1);
    else if (r.n_elided)
        diag_note(d, r.first, "a text that is printed without -elide-larger has them");
    return diags_errors(d) == before;
}

/* ---- unique names ---- */

struct UniqueNames {
    Module *module;
    Arena *scratch; /* of when this was made */
    Names *names;   /* NULL before the first call */
};

static void use_names(Graph *g, void *ctx) {
    Names *names = ctx;
    for (size_t i = 0; i < g->n_in; i++)
        names_use(names, g->in[i]->name);
    for (size_t i = 0; i < g->n_consts; i++)
        names_use(names, g->consts[i]->name);
    for (Node *n = g->first; n; n = n->next) {
        names_use(names, n->name);
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i])
                names_use(names, n->out[i]->name);
    }
}

UniqueNames *unique_names_new(Module *m) {
    UniqueNames *u = NEW(m->scratch, UniqueNames);
    u->module = m;
    u->scratch = m->scratch;
    return u;
}

Str unique_name(UniqueNames *u, Str base) {
    if (!u->names) {
        u->names = names_new(u->module->arena, u->scratch);
        module_each_graph(u->module, use_names, u->names);
    }
    return names_make(u->names, base.n ? base : STR("value"));
}
