/* Loop and Scan: their laws and shapes; loop_bind.c runs them. A value that is carried from one
 * iteration to the next is the same buffer each time, so its quantization is one: of what it starts
 * as, of the body's input and result, and of the node's result; and to run it has one shape. Scan
 * has a batch dimension before opset 9 (scan_batch.c). */
#include "ir/ops/loop.h"

static const AttrSpec loop_attrs[] = {
    A_GRAPH_REQUIRED(LoopAttrs, body),
    A_END,
};

static const AttrSpec scan_attrs[] = {
    A_GRAPH_REQUIRED(ScanAttrs, body),
    A_INT_REQUIRED(ScanAttrs, num_scan_inputs),
    A_INTS(ScanAttrs, scan_input_axes),
    A_INTS(ScanAttrs, scan_output_axes),
    A_INTS(ScanAttrs, scan_input_directions),
    A_INTS(ScanAttrs, scan_output_directions),
    A_END,
};

static bool same(const OpCtx *c, const char *what, const Value *x, const Value *y) {
    if (!x || !y || x->type.kind != TYPE_TENSOR || y->type.kind != TYPE_TENSOR ||
        bind_equal_quant(x, y))
        return true;
    return op_error(c, "%s: '%s' is %s, '%s' is %s: requantize at the end of the body, or before",
                    what, diag_name(c->d, x->name), type_text(c->arena, x->type),
                    diag_name(c->d, y->name), type_text(c->arena, y->type));
}

/* Scan carries values of one shape; those of Loop may differ each time. */
static bool keeps_shape(const OpCtx *c, const Value *in, const Value *out) {
    Type x = in->type, y = out->type;
    bool same = x.kind != TYPE_TENSOR || y.kind != TYPE_TENSOR || x.rank < 0 || y.rank < 0 ||
                x.rank == y.rank;
    for (int i = 0; same && x.kind == TYPE_TENSOR && y.kind == TYPE_TENSOR && i < x.rank; i++)
        same = y.rank < 0 || x.dims[i].value < 0 || y.dims[i].value < 0 ||
               x.dims[i].value == y.dims[i].value;
    return same || op_error(c,
                            "it carries '%s', %s, and its body makes '%s', %s, of that: what a "
                            "Scan carries keeps its shape",
                            diag_name(c->d, in->name), type_text(c->arena, x),
                            diag_name(c->d, out->name), type_text(c->arena, y));
}

/* `n` values are carried; they stand behind `in`, `body_in` and `body_out` others. */
static bool carried(const OpCtx *c, const Graph *body, size_t n, size_t in, size_t body_in,
                    size_t body_out) {
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        const Value *start = op_in(c, in + i), *inner = body->in[body_in + i];
        const Value *next = body->out[body_out + i];
        ok = same(c, "a carried value", start, inner) && same(c, "a carried value", inner, next) &&
             same(c, "a carried value", next, c->node->out[i]) && ok;
    }
    return ok;
}

/* Elements of the node's tensor `whole` are the body's values `part`, along a new axis. */
static bool scanned(const OpCtx *c, const Value *part, const Value *whole) {
    const Quant *q = op_quant(part);
    if (part && whole && q && !quant_is_per_tensor(q))
        return op_error(c, "'%s' is scanned, so it is quantized per tensor",
                        diag_name(c->d, part->name));
    return same(c, "a scanned value", part, whole);
}

static bool counts(const OpCtx *c, const Graph *g, size_t in, size_t out) {
    if (g->n_in != in)
        return op_error_attr(c, "body", "the body has %zu inputs, must have %zu", g->n_in, in);
    if (g->n_out != out)
        return op_error_attr(c, "body", "the body yields %zu values, must yield %zu", g->n_out,
                             out);
    return true;
}

/* How often, and whether at all. */
static bool is_one(const OpCtx *c, size_t i) {
    Type t = op_type(c, i);
    return !op_in(c, i) || t.kind != TYPE_TENSOR || t.rank < 1 ||
           (t.rank == 1 && (t.dims[0].value < 0 || t.dims[0].value == 1)) ||
           op_error_in(c, i, "is %s, must be one number", type_text(c->arena, t));
}

