/* Dropout: before 12 a plain identity with a ratio; from 12 ratio and training_mode are operands;
 * the mask is bool from 10. What it holds where nothing is left out ONNX says from 12 on: truths;
 * before it is 0, as onnxruntime has it. In training it draws numbers as the Random operators do
 * (random.h). */
#include "ir/ops/random.h"
#include "ir/provenance.h"

typedef struct DropoutAttrs {
    float ratio; /* before 12 */
    int64_t seed;
} DropoutAttrs;

static const AttrSpec dropout_attrs[] = {
    A_FLOAT(DropoutAttrs, ratio, 0.5f),
    A_INT(DropoutAttrs, seed, 0),
    A_END,
};

enum { RATIO = 1, TRAINING_MODE = 2 };

/* What is left out of all would be divided by 0. */
static bool dropout_verify(const OpCtx *c) {
    const DropoutAttrs *a = c->attrs;
    const Tensor *t = op_const(c, RATIO);
    bool operand = op_in(c, RATIO) != NULL;
    if (operand && (!t || !t->data))
        return true;
    if (t && t->count != 1)
        return op_error_in(c, RATIO, "the ratio must be one number");
    double ratio = t ? tensor_float(t, 0) : (double)a->ratio;
    return (ratio >= 0 && ratio < 1) ||
           op_error_param(c, "ratio", RATIO, "the ratio must be from 0 to below 1, not %g", ratio);
}

static bool dropout_infer(OpCtx *c) {
    Type x = op_type(c, 0);
    if (c->n_out > 1 && x.kind == TYPE_TENSOR)
        c->out[1] = type_tensor(c->opset >= 10 ? ELEM_BOOL : type_real_elem(x), x.rank, x.dims);
    return op_same_type(c);
}

static Node *node_before(Node *at, const char *op, Value *x) {
    Node *n = node_new(at->graph, STR_NONE, str_from(op), 1, 1);
    n->loc = at->loc;
    n->in[0] = x;
    node_from(n, at, "upgrade");
    node_insert_before(at, n);
    return n;
}

/* A mask as it was before 12: zeros of the data's shape. */
static void clear_mask(Node *n, UniqueNames *names) {
    Arena *a = n->graph->module->arena;
    Value *mask = n->out[1];
    int64_t one = 1, rank = n->in[0]->type.rank;
    ElemType e = mask->type.kind == TYPE_TENSOR ? mask->type.elem : ELEM_BOOL;
    uint8_t *zero = arena_alloc(a, elem_bytes(e, 1));
    memset(zero, 0, elem_bytes(e, 1));
    Node *shape = node_before(n, "Shape", n->in[0]);
    Str name = arena_strf(a, STR_FMT "_shape", STR_ARG(mask->name));
    Value *lengths = node_add_output(shape, 0, unique_name(names, name),
                                     rank < 0 ? TYPE_UNKNOWN : type_fixed(a, ELEM_INT64, 1, &rank));
    Node *made = node_before(n, "ConstantOfShape", lengths);
    node_set_tensor(made, "value", tensor_of(a, e, 1, &one, zero));
    made->out[0] = mask;
    mask->def = made;
    mask->index = 0;
    n->out[1] = NULL;
    n->n_out = 1;
}

/* Before 10 the mask was of the data's type: a Cast keeps it that. */
static void cast_mask(Node *n, UniqueNames *names) {
    Arena *a = n->graph->module->arena;
    Value *mask = n->out[1];
    Node *cast = node_new(n->graph, STR_NONE, STR("Cast"), 1, 1);
    Type truth = mask->type;
    truth.elem = ELEM_BOOL;
    cast->loc = n->loc;
    node_set_int(cast, "to", type_real_elem(n->in[0]->type));
    node_from(cast, n, "upgrade");
    node_insert_after(n, cast);
    cast->out[0] = mask;
    mask->def = cast;
    mask->index = 0;
    n->out[1] = NULL;
    Str name = arena_strf(a, STR_FMT "_bool", STR_ARG(mask->name));
    cast->in[0] = node_add_output(n, 1, unique_name(names, name), truth);
}

