/* PRelu: x, or slope * x where x is negative. From opset 9 the slope broadcasts to x in one
 * direction as in numpy. With one slope for all it is a table on 8-bit integers, like LeakyRelu. */
#include "ir/ops/bind.h"

enum { X, SLOPE };

static bool verify(const OpCtx *c) {
    Type x = op_type(c, X), s = op_type(c, SLOPE);
    if (x.rank < 0 || s.rank < 0 || c->opset < 9)
        return true;
    if (s.rank > x.rank)
        return op_error_in(c, SLOPE, "the slope has rank %d, the input %d", s.rank, x.rank);
    for (int i = 0; i < s.rank; i++) {
        int64_t have = s.dims[i].value, dim = x.dims[i + x.rank - s.rank].value;
        if (have >= 0 && have != 1 && dim >= 0 && dim != have)
            return op_error_in(c, SLOPE, "slope %s does not broadcast to %s",
                               type_text(c->arena, s), type_text(c->arena, x));
    }
    return true;
}

static const Tensor *single_slope(const OpCtx *c) {
    const Tensor *t = op_const(c, SLOPE);
    return t && t->data && t->count == 1 && elem_is_float(t->elem) ? t : NULL;
}

static const char *integer_refusal(const OpCtx *c, const Quant *x) {
    (void)x;
    return single_slope(c)
               ? NULL
               : "it has a slope for each channel, for which there is no integer kernel";
}

static float prelu(float x, const void *ctx) {
    return x < 0 ? *(const float *)ctx * x : x;
}

static bool upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)names;
    const Value *s = node_input(n, SLOPE);
    Type x = n->in[X]->type;
    bool channels = s && s->type.rank == 1 && x.rank > 2 && s->type.dims[0].value != 1;
    if (from < 9 && to >= 9 && channels) /* opset 7 let one number a channel broadcast */
        return diag_error(d, n->loc,
                          "PRelu of opset %lld with one slope a channel of shape [C] "
                          "must be written [C,1,1]",
                          (long long)from);
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const Tensor *slope = single_slope(c);
    if (op_quant(n->in[X])) {
        if (!slope)
            return bind_in_double(b, n);
        float k = (float)tensor_float(slope, 0);
        return bind_table(b, n, n->in[X], n->out[0], prelu, &k);
    }
    Broadcast s = bind_broadcast(n->in[X]->type, n->in[SLOPE]->type, n->out[0]->type);
    return bind_floats_only(b, n) &&
           bind_binary(b, n, "prelu", ELEM_FLOAT, s,
                       (int[]){bind_value(b, n->in[X]), bind_value(b, n->in[SLOPE]),
                               bind_value(b, n->out[0])});
}

const OpDef op_PRelu = {
    .domain = "",
    .name = "PRelu",
    .verify = verify,
    .infer = op_same_type,
    .quant = {.kind = QUANT_COMPUTE,
              .data = 1u << X,
              .homogeneous = true,
              .widest = 8,
              .integer_refusal = integer_refusal},
    .upgrade = upgrade,
    .bind = bind,
};
