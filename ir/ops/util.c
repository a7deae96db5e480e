/* What most operator files need: operands, constants, axes, broadcasting. */
#include "ir/ops/op.h"

Value *op_in(const OpCtx *c, size_t i) {
    return i < c->n_in ? c->in[i] : NULL;
}

Type op_type(const OpCtx *c, size_t i) {
    const Value *v = op_in(c, i);
    return v ? v->type : TYPE_UNKNOWN;
}

Loc node_in_loc(const Node *n, size_t i, Diags *d) {
    if (i >= n->n_in || !n->in[i])
        return n->loc;
    return diag_part(d, n->loc, (DiagPart){PART_OPERAND, i, n->in[i]->name});
}

Loc node_out_loc(const Node *n, size_t i, Diags *d) {
    if (i >= n->n_out || !n->out[i])
        return n->loc;
    return diag_part(d, n->loc, (DiagPart){PART_RESULT, i, n->out[i]->name});
}

Loc node_attr_loc(const Node *n, const char *name, Diags *d) {
    const Attr *a = node_attr(n, name);
    if (a && a->loc.source && !a->loc.what)
        return diag_part(d, a->loc, (DiagPart){PART_VALUE, 0, a->name});
    return diag_part(d, n->loc, (DiagPart){PART_ATTRIBUTE, 0, str_from(name)});
}

/* A QOperator's float operator counts its operands differently. */
Loc op_in_loc(const OpCtx *c, size_t i) {
    const Node *n = c->node;
    const Value *v = op_in(c, i);
    size_t k = i;
    if (i >= n->n_in || n->in[i] != v)
        for (k = 0; k < n->n_in && n->in[k] != v;)
            k++;
    return v ? node_in_loc(n, k, c->d) : n->loc;
}

static bool report(const OpCtx *c, Loc at, const char *fmt, va_list ap) {
    Buf text = buf_new(c->arena);
    buf_fmt_v(&text, fmt, ap);
    return diag_error(c->d, at, "%s: " STR_FMT, diag_name(c->d, c->node->op),
                      STR_ARG(buf_as_str(&text)));
}

#define REPORT(at)                                                                                 \
    do {                                                                                           \
        va_list ap;                                                                                \
        va_start(ap, fmt);                                                                         \
        report(c, (at), fmt, ap);                                                                  \
        va_end(ap);                                                                                \
        return false;                                                                              \
    } while (0)

bool op_error(const OpCtx *c, const char *fmt, ...) {
    REPORT(c->node->loc);
}

bool op_error_in(const OpCtx *c, size_t i, const char *fmt, ...) {
    REPORT(op_in_loc(c, i));
}

bool op_error_out(const OpCtx *c, size_t i, const char *fmt, ...) {
    REPORT(node_out_loc(c->node, i, c->d));
}

bool op_error_attr(const OpCtx *c, const char *name, const char *fmt, ...) {
    REPORT(node_attr_loc(c->node, name, c->d));
}

bool op_error_param(const OpCtx *c, const char *name, size_t i, const char *fmt, ...) {
    bool stated = node_attr(c->node, name) != NULL;
    REPORT(stated ? node_attr_loc(c->node, name, c->d) : op_in_loc(c, i));
}

const Tensor *value_data(const Value *v) {
    if (!v)
        return NULL;
    if (value_is_const(v))
        return v->data;
    if (v->kind == VALUE_INPUT && v->data && v->graph->module->ir_version < 4)
        return v->data; /* before IR 4 every initializer had to be an input too */
    const OpDef *op = v->kind == VALUE_NODE ? v->def->def : NULL;
    return op && op->constant ? op->constant(v->def) : NULL;
}

const Tensor *op_const(const OpCtx *c, size_t i) {
    return value_data(op_in(c, i));
}

double op_real(const Value *v, size_t i) {
    const Tensor *t = value_data(v);
    const Quant *q = op_quant(v);
    if (!q)
        return tensor_float(t, i);
    size_t e = q->n_scale > 1 ? quant_index(q, t->rank, t->dims, i) : 0;
    return tensor_steps(t, i, q, e) * (double)quant_scale(q, e);
}

bool op_ints(const OpCtx *c, size_t i, Ints *out) {
    const Tensor *t = op_const(c, i);
    if (!t || t->rank > 1 || !elem_is_int(t->elem) || (t->count && !t->data))
        return false;
    int64_t *v = NEW_ARRAY(c->arena, int64_t, t->count ? t->count : 1);
    for (size_t k = 0; k < t->count; k++)
        v[k] = tensor_int(t, k);
    *out = (Ints){v, t->count};
    return true;
}

