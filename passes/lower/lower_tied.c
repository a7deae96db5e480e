/* Gather of rows of the weights of a MatMulNBits as com.microsoft::GatherBlockQuantized of the same
 * constants. B is [n, blocks, bytes of a block], and its rows [n, bytes], which a Reshape makes of
 * it: runtimes compute that once, when they load the model. Scales and zero points are the same in
 * both operators.
 *
 * Where the weights are [k, n], a Gather along axis 1 has looked columns up, and a Transpose behind
 * it has made rows of them: GatherBlockQuantized yields these. */
#include "passes/lower/lower_tied.h"

#include "passes/edit.h"

/* The Transpose that alone reads looked-up columns [k, ...] and makes [..., k] of them. */
static Node *turned_back(const Uses *uses, const Value *columns) {
    Node *n = uses_only_here(uses, columns);
    const Attr *perm = n && node_is(n, "Transpose") ? node_attr(n, "perm") : NULL;
    size_t rank = columns->type.rank < 0 ? 0 : (size_t)columns->type.rank;
    if (!perm || perm->kind != ATTR_INTS || perm->n != rank || !rank)
        return NULL;
    for (size_t i = 0; i < rank; i++)
        if (perm->v.i[i] != (int64_t)((i + 1) % rank))
            return NULL;
    return n;
}

static Value *rows_of(QuantBuild *b, Node *at, Packed *p) {
    int64_t shape[] = {p->n, p->k * p->bits / 8};
    Value *dims = build_const(b, p->of->name, "_rows_shape", ELEM_INT64, 1, (int64_t[]){2}, shape);
    return build_step(b, at, "Reshape", OPERANDS(p->b, dims),
                      type_fixed(b->a, ELEM_UINT8, 2, shape), p->of->name);
}

const char *lower_tied(QuantBuild *b, const Uses *uses, Node *gather, Packed *p) {
    int64_t axis = node_int(gather, "axis", 0);
    axis += axis < 0 ? 2 : 0;
    bool vector = gather->out[0]->type.rank == 1; /* a single column is a row as it stands */
    Node *back = p->transposed || vector ? NULL : turned_back(uses, gather->out[0]);
    if (axis != (p->transposed ? 0 : 1) || (!p->transposed && !vector && !back))
        return "GatherBlockQuantized looks rows up";
    if (p->k % p->block)
        return "MatMulNBits and GatherBlockQuantized share rows of whole blocks alone";
    if (!p->rows || p->rows->graph != gather->graph)
        p->rows = rows_of(b, gather, p);
    node_absorb(gather, gather->in[0]->def, b->pass);
    if (back) {
        node_absorb(gather, back, b->pass);
        Value *y = back->out[0];
        node_remove(back);
        node_take_result(gather, 0, y);
    }
    node_becomes(gather, b->pass);
    gather->domain = STR("com.microsoft");
    gather->op = STR("GatherBlockQuantized");
    gather->n_attrs = 0;
    gather->in[0] = p->rows;
    set_operand(gather, 2, p->scales);
    if (p->zero_points)
        set_operand(gather, 3, p->zero_points);
    node_set_int(gather, "bits", p->bits);
    node_set_int(gather, "block_size", p->block);
    node_set_int(gather, "gather_axis", 0);
    node_set_int(gather, "quantize_axis", 1);
    op_resolve(gather, b->d);
    return NULL;
}
