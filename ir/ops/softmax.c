/* Softmax with QLinearSoftmax, LogSoftmax and Hardmax. Before opset 13 the input is seen as a
 * matrix [dims before axis, the rest] and axis defaults to 1; from 13 the sum goes along one axis,
 * by default the last. */
#include <math.h>

#include "ir/ops/bind.h"
#include "ir/provenance.h"
#include "kernels/requant_host.h"

typedef struct SoftmaxAttrs {
    int64_t axis; /* the default is the schema's, at the model's opset */
} SoftmaxAttrs;

static const AttrSpec attrs[] = {
    A_INT(SoftmaxAttrs, axis, -1),
    A_END,
};

static bool verify(const OpCtx *c) {
    const SoftmaxAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    int axis;
    if (x.rank < 0 || (x.rank == 0 && (a->axis == 0 || a->axis == -1)))
        return true;
    if (c->opset < 13 && a->axis == x.rank)
        return true; /* everything is one row of the matrix */
    return op_axis(c, a->axis, x.rank, &axis);
}

/* The axes [from, to) that the sum goes over; none is a row of one number. The rank is known. */
static bool row_axes(const OpCtx *c, int *from, int *to) {
    const SoftmaxAttrs *a = c->attrs;
    int rank = op_type(c, 0).rank;
    *from = *to = rank;
    if (rank == 0 || (c->opset < 13 && a->axis == rank))
        return true;
    if (!op_axis(c, a->axis, rank, from))
        return false;
    *to = c->opset < 13 ? rank : *from + 1;
    return true;
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    int from, to;
    (void)i;
    (void)result;
    return row_axes(c, &from, &to) && (axis < from || axis >= to) ? axis : -1;
}

static bool keeps_largest(const OpCtx *c, int *axis) {
    const SoftmaxAttrs *a = c->attrs;
    int rank = op_type(c, 0).rank;
    return c->opset >= 13 && rank > 0 && op_axis(c, a->axis, rank, axis);
}

/* ---- opset 13 ---- */

static Node *insert(Node *at, const char *op, size_t n_in, UniqueNames *names) {
    Node *n = node_new(at->graph, STR_NONE, str_from(op), n_in, 1);
    Arena *a = at->graph->module->arena;
    if (at->name.n)
        n->name = unique_name(names, arena_strf(a, STR_FMT "_%s", STR_ARG(at->name), op));
    n->loc = at->loc;
    node_from(n, at, "upgrade");
    return n;
}

static Str result_name(const Node *n, const char *what, UniqueNames *names) {
    Arena *a = n->graph->module->arena;
    return unique_name(names, arena_strf(a, STR_FMT "_%s", STR_ARG(n->out[0]->name), what));
}

static void hand_over(Node *from, Node *to) { /* `to` makes from's result now */
    to->out[0] = from->out[0];
    to->out[0]->def = to;
    from->out[0] = NULL;
}

/* Dimensions [from, to) of x as one. */
static Dim merged(Type x, int from, int to) {
    int64_t size = 1;
    for (int i = from; i < to; i++)
        size = size < 0 || x.dims[i].value < 0 ? -1 : dim_mul(size, x.dims[i].value);
    return dim_of(size);
}

/* The shape to go back to: a constant where it is known, else what Shape says at run time. */
static Value *shape_of(Node *n, Value *x, UniqueNames *names) {
    Arena *a = n->graph->module->arena;
    int64_t dims[MAX_RANK], rank = type_lengths(x->type, dims);
    if (type_is_static(x->type))
        return upgrade_ints(n, "shape", (Ints){dims, (size_t)rank}, names);
    Node *shape = insert(n, "Shape", 1, names);
    shape->in[0] = x;
    node_insert_before(n, shape);
    return node_add_output(shape, 0, result_name(n, "shape", names),
                           type_fixed(a, ELEM_INT64, 1, &rank));
}

/* Flatten to a matrix, Softmax along its rows, Reshape back. */
static void split_flattened(Node *n, int64_t axis, UniqueNames *names) {
    Value *x = n->in[0];
    Dim *dims = NEW_ARRAY(n->graph->module->arena, Dim, 2);
    dims[0] = merged(x->type, 0, (int)axis);
    dims[1] = merged(x->type, (int)axis, x->type.rank);
    Type matrix = type_tensor(type_real_elem(x->type), 2, dims);
    Node *flatten = insert(n, "Flatten", 1, names), *reshape = insert(n, "Reshape", 2, names);
    flatten->in[0] = x;
    reshape->in[1] = shape_of(n, x, names);
    node_insert_before(n, flatten);
    node_insert_after(n, reshape);
    node_set_int(flatten, "axis", axis);
    n->in[0] = node_add_output(flatten, 0, result_name(n, "flat", names), matrix);
    hand_over(n, reshape);
    reshape->in[0] = node_add_output(n, 0, result_name(reshape, "softmax", names), matrix);
    node_set_int(n, "axis", -1);
}

