/* Integers that stand as floats and got a step are read as the numbers they were by whoever looks
 * at them: what the graph yields, or an operator that computes on them. The integers are the same,
 * so these read a reinterpretation of scale 1. */
#include <math.h>

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
    if (use->node) {
        use->node->in[use->index] = y;
    } else {
        edit_take_name(v, y);
        use->graph->out[use->index] = y;
    }
}

static size_t digits(const Scaling *s, float v) {
    Buf b = buf_new(s->b.a);
    buf_f32(&b, v);
    return b.n;
}

/* Of 1/7 as a float the reciprocal is 6.9999997, between two floats; 7 is one of those whose own
 * reciprocal it is, and who wrote down a number wrote one of few digits. */
double scaling_reciprocal(const Scaling *s, float k) {
    enum { MEANT = 3 }; /* so many digits less are no chance */
    float near = 1 / k, found[] = {nextafterf(near, 0), near, nextafterf(near, INFINITY)};
    size_t most = digits(s, near);
    for (int i = 0; i < 3; i++)
        if (1 / found[i] == k && digits(s, found[i]) + MEANT <= most)
            return found[i];
    return 1 / (double)k;
}
