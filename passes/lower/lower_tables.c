/* Gather of a table in blocks as com.microsoft::GatherBlockQuantized: Gather(DequantizeLinear(t),
 * ids) would make the whole table float in each run. As raise_gather.c reads it: tables of int4 and
 * uint4 stay what they are, those of 8 bits are uint8, whose zero point is 128 where none is given.
 */
#include "ir/later.h"
#include "passes/edit.h"
#include "passes/quant_build.h"

typedef struct Tables {
    QuantBuild b;
    PassContext *c;
    Node **left; /* DequantizeLinear that may be of no use any more */
    size_t n_left, cap_left;
} Tables;

/* The axis in blocks, the only one; -1 where GatherBlockQuantized has no such table. */
static int blocked_axis(const Quant *q, int rank) {
    int axis = -1;
    if (q->n_axes != rank || q->kind != QUANT_PARAMS || q->expressed != ELEM_FLOAT)
        return -1;
    for (int i = 0; i < rank; i++) {
        if (q->axis[i] != i || (q->block[i] > 1 && axis >= 0))
            return -1;
        axis = q->block[i] > 1 ? i : axis;
    }
    return axis >= 0 && is_nbits_block(q->block[axis]) ? axis : -1;
}

/* NULL where the node can take the form, of which bytes are looked up in rows alone. */
static const char *refusal(const Node *n, const Quant *q, const Tensor *t) {
    int axis = blocked_axis(q, t->rank), bits = elem_bits(q->storage);
    int64_t along = node_int(n, "axis", 0);
    if (axis < 0 || (bits != 4 && bits != 8))
        return "GatherBlockQuantized has 4 or 8 bits in blocks of 16, 32, 64, ... along one axis";
    along += along < 0 ? t->rank : 0;
    if (along == axis || (bits == 8 && (along != 0 || axis != t->rank - 1)))
        return "GatherBlockQuantized has other blocks for it";
    return NULL;
}

static int64_t offset(const Quant *q) {
    return q->storage == ELEM_INT8 ? 128 : 0;
}

static ElemType stored(const Quant *q) {
    return q->storage == ELEM_INT8 ? ELEM_UINT8 : q->storage;
}

static Value *table(Tables *x, const Value *v, const Quant *q) {
    const Tensor *from = v->data;
    later_make(x->b.m, v->data);
    uint8_t *out;
    Tensor *t = tensor_new(x->b.a, stored(q), from->rank, from->dims, &out);
    for (size_t i = 0; i < from->count; i++)
        elem_store_int(t->elem, out, i, tensor_int(from, i) + offset(q));
    Value *made = build_shared(&x->b, x->b.m->graph, v->name, "_packed", tensor_type(x->b.a, t), t);
    if (!made->from.n)
        value_from(made, v, x->b.pass);
    return made;
}

static void put_params(Tables *x, Node *n, const Value *v, const Quant *q, int axis) {
    int64_t dims[MAX_RANK], none = elem_bits(q->storage) == 8 ? 128 : 0;
    float *scale = NEW_ARRAY(x->b.a, float, q->n_scale);
    uint8_t *out;
    bool all = true;
    for (int i = 0; i < v->data->rank; i++)
        dims[i] = (v->data->dims[i] + q->block[i] - 1) / q->block[i];
    Tensor *zp = tensor_new(x->b.a, stored(q), v->data->rank, dims, &out);
    for (size_t i = 0; i < q->n_scale; i++) {
        int64_t z = quant_zp(q, i) + offset(q);
        scale[i] = quant_scale(q, i);
        elem_store_int(zp->elem, out, i, z);
        all = all && z == none;
    }
    set_operand(n, 2,
                build_floats(&x->b, v->name, "_scales", ELEM_FLOAT, v->data->rank, dims, scale));
    if (!all)
        set_operand(n, 3,
                    build_shared(&x->b, x->b.m->graph, v->name, "_zero_points",
                                 tensor_type(x->b.a, zp), zp));
    node_set_int(n, "block_size", q->block[axis]);
    node_set_int(n, "quantize_axis", axis);
}

static void rewrite(Tables *x, Node *n, Node *dq) {
    const Value *v = dq->in[0];
    const Quant *q = v->type.quant;
    int64_t along = node_int(n, "axis", 0);
    ARENA_PUSH(x->b.a, x->left, x->n_left, x->cap_left, dq);
    node_absorb(n, dq, x->b.pass);
    node_becomes(n, x->b.pass);
    n->domain = STR("com.microsoft");
    n->op = STR("GatherBlockQuantized");
    n->n_attrs = 0;
    n->in[0] = table(x, v, q);
    put_params(x, n, v, q, blocked_axis(q, v->data->rank));
    node_set_int(n, "gather_axis", along < 0 ? along + v->data->rank : along);
    if (elem_bits(q->storage) == 8)
        node_set_int(n, "bits", 8);
    module_import_microsoft(x->b.m);
    op_resolve(n, x->b.d);
}

static void lower_graph(Graph *g, void *ctx) {
    Tables *x = ctx;
    FOR_NODES(n, g) {
        Node *dq = node_is(n, "Gather") && n->n_in == 2 && n->in[0] ? n->in[0]->def : NULL;
        if (!dq || !is_own_dequantize(dq) || !value_is_const(dq->in[0]) ||
            !quant_is_blocked(dq->in[0]->type.quant) || n->out[0]->type.elem != ELEM_FLOAT)
            continue;
        const char *why = refusal(n, dq->in[0]->type.quant, dq->in[0]->data);
        if (why)
            pass_remark(x->c, n, "%s", why);
        else
            rewrite(x, n, dq);
    }
}

bool pass_lower_tables(Module *m, PassContext *c) {
    Tables x = {.b = quant_build_new(m, c, "lower-tables"), .c = c};
    if (!target_has_microsoft(c->target))
        return true;
    module_each_graph(m, lower_graph, &x);
    edit_drop_unread(m, x.left, x.n_left);
    edit_sweep(m);
    return true;
}
