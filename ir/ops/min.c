/* Min and Max of any number of operands. From opset 8 they broadcast; 12 and 13 added types. On
 * integers operands are brought to the result's parameters first; as scales are positive, the order
 * is that of the numbers. */
#include "ir/ops/bind.h"

static bool fits_kernel(const Node *n) {
    const Quant *y = op_quant(n->out[0]);
    for (size_t i = 0; i < n->n_in; i++)
        if (!quant_plain(op_quant(n->in[i])))
            return false;
    return quant_plain(y);
}

/* The types as the operands broadcast so far. */
static Type shape_so_far(const Node *n, size_t last) {
    Type y = n->out[0]->type, x = n->in[last]->type;
    return last + 1 == n->n_in && n->n_in > 1 ? y : x;
}

/* One operand, on a grid of its own perhaps. */
static bool bind_alone(Binder *b, const Node *n) {
    const Value *x = n->in[0], *y = n->out[0];
    if (bind_equal_quant(x, y))
        return bind_alias(b, n, y, x);
    int32_t lo, hi;
    quant_range(op_quant(y), &lo, &hi);
    return bind_requantize(b, n, x, bind_value(b, x), op_quant(y), bind_value(b, y), lo, hi);
}

static bool bind(Binder *b, const Node *n, const char *op) {
    const Value *y = n->out[0];
    bool ok = true;
    if (bind_any_quant(n) && !fits_kernel(n))
        return bind_in_double(b, n);
    if (n->n_in == 1)
        return bind_alone(b, n);
    ElemType e = bind_elem(y);
    int so_far = bind_joined(b, n, n->in[0], &ok);
    Type t = shape_so_far(n, 0);
    for (size_t i = 1; i < n->n_in && ok; i++) {
        bool last = i + 1 == n->n_in;
        int x = bind_joined(b, n, n->in[i], &ok);
        int to = last ? bind_value(b, y) : bind_temp(b, e, (size_t)bind_count(y));
        Broadcast s = bind_broadcast(t, n->in[i]->type, y->type);
        ok = ok && bind_binary(b, n, op, e, s, (int[]){so_far, x, to});
        so_far = to;
        t = y->type;
    }
    return ok;
}

static bool min_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind(b, n, "min");
}

static bool max_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind(b, n, "max");
}

const OpDef op_Min = {
    .domain = "",
    .name = "Min",
    .commutes = true,
    .infer = op_broadcast,
    .quant = {.kind = QUANT_JOIN, .data = 1u << 31},
    .passes_on = op_is_alone,
    .bind = min_bind,
};

const OpDef op_Max = {
    .domain = "",
    .name = "Max",
    .commutes = true,
    .infer = op_broadcast,
    .quant = {.kind = QUANT_JOIN, .data = 1u << 31, .exceeds = true},
    .passes_on = op_is_alone,
    .bind = max_bind,
};
