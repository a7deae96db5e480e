/* Integers that stand as floats and got a step are read as the numbers they were by whoever looks
 * at them: what the graph yields, or an operator that computes on them. The integers are the same,
 * so these read a reinterpretation of scale 1. */
#include "passes/edit.h"
#include "passes/raise/raise_scaling.h"

/* `op` of x, right behind it. */
static Value *follow(Scaling *s, const char *op, Value *x, Type type, const char *suffix,
                     Node *user) {
    Node *n = build_node(&s->b, x->def, op, STR_NONE, OPERANDS(x));
    if (strcmp(op, "Reinterpret") == 0)
        n->domain = STR("qxc");
    node_add_output(n, 0, derived_name(&s->b, x->name, suffix), type);
    place_behind(x, n, user);
    op_resolve(n, s->b.d);
    return n->out[0];
}

/* The graph yields y in the place of v, under the name that went out before. */
static void yield(const Use *use, Value *v, Value *y) {
    Str name = y->name;
    y->name = v->name;
    v->name = name;
    y->declared = v->declared;
    y->doc = v->doc;
    y->meta = v->meta;
    use->graph->out[use->index] = y;
}

void scaling_as_numbers(Scaling *s, Map *made, Value *v, const Use *use, const Quant *q) {
    static const float one = 1;
    Value *y = map_get(made, value_key(v));
    if (!y) {
        Quant *plain = quant_copy(s->b.a, q);
        plain->scale = &one;
        Type real = real_type(v->type);
        Node *user = use->node;
        Value *ints = follow(s, "QuantizeLinear", v, type_quantized(real, q), "_quantized", user);
        Value *same = follow(s, "Reinterpret", ints, type_quantized(real, plain), "_numbers", user);
        y = follow(s, "DequantizeLinear", same, real, "_real", user);
        map_set(made, value_key(v), y);
    }
    if (use->node)
        use->node->in[use->index] = y;
    else
        yield(use, v, y);
}
