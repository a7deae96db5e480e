/* What a module has that ONNX cannot state, or not at the version asked for: refused before the
 * first byte is written, with every fault at its place. */
#include "backend/onnx/write.h"

typedef struct Check {
    const Module *module;
    const OnnxWriteOptions *options;
    bool ok;
} Check;

static void refuse(Check *c, Loc at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void refuse(Check *c, Loc at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    diag_v(c->module->diags, DIAG_ERROR, at, fmt, ap);
    va_end(ap);
    c->ok = false;
}

static const char *name(Check *c, Str s) {
    return diag_name(c->module->diags, s);
}

static void check_elem(Check *c, Loc at, ElemType e) {
    if (e > 1000)
        refuse(c, at, "ONNX has no element type %s", elem_name(e));
}

static void check_tensor(Check *c, Loc at, const Tensor *t, Str who) {
    if (!t)
        return;
    check_elem(c, at, t->elem);
    if (t->place != TENSOR_EXTERNAL && !tensor_required(t, who, at, c->module->diags))
        c->ok = false;
}

static void check_sparse(Check *c, Loc at, const SparseTensor *s, Str who) {
    if (!s)
        return;
    check_tensor(c, at, s->values, who);
    check_tensor(c, at, s->indices, who);
}

static void check_type(Check *c, Loc at, const char *what, Str who, const Type *t) {
    /* int8 ~ q is plain int8: what it means stands in the QOperators' operands. */
    if (t->quant && !(t->tilde && elem_is_int(t->elem)))
        refuse(c, at, "%s \"%s\" has type %s, which ONNX cannot say", what, name(c, who),
               type_text(c->module->arena, *t));
    else
        for (; t; t = t->sub)
            check_elem(c, at, t->elem);
}

static void check_value(Check *c, const Value *v) {
    if (!v)
        return;
    bool before = c->ok;
    c->ok = true;
    check_type(c, v->loc, "value", v->name, v->stated ? v->stated : &v->type);
    bool typed = c->ok;
    c->ok = before && typed;
    if (!typed) /* its data would only say so again */
        return;
    check_tensor(c, v->loc, v->data, v->name);
    check_sparse(c, v->loc, v->sparse, v->name);
}

static void check_attr(Check *c, Loc at, const Attr *attr) {
    for (size_t i = 0; i < attr->n; i++)
        switch (attr->kind) {
        case ATTR_TENSOR:
        case ATTR_TENSORS: check_tensor(c, at, attr->v.t[i], attr->name); break;
        case ATTR_SPARSE:
        case ATTR_SPARSES: check_sparse(c, at, attr->v.sp[i], attr->name); break;
        case ATTR_TYPE:
        case ATTR_TYPES: check_type(c, at, "attribute", attr->name, &attr->v.ty[i]); break;
        default: break; /* graphs are visited by themselves */
        }
}

static void check_graph(Graph *g, void *ctx) {
    Check *c = ctx;
    for (size_t i = 0; i < g->n_in; i++)
        check_value(c, g->in[i]);
    for (size_t i = 0; i < g->n_consts; i++)
        check_value(c, g->consts[i]);
    for (const Node *n = g->first; n; n = n->next) {
        for (size_t i = 0; i < n->n_attrs; i++)
            check_attr(c, n->loc, &n->attrs[i]);
        for (size_t i = 0; i < n->n_out; i++)
            check_value(c, n->out[i]);
    }
}

static void check_imports(Check *c, const Import *imports, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (domain_is_onnx(imports[i].domain) && imports[i].version > ONNX_WRITE_OPSET)
            refuse(c, LOC_NONE,
                   "opset %lld is newer than runtimes load (up to %d); -target-opset=21 goes down "
                   "where operators allow",
                   (long long)imports[i].version, ONNX_WRITE_OPSET);
}

bool check_writable(const Module *m, const OnnxWriteOptions *options) {
    Check c = {m, options, true};
    if (!options->allow_newer) {
        if (m->ir_version > ONNX_WRITE_IR)
            refuse(
                &c, LOC_NONE,
                "IR version %lld is newer than runtimes load (up to %d); -target-opset=21 lowers "
                "it where operators allow",
                (long long)m->ir_version, ONNX_WRITE_IR);
        check_imports(&c, m->imports, m->n_imports);
    }
    if (m->n_imports == 0 && (!m->has_ir_version || m->ir_version >= 3))
        refuse(&c, LOC_NONE, "the model imports no opset, which ONNX needs");
    for (size_t i = 0; i < m->n_functions; i++) {
        const Function *f = m->functions[i];
        for (size_t k = 0; k < f->n_defaults; k++)
            check_attr(&c, f->loc, &f->defaults[k]);
        if (!options->allow_newer)
            check_imports(&c, f->imports, f->n_imports);
    }
    module_each_graph((Module *)m, check_graph, &c);
    return c.ok;
}