/* The condition before the first iteration is what the body takes: a list of one or none. */
static bool same_condition(const OpCtx *c, const Graph *body) {
    Type t = op_type(c, 1);
    const Value *inner = body->n_in > 1 ? body->in[1] : NULL;
    bool known = op_in(c, 1) && inner && inner->declared && t.kind == TYPE_TENSOR &&
                 inner->type.kind == TYPE_TENSOR && t.rank >= 0 && inner->type.rank >= 0;
    return !known || t.rank == inner->type.rank ||
           op_error_in(c, 1, "is %s, the body takes %s", type_text(c->arena, t),
                       type_text(c->arena, inner->type));
}

static bool loop_verify(const OpCtx *c) {
    const Graph *g = ((const LoopAttrs *)c->attrs)->body;
    size_t n = loop_carried(c);
    if (!is_one(c, 0) || !is_one(c, 1) || !same_condition(c, g))
        return false;
    if (c->n_out < n)
        return op_error(c, "carries %zu values and has %zu results", n, c->n_out);
    if (!counts(c, g, n + 2, c->n_out + 1))
        return false;
    bool ok = carried(c, g, n, 2, 2, 1);
    for (size_t i = n; i < c->n_out; i++)
        ok = scanned(c, g->out[1 + i], c->node->out[i]) && ok;
    return ok;
}

/* One number for each of `n` scanned values, or none at all. */
static bool one_each(const OpCtx *c, const char *name, Ints list, size_t n) {
    return !list.n || list.n == n ||
           op_error_attr(c, name, "%s has %zu numbers, for %zu scanned values", name, list.n, n);
}

static bool directions(const OpCtx *c, const char *name, Ints list, size_t n) {
    for (size_t i = 0; i < list.n; i++)
        if (list.v[i] != 0 && list.v[i] != 1)
            return op_error_attr(c, name, "direction %lld is neither 0 (forward) nor 1 (backward)",
                                 (long long)list.v[i]);
    return one_each(c, name, list, n);
}

/* `rank` is that of the whole tensor, below 0 where it is not known. */
static bool scan_axis(const OpCtx *c, const char *name, int64_t axis, int rank) {
    return rank < 0 || (axis >= -rank && axis < rank) ||
           op_error_attr(c, name, "axis %lld is out of range for rank %d", (long long)axis, rank);
}

/* Axes exist, and scanned operands are all of one length. */
static bool scan_axes(const OpCtx *c, size_t n) {
    const ScanAttrs *a = c->attrs;
    int64_t length = scan_length(c);
    for (size_t i = n; i < c->n_in; i++) {
        int64_t axis = scan_int(a->scan_input_axes, i - n), own = scan_extent(op_type(c, i), axis);
        if (op_type(c, i).kind == TYPE_TENSOR &&
            !scan_axis(c, "scan_input_axes", axis, op_type(c, i).rank))
            return false;
        if (own >= 0 && own != length)
            return op_error_in(c, i, "has %lld elements to scan, operands before it %lld",
                               (long long)own, (long long)length);
    }
    for (size_t i = n; i < c->n_out; i++) {
        Type part = a->body->out[i]->type;
        if (part.kind == TYPE_TENSOR && part.rank >= 0 &&
            !scan_axis(c, "scan_output_axes", scan_int(a->scan_output_axes, i - n), part.rank + 1))
            return false;
    }
    return true;
}

static bool scan_lists(const OpCtx *c, size_t n) {
    const ScanAttrs *a = c->attrs;
    size_t in = c->n_in - n, out = c->n_out - n;
    return one_each(c, "scan_input_axes", a->scan_input_axes, in) &&
           one_each(c, "scan_output_axes", a->scan_output_axes, out) &&
           directions(c, "scan_input_directions", a->scan_input_directions, in) &&
           directions(c, "scan_output_directions", a->scan_output_directions, out);
}

