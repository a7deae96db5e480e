/* Modules: imports, walks over all graphs and values, names that nobody has yet. */
#include "ir/ir.h"

Module *module_new(Arena *a, Diags *d) {
    Module *m = NEW(a, Module);
    m->arena = a;
    m->diags = d;
    return m;
}

void module_free(Module *m) {
    if (!m)
        return;
    for (size_t i = 0; i < m->n_maps; i++)
        file_unmap(m->maps[i]);
    arena_free(m->arena); /* m itself lives there */
}

void module_keep_map(Module *m, FileMap *f) {
    ARENA_PUSH(m->arena, m->maps, m->n_maps, m->cap_maps, f);
}

void module_release(const Module *m, const Tensor *t) {
    for (size_t i = 0; i < m->n_maps; i++)
        file_release(m->maps[i], (Str){(const char *)t->data, t->bytes});
}

bool domain_is_onnx(Str d) {
    return d.n == 0 || str_is(d, "ai.onnx");
}

bool domain_equal(Str x, Str y) {
    return str_eq(x, y) || (domain_is_onnx(x) && domain_is_onnx(y));
}

Str function_key(Buf *b, Str domain, Str name, Str overload) {
    b->n = 0;
    buf_str(b, domain_is_onnx(domain) ? STR("") : domain);
    buf_byte(b, '\0');
    buf_str(b, name);
    buf_byte(b, '\0');
    buf_str(b, overload);
    return (Str){b->p, b->n};
}

bool imports_check(Arena *a, const Import *imports, size_t n, Diags *d) {
    Map *seen = map_new(a);
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        const Import *p = &imports[i];
        bool onnx = domain_is_onnx(p->domain);
        const char *name = diag_name(d, p->domain);
        if (!map_set(seen, onnx ? STR("") : p->domain, (void *)p))
            ok = diag_error(d, p->loc, "domain \"%s\" is imported twice", name);
        if (onnx && (p->version < 1 || p->version > ONNX_MAX_OPSET))
            ok = diag_error(d, p->loc, "opset %lld is not supported; versions 1 to %d are",
                            (long long)p->version, ONNX_MAX_OPSET);
        else if (p->version < 0)
            ok = diag_error(d, p->loc, "the import of domain \"%s\" has version %lld", name,
                            (long long)p->version);
    }
    return ok;
}

bool ir_version_check(int64_t version, Loc at, Diags *d) {
    return (version >= 1 && version <= ONNX_MAX_IR) ||
           diag_error(d, at, "IR version %lld is not supported; versions 1 to %d are",
                      (long long)version, ONNX_MAX_IR);
}

int64_t module_opset(const Module *m, Str domain) {
    for (size_t i = 0; i < m->n_imports; i++)
        if (domain_equal(m->imports[i].domain, domain))
            return m->imports[i].version;
    bool before_imports = m->n_imports == 0 && m->has_ir_version && m->ir_version < 3;
    return before_imports && domain_is_onnx(domain) ? 1 : 0;
}

void module_set_opset(Module *m, Str domain, int64_t version) {
    for (size_t i = 0; i < m->n_imports; i++)
        if (domain_equal(m->imports[i].domain, domain)) {
            m->imports[i].version = version;
            return;
        }
    Import added = {.domain = domain.s ? domain : STR(""), .version = version};
    ARENA_PUSH(m->arena, m->imports, m->n_imports, m->cap_imports, added);
}

void module_add_quant(Module *m, Quant *q) {
    ARENA_PUSH(m->arena, m->quants, m->n_quants, m->cap_quants, q);
}

static void each_graph(Graph *g, void (*fn)(Graph *g, void *ctx), void *ctx) {
    fn(g, ctx);
    for (Node *n = g->first; n; n = n->next)
        for (size_t i = 0; i < n->n_attrs; i++) {
            const Attr *at = &n->attrs[i];
            if (at->kind == ATTR_GRAPH || at->kind == ATTR_GRAPHS)
                for (size_t k = 0; k < at->n; k++)
                    each_graph(at->v.g[k], fn, ctx);
        }
}

void module_each_graph(Module *m, void (*fn)(Graph *g, void *ctx), void *ctx) {
    if (m->graph)
        each_graph(m->graph, fn, ctx);
    for (size_t i = 0; i < m->n_functions; i++)
        each_graph(m->functions[i]->body, fn, ctx);
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
    for (const Attr *at = attrs; at < attrs + n; at++)
        for (size_t i = 0; i < at->n; i++) {
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

static void require(Tensor *t, Str name, void *ctx) {
    tensor_required(t, name, t->loc, ctx);
}

bool module_data_required(Module *m, Diags *d) {
    int before = diags_errors(d);
    module_each_tensor(m, require, d);
    return diags_errors(d) == before;
}

/* ---- unique names ---- */

struct UniqueNames {
    Module *module;
    Map *used; /* name -> the number last tried after it as a base */
};

static void use_name(UniqueNames *u, Str name) {
    if (name.n && !map_get(u->used, name))
        map_set(u->used, name, NEW(u->module->arena, size_t));
}

static void use_names(Graph *g, void *ctx) {
    UniqueNames *u = ctx;
    for (size_t i = 0; i < g->n_in; i++)
        use_name(u, g->in[i]->name);
    for (size_t i = 0; i < g->n_consts; i++)
        use_name(u, g->consts[i]->name);
    for (Node *n = g->first; n; n = n->next) {
        use_name(u, n->name);
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i])
                use_name(u, n->out[i]->name);
    }
}

UniqueNames *unique_names_new(Module *m) {
    UniqueNames *u = NEW(m->arena, UniqueNames);
    u->module = m;
    return u;
}

Str unique_name(UniqueNames *u, Str base) {
    Arena *a = u->module->arena;
    if (!u->used) {
        u->used = map_new(a);
        module_each_graph(u->module, use_names, u);
    }
    if (base.n == 0)
        base = STR("value");
    Str name = arena_str(a, base);
    size_t *last = map_get(u->used, base);
    while (map_get(u->used, name)) {
        /* Counting on from the last suffix keeps many copies of one base linear. */
        Buf b = buf_new(a);
        buf_str(&b, base);
        buf_byte(&b, '_');
        buf_u64(&b, ++*last);
        name = buf_as_str(&b);
    }
    use_name(u, name);
    return name;
}
