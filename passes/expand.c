#include "passes/expand.h"

Expand expand_new(Module *m, PassContext *c, const char *pass) {
    Expand e = {.b = quant_build_new(m, c, pass)};
    e.b.opset = module_opset(m, STR(""));
    return e;
}

bool expand_fits(const Expand *e, const Node *n) {
    return e->b.opset >= EXPAND_OPSET ||
           diag_error(e->b.d, n->loc, "%s: ONNX has operators for it from opset %d on, not in %lld",
                      node_text(n), EXPAND_OPSET, (long long)e->b.opset);
}

void expand_at(Expand *e, Node *n) {
    Value *x = n->n_in ? n->in[0] : NULL;
    e->n = n;
    e->base = STR("expanded");
    for (size_t i = n->n_out; i-- > 0;)
        if (n->out[i])
            e->base = base_name(n->out[i]->name);
    e->elem = x && elem_is_float(type_real_elem(x->type)) ? type_real_elem(x->type) : ELEM_FLOAT;
    e->named = false;
}

/* ---- nodes ---- */

static Node *begin(Expand *e, const char *op, Value *const *operands, size_t n) {
    bool first = !e->named && (strcmp(op, "MatMul") == 0 || strcmp(op, "LayerNormalization") == 0);
    Str name = e->n->name;
    if (name.n && !first)
        name = unique_name(e->b.names, arena_strf(e->b.a, STR_FMT "_%s", STR_ARG(name), op));
    Node *made = build_node(&e->b, e->n, op, STR_NONE, operands, n);
    made->name = name; /* what computes most of it is what rules about it mean */
    e->named |= first;
    return made;
}

static Value *finish(Expand *e, Node *made) {
    Str name = derived_name(&e->b, e->base, arena_strf(e->b.a, "_" STR_FMT, STR_ARG(made->op)).s);
    node_add_output(made, 0, name, (Type){0});
    node_insert_before(e->n, made);
    if (op_resolve(made, e->b.d))
        node_infer(made, e->b.d);
    return made->out[0];
}

Value *expand_op(Expand *e, const char *op, Value *const *operands, size_t n) {
    return finish(e, begin(e, op, operands, n));
}

Value *expand_int(Expand *e, const char *op, Value *x, Value *y, const char *attr, int64_t v) {
    Node *made = begin(e, op, (Value *const[]){x, y}, 2);
    node_set_int(made, attr, v);
    return finish(e, made);
}

Value *expand_ints(Expand *e, const char *op, Value *x, const char *attr, const int64_t *v,
                   size_t n) {
    Node *made = begin(e, op, &x, 1);
    node_set_ints(made, attr, v, n);
    return finish(e, made);
}

/* ---- constants ---- */

Value *expand_number(Expand *e, const char *suffix, double v) {
    float f = (float)v;
    if (e->elem == ELEM_DOUBLE)
        return build_const(&e->b, e->base, suffix, ELEM_DOUBLE, 0, NULL, &v);
    return build_floats(&e->b, e->base, suffix, e->elem, 0, NULL, &f);
}

Value *expand_list(Expand *e, const char *suffix, const int64_t *v, size_t n) {
    int64_t dim = (int64_t)n;
    return build_const(&e->b, e->base, suffix, ELEM_INT64, 1, &dim, v);
}

/* ---- results ---- */

bool expand_has_result(const Expand *e, size_t i) {
    return i < e->n->n_out && e->n->out[i];
}

Value *expand_yield(Expand *e, size_t i, Value *v) {
    Value *y = e->n->out[i];
    node_take_result(v->def, (size_t)v->index, y);
    return y;
}

void expand_end(Expand *e) {
    node_remove(e->n);
}