static bool scan_verify(const OpCtx *c) {
    const ScanAttrs *a = c->attrs;
    if (c->opset < 9)
        return scan_batch_verify(c);
    if (a->num_scan_inputs < 1 || (uint64_t)a->num_scan_inputs > c->n_in)
        return op_error_attr(c, "num_scan_inputs", "num_scan_inputs is %lld, of %zu operands",
                             (long long)a->num_scan_inputs, c->n_in);
    size_t n = c->n_in - (size_t)a->num_scan_inputs;
    if (c->n_out < n)
        return op_error(c, "carries %zu values and has %zu results", n, c->n_out);
    if (!counts(c, a->body, c->n_in, c->n_out) || !scan_lists(c, n) || !scan_axes(c, n))
        return false;
    bool ok = carried(c, a->body, n, 0, 0, 0);
    for (size_t i = 0; ok && i < n; i++)
        ok = keeps_shape(c, a->body->in[i], a->body->out[i]);
    for (size_t i = n; i < c->n_in; i++)
        ok = scanned(c, a->body->in[i], op_in(c, i)) && ok;
    for (size_t i = n; i < c->n_out; i++)
        ok = scanned(c, a->body->out[i], c->node->out[i]) && ok;
    return ok;
}

/* ---- the body's inputs ---- */

static bool one_shape(const Value *x, const Value *y) {
    return x->type.kind == TYPE_TENSOR && y->type.kind == TYPE_TENSOR && x->type.rank >= 0 &&
           type_same_shape(x->type, y->type);
}

static const Graph *loop_enter(const OpCtx *c) {
    return ((const LoopAttrs *)c->attrs)->body;
}

/* One element, of rank 0, or as it is stated. */
static Type one(ElemType e, const Value *v) {
    bool stated = v->type.kind == TYPE_TENSOR && v->type.rank == 1 && v->type.dims[0].value == 1;
    return type_tensor(e, stated ? 1 : 0, stated ? v->type.dims : NULL);
}

static void loop_given(const OpCtx *c, Type *in) {
    const Graph *g = loop_enter(c);
    bool states = g->in[1]->type.kind == TYPE_TENSOR && g->in[1]->type.rank >= 0;
    in[0] = one(ELEM_INT64, g->in[0]);
    in[1] = one(ELEM_BOOL, states || !op_in(c, 1) ? g->in[1] : op_in(c, 1));
    for (size_t i = 0; i < loop_carried(c); i++)
        in[2 + i] = op_type(c, 2 + i);
}

static bool loop_keeps(const OpCtx *c) {
    const Graph *g = ((const LoopAttrs *)c->attrs)->body;
    for (size_t i = 0; i < loop_carried(c); i++)
        if (!one_shape(g->in[2 + i], g->out[1 + i]))
            return false;
    return true;
}

static Type without_axis(const OpCtx *c, Type t, int64_t axis) {
    int at;
    if (t.kind != TYPE_TENSOR || t.rank < 1 || !op_axis(c, axis, t.rank, &at))
        return TYPE_UNKNOWN;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)t.rank);
    for (int i = 0; i < t.rank; i++)
        if (i != at)
            dims[i - (i > at)] = t.dims[i];
    t.rank--;
    t.dims = dims;
    return t;
}

static const Graph *scan_enter(const OpCtx *c) {
    return c->opset < 9 ? NULL : ((const ScanAttrs *)c->attrs)->body;
}

static void scan_given(const OpCtx *c, Type *in) {
    const ScanAttrs *a = c->attrs;
    size_t n = c->n_in - (size_t)a->num_scan_inputs;
    for (size_t i = 0; i < n; i++)
        in[i] = op_type(c, i);
    for (size_t i = n; i < c->n_in; i++)
        in[i] = without_axis(c, op_type(c, i), scan_int(a->scan_input_axes, i - n));
}

static bool scan_keeps(const OpCtx *c) {
    const ScanAttrs *a = c->attrs;
    for (size_t i = 0; i + (size_t)a->num_scan_inputs < c->n_in; i++)
        if (!one_shape(a->body->in[i], a->body->out[i]))
            return false;
    return true;
}

/* ---- results ---- */

