/* NonMaxSuppression: opset 11 changed words only. */
#include "ir/ops/bind.h"

enum { BOXES, SCORES, MOST, OVERLAP, LEAST };

typedef struct NmsAttrs {
    int64_t center_point_box;
} NmsAttrs;

static const AttrSpec attrs[] = {
    A_FLAG(NmsAttrs, center_point_box, 0),
    A_END,
};

static bool is_number(const OpCtx *c, size_t i) {
    size_t count;
    return !op_in(c, i) || !type_count(op_type(c, i), &count) || count == 1 ||
           op_error_in(c, i, "needs one number, not %zu", count);
}

static bool agree(const OpCtx *c, Dim x, Dim y, const char *what) {
    return x.value < 0 || y.value < 0 || x.value == y.value ||
           op_error_in(c, SCORES, "scores of %lld %s, boxes of %lld", (long long)y.value, what,
                       (long long)x.value);
}

static bool verify(const OpCtx *c) {
    Type boxes = op_type(c, BOXES), scores = op_type(c, SCORES);
    if (boxes.rank >= 0 && boxes.rank != 3)
        return op_error_in(c, BOXES, "boxes have rank 3, not %d", boxes.rank);
    if (scores.rank >= 0 && scores.rank != 3)
        return op_error_in(c, SCORES, "scores have rank 3, not %d", scores.rank);
    if (boxes.rank == 3 && boxes.dims[2].value >= 0 && boxes.dims[2].value != 4)
        return op_error_in(c, BOXES, "a box has 4 numbers, not %lld",
                           (long long)boxes.dims[2].value);
    if (boxes.rank == 3 && scores.rank == 3 &&
        !(agree(c, boxes.dims[0], scores.dims[0], "batches") &&
          agree(c, boxes.dims[1], scores.dims[2], "boxes")))
        return false;
    return is_number(c, MOST) && is_number(c, OVERLAP) && is_number(c, LEAST);
}

static bool infer(OpCtx *c) {
    Dim dims[] = {dim_unknown(), dim_of(3)};
    c->out[0] = type_tensor(ELEM_INT64, 2, arena_copy(c->arena, dims, sizeof dims));
    return true;
}

/* How many boxes of a class can be taken. */
static int32_t room(const OpCtx *c, int32_t boxes) {
    const Tensor *most = op_const(c, MOST);
    if (!op_in(c, MOST))
        return 0; /* as ONNX has it */
    if (!most || !most->data || tensor_int(most, 0) > boxes)
        return boxes;
    return tensor_int(most, 0) < 0 ? 0 : (int32_t)tensor_int(most, 0);
}

static int64_t longest(const OpCtx *c) {
    Type scores = op_type(c, SCORES);
    size_t count;
    if (!type_count(scores, &count) || scores.rank != 3 || scores.dims[2].value > INT32_MAX)
        return -1;
    return dim_mul(dim_mul(scores.dims[0].value, scores.dims[1].value),
                   room(c, (int32_t)scores.dims[2].value));
}

static int number(Binder *b, const OpCtx *c, size_t i, ElemType e) {
    return op_in(c, i) ? bind_value(b, op_in(c, i)) : bind_const(b, e, 1, &(int64_t){0}, NULL);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const NmsAttrs *a = c->attrs;
    Type scores = n->in[SCORES]->type;
    int32_t boxes = (int32_t)scores.dims[2].value;
    qk_nms_f32_params p = {.batch = (int32_t)scores.dims[0].value,
                           .classes = (int32_t)scores.dims[1].value,
                           .boxes = boxes,
                           .room = room(c, boxes),
                           .centred = a->center_point_box != 0,
                           .above = op_in(c, LEAST) != NULL};
    p.limit = bind_bound(b, n, (int64_t)p.batch * p.classes * p.room);
    Counted y = {.most = (size_t)p.limit * 3, .axis = 0, .count = bind_temp(b, ELEM_INT64, 1)};
    int args[] = {bind_value(b, n->in[BOXES]),          bind_value(b, n->in[SCORES]),
                  number(b, c, MOST, ELEM_INT64),       number(b, c, OVERLAP, ELEM_FLOAT),
                  number(b, c, LEAST, ELEM_FLOAT),      bind_scratch(b, ELEM_INT32, (size_t)boxes),
                  bind_counted(b, n, 0, ELEM_INT64, y), y.count};
    return bind_call(b, n, "qk_nms_f32", &p, sizeof p, 8, args);
}

const OpDef op_NonMaxSuppression = {
    .domain = "",
    .name = "NonMaxSuppression",
    .fixed = 1u << MOST,
    .attrs_size = sizeof(NmsAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .counts = true,
    .longest = longest,
    .bind = bind,
};
