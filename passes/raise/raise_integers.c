/* Plain integers, and numbers of float8, that only travel between Q, DQ and operators that move
 * data become values of a quantized type. Integers that are linked by movers or by the branches of
 * If form a class; a class is raised when all that makes them agrees and nobody looks at the
 * integers themselves. What reads them with other parameters reads a reinterpretation. */
#include "passes/edit.h"
#include "passes/raise/integer_classes.h"

static Value *float_of_int(Classes *c, Value *v, const Quant *q) {
    const Tensor *t = value_data(v);
    float *x = NEW_ARRAY(c->r->b.a, float, t->count);
    for (size_t i = 0; i < t->count; i++)
        x[i] = (float)(tensor_int(t, i) - quant_zp(q, 0)) * quant_scale(q, 0);
    return build_const(&c->r->b, v->name, "_float", ELEM_FLOAT, t->rank, t->dims, x);
}

/* A Pad without a value pads with the integer 0, which may be another number. */
static void state_fill(Classes *c, Node *n, const Quant *q) {
    size_t i = fill_operand(n);
    if (i && n->n_in >= i && (n->n_in == i || !n->in[i]) && quant_zp(q, 0) != 0)
        set_operand(n, i, build_int(&c->r->b, n->out[0]->name, "_pad", q->storage, 0));
}

/* Constants among a raised mover's operands: data takes the quantized type, bounds become real. */
static void raise_mover(Classes *c, Node *n) {
    const Quant *q = NULL;
    for (size_t i = 0; i < n->n_in && !q; i++)
        q = n->in[i] ? class_quant(c, n->in[i]) : NULL;
    for (size_t i = 0; i < n->n_out && !q; i++) /* of constants alone */
        q = n->out[i] ? class_quant(c, n->out[i]) : NULL;
    if (!q || !keeps_integers(n))
        return;
    if (node_interpolates(n))
        diag(
            c->r->c->d, DIAG_REMARK, n->loc,
            "%s of integers: runtimes may cut off what lies between two of them, where types round "
            "it: results differ by a step",
            node_text(n));
    drop_idle_fill(n);
    state_fill(c, n, q);
    bool bounds = n->def->quant.kind == QUANT_CLAMP;
    size_t fill = fill_operand(n);
    for (size_t i = 0; i < n->n_in; i++) {
        Value *v = n->in[i];
        if (v && value_data(v) && quant_rule_is_data(&n->def->quant, i))
            n->in[i] = raise_const(c->r, v, class_before_mover(c, n, q));
        else if (v && value_data(v) && (bounds || (fill && i == fill)))
            n->in[i] = float_of_int(c, v, q);
    }
}

/* The integers as numbers of the DQ's scale and zero point, behind what makes them. */
static Value *reinterpreted(Classes *c, Value *ints, const Quant *of, const Quant *dq, Node *user) {
    Raise *r = c->r;
    Quant *q = quant_copy(r->b.a, dq);
    q->storage = of->storage;
    q->has_range = of->has_range;
    q->lo = of->lo;
    q->hi = of->hi;
    Value *known = raise_twin(r, ints, q);
    if (known)
        return known;
    Node *n = build_node(&r->b, user, "Reinterpret", STR_NONE, OPERANDS(ints));
    n->domain = STR("qxc");
    Value *y = node_add_output(n, 0, derived_name(&r->b, ints->name, "_reinterpreted"),
                               type_quantized(ints->type, q));
    place_behind(ints, n, user);
    op_resolve(n, r->b.d);
    raise_note_twin(r, ints, y);
    return y;
}

static void raise_node(Classes *c, Node *n) {
    bool dequantize = is_onnx_dequantize(n);
    if (!dequantize && !is_onnx_quantize(n)) {
        raise_mover(c, n);
        return;
    }
    Value *ints = class_converted(n);
    const char *why;
    const Quant *q = NULL;
    if (dequantize && value_data(ints))
        q = raise_params(c->r, n, &why);
    const Quant *made = class_quant(c, ints);
    if (q)
        n->in[0] = raise_const(c->r, ints, q);
    else if (!made)
        return;
    else if (dequantize && (q = raise_params(c->r, n, &why)) && !quant_equal(made, q) &&
             !class_equal_in_range(c, made, q))
        n->in[0] = reinterpreted(c, ints, made, q, n);
    drop_params(n, c->r->b.d);
}

static void raise_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    raise_node(ctx, n);
}

static void type_value(Value *v, void *ctx) {
    const Quant *q = class_quant(ctx, v);
    if (q)
        v->type = type_quantized(v->type, q);
}

void raise_integers(Raise *r) {
    Classes c = classes_new(r);
    classes_note(&c, r->m);
    raise_each_graph(r->m, raise_graph, &c);
    module_each_value(r->m, type_value, &c); /* once all nodes were rewritten */
    edit_order(r->m);
}