/* A carried value's: what it starts as and what the body makes of it have the shape in common. */
static Type carried_result(const OpCtx *c, Type start, const Value *in, const Value *out) {
    Type t = out->type;
    if (t.kind != TYPE_TENSOR)
        return TYPE_UNKNOWN;
    bool same = one_shape(in, out) && start.kind == TYPE_TENSOR && start.rank == t.rank;
    Dim *dims = NEW_ARRAY(c->arena, Dim, same ? (size_t)t.rank + 1 : 1);
    for (int i = 0; same && i < t.rank; i++)
        dims[i] = dim_equal(start.dims[i], t.dims[i]) ? t.dims[i] : dim_unknown();
    return type_tensor(type_real_elem(t), same ? t.rank : -1, dims);
}

/* Parts along a new axis, of this length where that is not negative. */
static Type scanned_result(const OpCtx *c, Type part, int64_t axis, int64_t length) {
    int rank = part.rank + 1, at = (int)(axis < 0 ? axis + rank : axis);
    if (part.kind != TYPE_TENSOR)
        return TYPE_UNKNOWN;
    if (part.rank < 0 || at < 0 || at >= rank)
        return type_tensor(type_real_elem(part), -1, NULL);
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank);
    for (int i = 0; i < part.rank; i++)
        dims[i + (i >= at)] = part.dims[i];
    dims[at] = length < 0 ? dim_unknown() : (Dim){.value = length};
    return type_tensor(type_real_elem(part), rank, dims);
}

static bool loop_infer(OpCtx *c) {
    const Graph *g = ((const LoopAttrs *)c->attrs)->body;
    size_t n = loop_carried(c);
    for (size_t i = 0; i < c->n_out; i++)
        c->out[i] = i < n ? carried_result(c, op_type(c, 2 + i), g->in[2 + i], g->out[1 + i])
                          : scanned_result(c, g->out[1 + i]->type, 0, loop_trips(c));
    return true;
}

static bool scan_infer(OpCtx *c) {
    const ScanAttrs *a = c->attrs;
    size_t n = c->n_in - (size_t)a->num_scan_inputs;
    if (c->opset < 9) {
        for (size_t i = 0; i < c->n_out && i < a->body->n_out; i++)
            if (a->body->out[i]->type.kind == TYPE_TENSOR)
                c->out[i] = type_tensor(type_real_elem(a->body->out[i]->type), -1, NULL);
        return true;
    }
    for (size_t i = 0; i < c->n_out; i++)
        c->out[i] = i < n ? carried_result(c, op_type(c, i), a->body->in[i], a->body->out[i])
                          : scanned_result(c, a->body->out[i]->type,
                                           scan_int(a->scan_output_axes, i - n), scan_length(c));
    return true;
}

/* ---- rows ---- */

static const OpDef *loop_form(const Node *n);

#define LOOP                                                                                       \
    .domain = "", .name = "Loop", .form = loop_form, .fixed = 3, .attrs_size = sizeof(LoopAttrs),  \
    .attrs = loop_attrs, .verify = loop_verify, .infer = loop_infer, .enter = loop_enter,          \
    .given = loop_given, .keeps = loop_keeps, .reshapes = true, .bind = loop_bind

const OpDef op_Loop = {LOOP};

/* Scanned values of as many iterations as there are. */
static const OpDef counting_loop = {LOOP, .counts = true, .longest = loop_longest};

static const OpDef *loop_form(const Node *n) {
    OpCtx c = op_ctx(n, NULL);
    const Graph *g = n->typed ? ((const LoopAttrs *)n->typed)->body : NULL;
    bool scans = g && g->n_in > 1 && g->n_out > 0 && n->n_out > loop_carried(&c);
    return scans && loop_trips(&c) < 0 ? &counting_loop : &op_Loop;
}

const OpDef op_Scan = {
    .domain = "",
    .name = "Scan",
    .attrs_size = sizeof(ScanAttrs),
    .attrs = scan_attrs,
    .verify = scan_verify,
    .infer = scan_infer,
    .enter = scan_enter,
    .given = scan_given,
    .keeps = scan_keeps,
    .upgrade = scan_upgrade,
    .bind = scan_bind,
};
