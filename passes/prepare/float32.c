/* A model that computes in float16 or bfloat16 computes in float: constants keep their numbers,
 * what was rounded behind each operator no longer is. Inputs and outputs are float, too. Quantizing
 * wants that, as runtimes have integer kernels between floats only. Values of still smaller types
 * are kept: their types are about quantization. */
#include "passes/edit.h"
#include "passes/quant_build.h"

typedef struct Widen {
    Module *m;
    Uses *uses;
    size_t values;
    Value *port; /* the first input or output that changed */
} Widen;

static bool is_half(ElemType e) {
    return e == ELEM_FLOAT16 || e == ELEM_BFLOAT16;
}

static Tensor *widen_tensor(Arena *a, const Tensor *t) {
    Tensor *to = floats_as(a, t, ELEM_FLOAT);
    to->name = t->name;
    to->doc = t->doc;
    to->meta = t->meta;
    to->loc = t->loc;
    return to;
}

static Type widen_type(Arena *a, Type t) {
    if (is_half(t.elem))
        t.elem = ELEM_FLOAT;
    if (t.quant && (is_half(t.quant->expressed) || is_half(t.quant->scale_type))) {
        Quant *q = quant_copy(a, t.quant);
        q->expressed = is_half(q->expressed) ? ELEM_FLOAT : q->expressed;
        q->scale_type = is_half(q->scale_type) ? ELEM_FLOAT : q->scale_type;
        t.quant = q;
    }
    return t;
}

static void widen_value(Value *v, void *ctx) {
    Widen *w = ctx;
    if (v->type.kind == TYPE_TENSOR) {
        w->values += is_half(v->type.elem);
        if (is_half(v->type.elem) && v->kind == VALUE_INPUT && v->graph == w->m->graph && !w->port)
            w->port = v;
        v->type = widen_type(w->m->arena, v->type);
    }
    if (v->data && is_half(v->data->elem) && v->data->data)
        v->data = widen_tensor(w->m->arena, v->data);
}

/* What attributes say about types (Cast's `to`, `dtype`) and hold in them. */
static void widen_attrs(Widen *w, Node *n) {
    static const char *const names[] = {"to", "dtype", "output_dtype", "stash_type",
                                        "softmax_precision"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_half((ElemType)node_int(n, names[i], 0)))
            node_set_int(n, names[i], ELEM_FLOAT);
    for (size_t i = 0; i < n->n_attrs; i++) {
        Attr *at = &n->attrs[i];
        if (attr_holds(at, ATTR_TENSOR) && is_half(at->v.t[0]->elem) && at->v.t[0]->data)
            node_set_tensor(n, arena_str(w->m->arena, at->name).s,
                            widen_tensor(w->m->arena, at->v.t[0]));
    }
    op_resolve(n, w->m->diags);
}

static void widen_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    widen_attrs(ctx, n);
}

/* A Cast of floats to float does nothing. */
static void drop_casts(Graph *g, void *ctx) {
    Widen *w = ctx;
    FOR_NODES(n, g) {
        if (node_cast(n) != ELEM_FLOAT || !n->in[0] || n->in[0]->type.kind != TYPE_TENSOR ||
            n->in[0]->type.elem != ELEM_FLOAT || n->in[0]->type.quant ||
            uses_is_output(w->uses, n->out[0]))
            continue;
        value_replace(w->m, w->uses, n->out[0], n->in[0]);
        node_remove(n);
    }
}

bool pass_float32(Module *m, PassContext *c) {
    Widen w = {.m = m};
    module_each_value(m, widen_value, &w);
    if (!w.values)
        return true;
    module_each_graph(m, widen_graph, &w);
    w.uses = uses_new(m);
    module_each_graph(m, drop_casts, &w);
    edit_forget_outputs(m->graph);
    diag(c->d, DIAG_REMARK, w.port ? w.port->loc : LOC_NONE,
         "%zu values of float16 or bfloat16 become float%s", w.values,
         w.port ? ", inputs and outputs among them" : "");
    return true;
}
