/* MatMul with constant weights and an Add of one number a column becomes Gemm, between two Reshapes
 * where the operand has more than two dimensions: the sum then gets its bias before it is rounded,
 * instead of being rounded, added to, and rounded again. Reshapes cost nothing. A product of
 * matrices with another affine operator behind it (BatchNormalization) becomes a Gemm that has room
 * for the bias which fold-affine makes of that. */
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/quant_build.h"

static const char PASS_NAME[] = "matmul-to-gemm";

typedef struct Rewrite {
    PassContext *c;
    QuantBuild b;
    Uses *uses;
    Arena *arena;
    Map *shapes; /* that were computed: of which value, where, with how many columns */
} Rewrite;

/* The numbers of a float constant, or of integers that are dequantized here; NULL where it is none.
 */
static const Tensor *real_const(Rewrite *r, const Value *v) {
    const Value *ints = v && v->def && is_own_dequantize(v->def) ? v->def->in[0] : NULL;
    return ints && value_data(ints) && value_data(ints)->data
               ? const_dequantize(r->arena, value_data(ints), ints->type.quant)
               : edit_float_const(v);
}

/* What a quantized or float constant has for dimensions. */
static const Tensor *weight_of(const Value *v) {
    return value_is_const(v) && type_is_quantized(v->type) ? value_data(v) : edit_float_const(v);
}

/* The bias that `add` adds to columns of `y`, with the index of its operand; NULL when it does not.
 */
static Value *column_bias(Rewrite *r, const Node *add, const Value *y, int64_t columns) {
    if (!node_is(add, "Add") || add->n_in != 2 || !add->out[0])
        return NULL;
    Value *b = add->in[add->in[0] == y ? 1 : 0];
    const Tensor *t = edit_is_decided(b) ? NULL : real_const(r, b);
    bool fits = t && t->rank > 0 && t->rank <= y->type.rank && t->dims[t->rank - 1] == columns &&
                t->count == (size_t)columns;
    return fits ? b : NULL;
}

static Node *shape_node(Rewrite *r, Node *before, const char *op, size_t n_in, int64_t length) {
    Node *n = node_new(before->graph, STR_NONE, str_from(op), n_in, 1);
    Dim *dims = NEW_ARRAY(r->arena, Dim, 1);
    dims[0] = dim_of(length);
    n->loc = before->loc;
    node_from(n, before, PASS_NAME);
    Str name = arena_strf(r->arena, STR_FMT "_%s", STR_ARG(before->out[0]->name), op);
    node_add_output(n, 0, unique_name(r->b.names, name), type_tensor(ELEM_INT64, 1, dims));
    node_insert_before(before, n);
    return n;
}

static Value *ints(Rewrite *r, const Node *n, const char *suffix, int64_t v) {
    int64_t one = 1;
    Str name = arena_strf(r->arena, STR_FMT "_%s", STR_ARG(n->out[0]->name), suffix);
    Value *c = graph_add_const(
        n->graph, unique_name(r->b.names, name), type_fixed(r->arena, ELEM_INT64, 1, &one),
        tensor_of(r->arena, ELEM_INT64, 1, &one, arena_copy(r->arena, &v, sizeof v)));
    value_from_node(c, n, PASS_NAME);
    return c;
}

/* All dimensions of `x` but the last. */
static Value *leading_dims(Rewrite *r, Node *n, Value *x) {
    int rank = x->type.rank;
    bool newer = module_opset(n->graph->module, STR("")) >= 15; /* Shape has bounds of its own */
    Node *shape = shape_node(r, n, "Shape", 1, newer ? rank - 1 : rank);
    shape->in[0] = x;
    if (newer)
        node_set_int(shape, "end", -1);
    op_resolve(shape, r->c->d);
    if (newer)
        return shape->out[0];
    Node *rows = shape_node(r, n, "Slice", 3, rank - 1);
    rows->in[0] = shape->out[0];
    rows->in[1] = ints(r, n, "first", 0);
    rows->in[2] = ints(r, n, "last", rank - 1);
    op_resolve(rows, r->c->d);
    return rows->out[0];
}

/* The shape of `x` with another last dimension, computed before `n`; the same for the products that
 * read one value. */
static Value *computed_shape(Rewrite *r, Node *n, Value *x, int64_t columns) {
    struct {
        const Value *x;
        const Graph *g;
        int64_t columns;
    } key = {x, n->graph, columns};
    Str known = {(const char *)&key, sizeof key};
    Value *shape = map_get(r->shapes, known);
    if (shape)
        return shape;
    Node *all = shape_node(r, n, "Concat", 2, x->type.rank);
    all->in[0] = leading_dims(r, all, x);
    all->in[1] = ints(r, n, "columns", columns);
    node_set_int(all, "axis", 0);
    op_resolve(all, r->c->d);
    map_set(r->shapes, (Str){arena_copy(r->arena, &key, sizeof key), sizeof key}, all->out[0]);
    return all->out[0];
}

/* The shape of `t` as a constant for Reshape; NULL where more than one dimension is not known. */
static Value *shape_of(Rewrite *r, const Node *n, Type t) {
    int64_t rank = t.rank, *data = NEW_ARRAY(r->arena, int64_t, (size_t)rank);
    int unknown = 0;
    for (int i = 0; i < rank; i++) {
        data[i] = t.dims[i].value < 0 ? -1 : t.dims[i].value;
        if (data[i] == 0)
            return NULL;
        unknown += data[i] < 0;
    }
    if (unknown > 1)
        return NULL;
    Str name = arena_strf(r->arena, STR_FMT "_shape", STR_ARG(n->out[0]->name));
    Value *v = graph_add_const(n->graph, unique_name(r->b.names, name),
                               type_fixed(r->arena, ELEM_INT64, 1, &rank),
                               tensor_of(r->arena, ELEM_INT64, 1, &rank, data));
    value_from_node(v, n, PASS_NAME);
    return v;
}