/* One node will do where only one of the flattened dimensions is not 1. */
static bool single_axis(Type x, int64_t axis, int64_t *out) {
    int64_t found = x.rank - 1;
    int n = 0;
    for (int i = (int)axis; i < x.rank; i++)
        if (x.dims[i].value != 1) {
            found = i;
            n++;
        }
    *out = found;
    return n <= 1;
}

static bool upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    if (from >= 13 || to < 13 || !n->typed)
        return true;
    Type x = n->in[0]->type;
    int64_t axis = ((const SoftmaxAttrs *)n->typed)->axis, single;
    if (x.rank < 0)
        return diag_error(d, n->loc,
                          "Softmax of opset %lld cannot be converted: the rank of '%s' "
                          "is unknown",
                          (long long)from, diag_name(d, n->in[0]->name));
    if (axis < 0)
        axis += x.rank;
    if (!x.rank)
        node_set_int(n, "axis", -1);
    else if (single_axis(x, axis, &single))
        node_set_int(n, "axis", single);
    else
        split_flattened(n, axis, names);
    return true;
}

/* ---- quantization ---- */

/* Probabilities lie in [0, 1]. */
static bool fixed_output(const OpCtx *c, ElemType storage, float *scale, int64_t *zp) {
    (void)c;
    int bits = elem_bits(storage);
    if (bits != 8 && bits != 16)
        return false;
    *scale = bits == 8 ? 0x1p-8f : 0x1p-16f;
    *zp = elem_min(storage);
    return true;
}

static void lower_attrs(const Node *from, Node *to) {
    node_set_int(to, "opset", node_opset(from) >= 13 ? 13 : node_opset(from));
    node_set_int(to, "axis", ((const SoftmaxAttrs *)from->typed)->axis);
}

static void raise_attrs(const Node *from, Node *to) {
    (void)from;
    node_drop_attr(to, "opset");
}

/* QLinearSoftmax says itself of which opset's Softmax it is. */
static const char *restate(Node *n, UniqueNames *names, Diags *d) {
    int64_t axis = ((const SoftmaxAttrs *)n->typed)->axis, single;
    bool flattens = node_int(n, "opset", 13) < 13;
    Type x = n->in[0]->type;
    if (flattens == (module_opset(n->graph->module, STR("")) < 13))
        return NULL;
    if (x.rank < 0)
        return "the rank of its operand is unknown, and it is of another opset than the model";
    axis += axis < 0 ? x.rank : 0;
    if (single_axis(x, axis, &single) && (flattens || single == axis)) {
        node_set_int(n, "axis", single);
        return op_resolve(n, d) ? NULL : "it is faulty";
    }
    if (!flattens)
        return "it goes along one axis, which Softmax does from opset 13 on";
    split_flattened(n, axis, names);
    op_resolve(n->in[0]->def, d);
    op_resolve(n->next, d);
    return op_resolve(n, d) ? NULL : "it is faulty";
}

int bind_exponentials(Binder *b, const Value *x) {
    int bits = elem_bits(bind_elem(x));
    size_t entries = bits == 8 ? 256 : 512;
    uint32_t *table = NEW_ARRAY(binder_arena(b), uint32_t, entries);
    softmax_table(quant_scale(op_quant(x), 0), bits, table);
    return bind_const(b, ELEM_UINT32, entries, table, "exponentials");
}

static bool bind_rows(Binder *b, const Node *n, const char *kernel, const void *p, size_t size) {
    ElemType types[] = {bind_elem(n->in[0]), bind_elem(n->out[0])};
    int args[] = {bind_value(b, n->in[0]), bind_exponentials(b, n->in[0]),
                  bind_value(b, n->out[0])};
    return bind_call(b, n, bind_kernel(b, kernel, 2, types), p, size, 3, args);
}

static bool bind_quant(Binder *b, const Node *n, int32_t outer, int32_t size, int32_t inner) {
    const Quant *x = op_quant(n->in[0]), *y = op_quant(n->out[0]);
    if (!quant_plain(x) || !quant_plain(y))
        return bind_in_double(b, n);
    qk_softmax_q_params p = {.outer = outer, .n = size, .inner = inner, RESULT_PARAMS(y)};
    softmax_inverse(quant_scale(y, 0), size, &p.inv, &p.shift);
    return bind_rows(b, n, "softmax_q", &p, sizeof p);
}