static bool dropout_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)d;
    if (from < 12 && to >= 12)
        upgrade_float_attr(n, "ratio", RATIO, names);
    if (n->n_out < 2 || !n->out[1])
        return true;
    if (from < 12 && to >= 12)
        clear_mask(n, names);
    else if (from < 10 && to >= 10)
        cast_mask(n, names);
    return true;
}

/* Before 7 an attribute says whether it trains, and it does by default. */
static bool dropout_passes_on(const OpCtx *c) {
    const Tensor *mode = op_const(c, TRAINING_MODE);
    bool known = !op_in(c, TRAINING_MODE) || (mode && mode->data && mode->count == 1);
    return c->opset >= 7 && known && !(mode && tensor_int(mode, 0));
}

static bool bind_training(Binder *b, const Node *n, const OpCtx *c) {
    const DropoutAttrs *a = c->attrs;
    const Tensor *ratio = op_const(c, RATIO);
    ElemType e = bind_elem(n->in[0]);
    if (op_in(c, RATIO) && (!ratio || !ratio->data))
        return bind_unsupported(b, n, "its ratio is not constant");
    if (op_quant(n->in[0]) || op_quant(n->out[0]))
        return bind_unsupported(b, n, "it is in training mode, which has no integer kernel");
    qk_dropout_params p = {.n = bind_count(n->in[0]),
                           .seed = a->seed,
                           .ratio = ratio ? (float)tensor_float(ratio, 0) : a->ratio};
    int y = n->out[0] ? bind_value(b, n->out[0]) : bind_temp(b, e, (size_t)p.n);
    int mask = n->n_out > 1 ? bind_value(b, n->out[1]) : -1;
    if (!bind_call(b, n, bind_kernel(b, "dropout", 1, &e), &p, sizeof p, 4,
                   (int[]){bind_value(b, n->in[0]), bind_random_state(b), y, mask}))
        return false;
    bind_in_place(b, 0);
    return true;
}

static bool dropout_bind(Binder *b, const Node *n, const OpCtx *c) {
    const Tensor *mode = op_const(c, TRAINING_MODE);
    if (op_in(c, TRAINING_MODE) && (!mode || !mode->data || mode->count != 1))
        return bind_unsupported(b, n, "whether it trains is not constant");
    if (mode && tensor_int(mode, 0))
        return bind_training(b, n, c);
    if (!bind_equal_quant(n->in[0], n->out[0]))
        return bind_unsupported(b, n, "operand and result are quantized differently");
    if (n->n_out > 1 && n->out[1]) {
        ElemType e = bind_elem(n->out[1]);
        qk_fill_params p = {.n = bind_count(n->out[1]), .value = c->opset >= 12};
        if (!bind_call(b, n, bind_kernel(b, "fill", 1, &e), &p, sizeof p, 1,
                       (int[]){bind_value(b, n->out[1])}))
            return false;
    }
    return !n->out[0] || bind_alias(b, n, n->out[0], n->in[0]);
}

/* What it leaves out in training is random. */
static int dropout_slices(const OpCtx *c, size_t i, int axis, size_t result) {
    return dropout_passes_on(c) ? op_slices_same(c, i, axis, result) : -1;
}

const OpDef op_Dropout = {
    .domain = "",
    .name = "Dropout",
    .fixed = 6,
    .attrs_size = sizeof(DropoutAttrs),
    .attrs = dropout_attrs,
    .verify = dropout_verify,
    .infer = dropout_infer,
    .slices = dropout_slices,
    .quant = {.kind = QUANT_MOVE, .data = 1},
    .stays = true, /* training */
    .passes_on = dropout_passes_on,
    .upgrade = dropout_upgrade,
    .bind = dropout_bind,
};