static Node *reshape(Rewrite *r, const Node *n, const char *suffix, Value *x, Value *shape) {
    Node *to = node_new(n->graph, STR_NONE, STR("Reshape"), 2, 1);
    if (n->name.n)
        to->name =
            unique_name(r->b.names, arena_strf(r->arena, STR_FMT "_%s", STR_ARG(n->name), suffix));
    to->loc = n->loc;
    node_from(to, n, PASS_NAME);
    to->in[0] = x;
    to->in[1] = shape;
    return to;
}

static Value *result(Rewrite *r, Node *n, const Value *like, const char *suffix, Type t) {
    Str name = arena_strf(r->arena, STR_FMT "_%s", STR_ARG(like->name), suffix);
    return node_add_output(n, 0, unique_name(r->b.names, name), t);
}

static Type matrix(Rewrite *r, int64_t columns, Type of) {
    Dim *dims = NEW_ARRAY(r->arena, Dim, 2);
    dims[0] = dim_unknown();
    dims[1] = dim_of(columns);
    of.rank = 2;
    of.dims = dims;
    return of;
}

/* n makes the result of `add`, whose constant is its bias. */
static void take_over(Rewrite *r, Node *n, Node *add, Value *bias) {
    const Tensor *t = real_const(r, bias);
    int64_t count = (int64_t)t->count;
    float *data = NEW_ARRAY(r->arena, float, t->count);
    for (size_t i = 0; i < t->count; i++)
        data[i] = (float)tensor_float(t, i);
    Tensor *flat = tensor_of(r->arena, ELEM_FLOAT, 1, &count, data);
    node_becomes(n, PASS_NAME);
    n->op = STR("Gemm");
    node_add_input(n, build_from(&r->b, bias, "", tensor_type(r->arena, flat), flat));
    edit_hand_on_open(n->out[0], add->out[0]);
    node_take_result(n, 0, add->out[0]);
    node_absorb(n, add, PASS_NAME);
    node_remove(add);
    op_resolve(n, r->c->d);
}

static bool is_affine(Rewrite *r, const Node *next, const Value *y, size_t columns) {
    if (!next->def || !next->def->affine || y->type.rank != 2)
        return false;
    OpCtx c = op_ctx(next, r->c->d);
    double *scale = NEW_ARRAY(r->arena, double, columns);
    double *shift = NEW_ARRAY(r->arena, double, columns);
    size_t data;
    return next->def->affine(&c, 1, columns, &data, scale, shift) && next->in[data] == y;
}

static void becomes_gemm(Rewrite *r, Node *n) {
    node_becomes(n, PASS_NAME);
    n->op = STR("Gemm");
    op_resolve(n, r->c->d);
}

static void rewrite(Rewrite *r, Node *n) {
    const Use *use;
    if (!node_is(n, "MatMul") || n->n_in != 2 || n->n_out != 1 || !n->out[0] || !n->in[0])
        return;
    Value *y = n->out[0];
    const Tensor *w = weight_of(n->in[1]);
    Type x = n->in[0]->type, shape = y->type;
    if (!w || w->rank != 2 || x.rank < 2 || (shape.tilde && edit_is_decided(y)) ||
        shape.rank != x.rank || uses_of(r->uses, y, &use) != 1 || !use->node ||
        use->node->graph != n->graph)
        return;
    Node *add = use->node;
    Value *bias = column_bias(r, add, y, w->dims[1]), *in = NULL, *out = NULL;
    if (!bias && is_affine(r, add, y, (size_t)w->dims[1]))
        becomes_gemm(r, n);
    if (!bias)
        return;
    if (x.rank > 2 && !(out = shape_of(r, add, shape)))
        out = computed_shape(r, n, n->in[0], w->dims[1]);
    take_over(r, n, add, bias);
    if (x.rank == 2)
        return;
    int64_t two = 2, flat[] = {-1, w->dims[0]};
    Str name = arena_strf(r->arena, STR_FMT "_rows", STR_ARG(n->out[0]->name));
    in = graph_add_const(
        n->graph, unique_name(r->b.names, name), type_fixed(r->arena, ELEM_INT64, 1, &two),
        tensor_of(r->arena, ELEM_INT64, 1, &two, arena_copy(r->arena, flat, sizeof flat)));
    value_from_node(in, n, PASS_NAME);
    Node *before = reshape(r, n, "rows", n->in[0], in);
    Node *after = reshape(r, n, "shape", NULL, out);
    node_insert_before(n, before);
    node_insert_after(n, after);
    after->out[0] = n->out[0];
    after->out[0]->def = after;
    n->in[0] = result(r, before, after->out[0], "in", matrix(r, w->dims[0], x));
    n->out[0] = NULL;
    after->in[0] = result(r, n, after->out[0], "gemm", matrix(r, w->dims[1], shape));
    op_resolve(before, r->c->d);
    op_resolve(after, r->c->d);
}

static void rewrite_graph(Graph *g, void *ctx) {
    for (Node *n = g->first; n; n = n->next) /* the Add behind it goes */
        rewrite(ctx, n);
}

bool pass_matmul_to_gemm(Module *m, PassContext *c) {
    Rewrite r = {c, quant_build_new(m, c, PASS_NAME), uses_new(m), m->arena, map_new(m->arena)};
    module_each_graph(m, rewrite_graph, &r);
    edit_sweep(m);
    return true;
}