/* LogSoftmax: differences of x and the logarithm of the sum, in steps of y and 2^-shift. */
static bool bind_log_quant(Binder *b, const Node *n, const qk_softmax_f32_params *rows) {
    const Quant *x = op_quant(n->in[0]), *y = op_quant(n->out[0]);
    if (!quant_plain(x) || !quant_plain(y))
        return bind_in_double(b, n);
    qk_logsoftmax_q_params p = {
        .outer = rows->outer, .n = rows->n, .inner = rows->inner, RESULT_PARAMS(y)};
    int64_t unit;
    requant_log(quant_scale(x, 0), quant_scale(y, 0), &p.step, &p.log2, &unit, &p.shift);
    if (!bind_rows(b, n, "logsoftmax_q", &p, sizeof p))
        return false;
    if (elem_bits(bind_elem(n->in[0])) == elem_bits(bind_elem(n->out[0])))
        bind_in_place(b, 0);
    return true;
}

static bool rows(const OpCtx *c, qk_softmax_f32_params *p) {
    Type x = op_type(c, 0);
    int from, to;
    if (!row_axes(c, &from, &to))
        return false;
    *p = (qk_softmax_f32_params){.outer = bind_extent(x, 0, from),
                                 .n = bind_extent(x, from, to),
                                 .inner = bind_extent(x, to, x.rank)};
    return true;
}

/* The others take the same as Softmax. */
static bool bind_kind(Binder *b, const Node *n, const OpCtx *c, const char *kernel) {
    qk_softmax_f32_params p;
    return rows(c, &p) && bind_floats_only(b, n) && bind_first(b, n, kernel, &p, sizeof p);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    qk_softmax_f32_params p;
    if (bind_any_quant(n))
        return rows(c, &p) && bind_quant(b, n, p.outer, p.n, p.inner);
    if (!bind_kind(b, n, c, "qk_softmax_f32"))
        return false;
    bind_in_place(b, 0);
    return true;
}

static bool log_bind(Binder *b, const Node *n, const OpCtx *c) {
    qk_softmax_f32_params p;
    if (bind_any_quant(n))
        return rows(c, &p) && bind_log_quant(b, n, &p);
    if (!bind_kind(b, n, c, "qk_logsoftmax_f32"))
        return false;
    bind_in_place(b, 0);
    return true;
}

/* 0 and 1, exactly. */
static bool hard_output(const OpCtx *c, ElemType storage, float *scale, int64_t *zp) {
    (void)c;
    *scale = 1;
    *zp = 0;
    return elem_bits(storage) >= 2;
}

static bool hard_bind_quant(Binder *b, const Node *n, const OpCtx *c) {
    const Quant *y = op_quant(n->out[0]);
    ElemType types[] = {bind_elem(n->in[0]), bind_elem(n->out[0])};
    qk_softmax_f32_params r;
    if (!quant_plain(op_quant(n->in[0])) || !quant_plain(y))
        return bind_in_double(b, n);
    if (!rows(c, &r))
        return false;
    qk_hardmax_params p = {.outer = r.outer,
                           .n = r.n,
                           .inner = r.inner,
                           .on = (int32_t)quant_of_real(y, 0, 1),
                           .off = quant_zero(y)};
    return bind_first(b, n, bind_kernel(b, "hardmax", 2, types), &p, sizeof p);
}

static bool hard_bind(Binder *b, const Node *n, const OpCtx *c) {
    if (bind_any_quant(n))
        return hard_bind_quant(b, n, c);
    return bind_kind(b, n, c, "qk_hardmax_f32");
}

#define KIND                                                                                       \
    .domain = "", .attrs_size = sizeof(SoftmaxAttrs), .attrs = attrs, .verify = verify,            \
    .infer = op_same_type, .slices = slices, .upgrade = upgrade

const OpDef op_LogSoftmax = {
    KIND, .name = "LogSoftmax",
    .quant = {.kind = QUANT_COMPUTE, .data = 1, .prefers_float = SPANS_TOO_MUCH},
    .keeps_largest = keeps_largest, .bind = log_bind};
const OpDef op_Hardmax = {KIND, .name = "Hardmax",
                          .quant = {.kind = QUANT_COMPUTE,
                                    .data = 1,
                                    .prefers_float = SPANS_TOO_MUCH,
                                    .fixed_output = hard_output},
                          .bind = hard_bind};

const OpDef op_Softmax = {
    .domain = "",
    .name = "Softmax",
    .attrs_size = sizeof(SoftmaxAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = op_same_type,
    .slices = slices,
    .quant = {.kind = QUANT_COMPUTE,
              .data = 1,
              .counts_within = 12, /* hundreds of e^-12 are below a step of 1/256 */
              .fixed_output = fixed_output},
    .qop = {.domain = "com.microsoft",
            .op = "QLinearSoftmax",
            .operands = "0* y",
            .since = 10,
            .lower_attrs = lower_attrs,
            .raise_attrs = raise_attrs,
            .restate = restate},
    .upgrade = upgrade,
    .keeps_largest = keeps_largest,
    .bind = bind,
};