bool op_number(const OpCtx *c, const char *name, int64_t v) {
    if (v < 1)
        return op_error_attr(c, name, "%s must be at least 1, not %lld", name, (long long)v);
    return v <= INT32_MAX ||
           op_error_attr(c, name, "%s is %lld, which is out of range", name, (long long)v);
}

bool op_axis(const OpCtx *c, int64_t axis, int rank, int *out) {
    if (axis < -rank || axis >= rank)
        return op_error_attr(c, "axis", "axis %lld is out of range for rank %d", (long long)axis,
                             rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

bool op_elements_fit(const OpCtx *c, size_t data, size_t indices, int64_t axis) {
    Type x = op_type(c, data), i = op_type(c, indices);
    int at;
    if (x.rank < 0 || i.rank < 0)
        return true;
    if (x.rank != i.rank)
        return op_error_in(c, indices, "the indices have rank %d, the data %d", i.rank, x.rank);
    if (!op_axis(c, axis, x.rank, &at))
        return false;
    for (int k = 0; k < x.rank; k++)
        if (k != at && x.dims[k].value >= 0 && i.dims[k].value > x.dims[k].value)
            return op_error_in(c, indices, "dimension %d is %lld, that of the data %lld", k,
                               (long long)i.dims[k].value, (long long)x.dims[k].value);
    return true;
}

bool op_indices_fit(const OpCtx *c, size_t indices, const int32_t *lengths, size_t n) {
    const Tensor *t = op_const(c, indices);
    for (size_t k = 0; t && t->data && k < t->count; k++) {
        int64_t at = tensor_int(t, k), length = lengths[k % n];
        if (at < -length || at >= length)
            return op_error_in(c, indices, "index %lld is out of range for an axis of length %lld",
                               (long long)at, (long long)length);
    }
    return true;
}

bool op_axes(const OpCtx *c, Ints axes, size_t operand, int rank, bool *set) {
    for (int i = 0; i < rank; i++)
        set[i] = false;
    for (size_t i = 0; i < axes.n; i++) {
        int64_t axis = axes.v[i] < 0 ? axes.v[i] + rank : axes.v[i];
        if (axis < 0 || axis >= rank)
            return op_error_param(c, "axes", operand, "axis %lld is out of range for rank %d",
                                  (long long)axes.v[i], rank);
        if (set[axis])
            return op_error_param(c, "axes", operand, "axis %lld is named twice",
                                  (long long)axes.v[i]);
        set[axis] = true;
    }
    return true;
}

bool op_same_type(OpCtx *c) {
    Type x = op_type(c, 0);
    if (x.kind != TYPE_TENSOR)
        return true;
    c->out[0] = type_tensor(type_real_elem(x), x.rank, x.dims);
    return true;
}

bool op_is_alone(const OpCtx *c) {
    return c->n_in == 1;
}

Dim dim_of(int64_t v) {
    return (Dim){v, STR_NONE, STR_NONE};
}

Dim dim_unknown(void) {
    return dim_of(-1);
}

bool dim_differ(int64_t x, int64_t y) {
    return x >= 0 && y >= 0 && x != y;
}

void op_result(OpCtx *c, size_t i, Type like, int rank, const int64_t *dims) {
    if (i >= c->n_out || like.kind != TYPE_TENSOR)
        return;
    Dim *d = NEW_ARRAY(c->arena, Dim, (size_t)rank + 1);
    for (int k = 0; k < rank; k++)
        d[k] = dims[k] < 0 ? dim_unknown() : dim_of(dims[k]);
    c->out[i] = type_tensor(type_real_elem(like), rank, d);
}

int64_t dim_mul(int64_t x, int64_t y) {
    int64_t r;
    return __builtin_mul_overflow(x, y, &r) ? INT64_MAX : r;
}

int64_t dim_add(int64_t x, int64_t y) {
    int64_t r;
    return __builtin_add_overflow(x, y, &r) ? INT64_MAX : r;
}

int64_t dim_parts(int64_t x, int64_t size) {
    return x / size + (x % size != 0);
}

/* One pair of numpy's rule; a symbol beside a number other than 1 must be that number. */
bool dim_broadcast(Dim x, Dim y, Dim *out) {
    if (x.value == 1 || dim_equal(x, y))
        *out = y;
    else if (y.value == 1)
        *out = x;
    else if (x.value >= 0 && y.value >= 0)
        return false;
    else if (x.value >= 0 || y.value >= 0)
        *out = dim_of(x.value >= 0 ? x.value : y.value);
    else
        *out = dim_unknown();
    return true;
}

/* `x` is that of the operands before, `y` operand `i`. */
static bool broadcast_two(OpCtx *c, Type x, size_t i, Type *out) {
    Type y = op_type(c, i);
    int rank = x.rank > y.rank ? x.rank : y.rank;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank + 1);
    for (int k = 0; k < rank; k++) {
        int xk = k - (rank - x.rank), yk = k - (rank - y.rank);
        Dim one = dim_of(1);
        if (!dim_broadcast(xk < 0 ? one : x.dims[xk], yk < 0 ? one : y.dims[yk], &dims[k]))
            return op_error_in(c, i, "%s and %s do not broadcast", type_text(c->arena, x),
                               type_text(c->arena, y));
    }
    *out = type_tensor(out->elem, rank, dims);
    return true;
}

bool op_broadcast(OpCtx *c) {
    Type first = op_type(c, 0);
    if (first.kind != TYPE_TENSOR)
        return true;
    Type out = type_tensor(type_real_elem(first), first.rank, first.dims);
    for (size_t i = 1; i < c->n_in && out.rank >= 0; i++) {
        Type x = op_type(c, i);
        if (x.rank < 0)
            out = type_tensor(out.elem, -1, NULL);
        else if (!broadcast_two(c, out, i, &out))
            return false;
    }
    c->out[0] = out;
    return true;
}

const Quant *op_quant(const Value *v) {
    return v && type_is_quantized(v->type) ? v->type.quant : NULL;
}

bool node_interpolates(const Node *n) {
    const OpDef *op = n->def;
    if (!op || !op->quant.move.interpolates)
        return false;
    Type few[OP_FEW];
    OpCtx c = op_ctx_few(n, few, NULL);
    return op->quant.move.interpolates(&c);
}

bool node_moves(const Node *n) {
    QuantClass k = n->def ? n->def->quant.kind : QUANT_NEVER;
    return (k == QUANT_MOVE || k == QUANT_ORDER) && !node_interpolates(n);
}

const Quant *op_moved_quant(const OpCtx *c, const OpDef *op, const Quant *q) {
    if (!q || q->n_axes == 0 || !op->quant.move.axis)
        return q;
    Quant *moved = quant_copy(c->arena, q);
    moved->alias = STR_NONE;
    bool same = true;
    for (int i = 0; i < q->n_axes; i++) {
        moved->axis[i] = op->quant.move.axis(c, q->axis[i]);
        if (moved->axis[i] < 0)
            return NULL;
        same = same && moved->axis[i] == q->axis[i];
    }
    return same ? q : moved;
}

const char *quant_axis_refusal(const Node *n, const Quant *w) {
    OpCtx c = op_ctx(n, NULL);
    const QuantRule *r = &n->def->quant;
    int axis = quant_weight_axis(r, &c);
    if (w->n_axes == 0 || (w->n_axes == 1 && w->axis[0] == axis))
        return NULL;
    if (axis < 0)
        return node_strf(n, "its weights have scales along axis %d, where this product takes one",
                         w->axis[0]);
    return node_strf(n,
                     "its weights have scales along axis %d, where this product takes them along "
                     "axis %d, its output channels",
                     w->axis[0], axis);
}

const char *op_prefers_float(const Node *n) {
    const char *why = n->def->quant.prefers_float;
    return why ? node_strf(n, "%s; -only and -integer-only quantize it", why) : NULL;
}

bool node_computed_floats(const Node *n, size_t i) {
    const Value *v = node_input(n, i);
    return v && v->type.kind == TYPE_TENSOR && elem_is_float(type_real_elem(v->type)) &&
           (!value_data(v) || type_is_quantized(v->type));
}

bool quant_rule_is_data(const QuantRule *r, size_t input) {
    return r->data >> 31 || (input < 31 && (r->data >> input & 1));
}

int quant_weight_axis(const QuantRule *r, const OpCtx *c) {
    return r->mac.weight_axis ? r->mac.weight_axis(c) : -1;
}
