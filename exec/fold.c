/* See exec/fold.h. */
#include "exec/binder.h"
#include "exec/fold.h"
#include "exec/plan.h"
#include "ir/ops/op.h"
#include "ir/provenance.h"

enum { DEFAULT_MAX_BYTES = 64 << 20 };

typedef struct Folder {
    Module *module;
    Binder *binder;
    size_t max_bytes, grown; /* bytes that results took beyond their operands */
    size_t folded;
    bool progress;
} Folder;

/* ---- which nodes ---- */

/* Random results, or quantization that has to stay where it is. */
static bool keeps_running(const Node *n) {
    static const char *const names[] = {"RandomNormal",     "RandomUniform",
                                        "RandomNormalLike", "RandomUniformLike",
                                        "Multinomial",      "Bernoulli",
                                        "Dropout",          "QuantizeLinear",
                                        "DequantizeLinear", "DynamicQuantizeLinear"};
    if (!domain_is_onnx(n->domain) || !n->def || !n->def->bind)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (node_is(n, names[i]))
            return true;
    for (size_t i = 0; i < n->n_attrs; i++)
        if (n->attrs[i].kind == ATTR_GRAPH || n->attrs[i].kind == ATTR_GRAPHS)
            return true;
    return false;
}

/* Elements that the IR can hold as they come out of a kernel. */
static bool plain(const Value *v) {
    return !v->type.quant && elem_bits(v->type.elem) >= 8;
}

static bool sizes_fit(Folder *f, const Node *n) {
    size_t in = 0, out = 0, count;
    for (size_t i = 0; i < n->n_in; i++)
        in += n->in[i] ? n->in[i]->data->bytes : 0;
    for (size_t i = 0; i < n->n_out; i++) {
        if (!n->out[i])
            continue;
        if (!plain(n->out[i]) || !type_count(n->out[i]->type, &count) || count > INT32_MAX)
            return false;
        out += elem_bytes(n->out[i]->type.elem, count);
    }
    size_t growth = out > in ? out - in : 0;
    if (growth > f->max_bytes - f->grown)
        return false;
    f->grown += growth;
    return true;
}

static bool foldable(Folder *f, const Node *n) {
    if (keeps_running(n))
        return false;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && (!value_is_const(n->in[i]) || !plain(n->in[i])))
            return false;
    return sizes_fit(f, n);
}

/* ---- results ---- */

/* The node's output becomes a constant in place: name, uses and type stay. */
static void make_const(Folder *f, Graph *g, Value *v, const void *data) {
    const Node *n = v->def;
    int64_t dims[MAX_RANK];
    uint8_t *bytes;
    for (int i = 0; i < v->type.rank; i++)
        dims[i] = v->type.dims[i].value;
    v->data = tensor_new(f->module->arena, v->type.elem, v->type.rank, dims, &bytes);
    if (v->data->bytes)
        memcpy(bytes, data, v->data->bytes);
    v->kind = VALUE_CONST;
    v->def = NULL;
    v->stat = NULL;
    v->declared = false; /* the tensor says it */
    v->from = (Provenance){0};
    value_from_node(v, n, "fold-const");
    ARENA_PUSH(f->module->arena, g->consts, g->n_consts, g->cap_consts, v);
}

static void finish_node(Folder *f, Node *n) {
    node_remove(n);
    f->folded++;
    f->progress = true;
}

static void run_node(Folder *f, Graph *g, Node *n) {
    Binder *b = f->binder;
    binder_reset(b);
    if (!bind_node(b, n))
        return;
    Program *p = binder_program(b);
    program_plan(f->module->arena, p, true);
    Runner *r = runner_new(f->module->arena, p);
    runner_run(r);
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !runner_value(r, n->out[i]))
            return;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            make_const(f, g, n->out[i], runner_value(r, n->out[i]));
    finish_node(f, n);
}

/* Shape and Size depend on the type of their operand alone. */
static bool fold_shape(Folder *f, Graph *g, Node *n) {
    bool size = node_is(n, "Size");
    if ((!size && !node_is(n, "Shape")) || n->n_in != 1 || !n->in[0] || n->n_out != 1 || !n->out[0])
        return false;
    Type t = n->in[0]->type;
    size_t count;
    if (t.kind != TYPE_TENSOR || !type_count(t, &count))
        return false;
    int64_t dims[MAX_RANK + 1], total = (int64_t)count, start = 0, end = t.rank;
    const Attr *from = node_attr(n, "start"), *to = node_attr(n, "end");
    start = from && from->kind == ATTR_INT ? from->v.i[0] : 0;
    end = to && to->kind == ATTR_INT ? to->v.i[0] : t.rank;
    start += start < 0 ? t.rank : 0;
    end += end < 0 ? t.rank : 0;
    start = start < 0 ? 0 : start > t.rank ? t.rank : start;
    end = end < start ? start : end > t.rank ? t.rank : end;
    for (int i = 0; i < t.rank; i++)
        dims[i] = t.dims[i].value;
    int64_t shape[1] = {end - start};
    n->out[0]->type = type_fixed(f->module->arena, ELEM_INT64, size ? 0 : 1, shape);
    make_const(f, g, n->out[0], size ? &total : dims + start);
    finish_node(f, n);
    return true;
}

static void fold_graph(Graph *g, void *ctx) {
    Folder *f = ctx;
    FOR_NODES(n, g)
    if (!fold_shape(f, g, n) && foldable(f, n))
        run_node(f, g, n);
}

size_t module_fold(Module *m, const FoldOptions *o) {
    Folder f = {.module = m, .max_bytes = o && o->max_bytes ? o->max_bytes : DEFAULT_MAX_BYTES};
    Diags *quiet = diags_new(m->arena, NULL, false);
    f.binder = binder_new(m->arena, m, NULL, quiet);
    do { /* what became constant may fix shapes, which may make more constant */
        f.progress = false;
        module_each_graph(m, fold_graph, &f);
    } while (f.progress && module_infer(m, quiet));
    return f.folded;
}
