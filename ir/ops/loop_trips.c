/* How often Loop and Scan run their bodies. */
#include "ir/ops/loop.h"

int64_t scan_int(Ints list, size_t i) {
    return i < list.n ? list.v[i] : 0;
}

int64_t scan_extent(Type t, int64_t axis) {
    int64_t at = axis < 0 ? axis + t.rank : axis;
    return t.kind != TYPE_TENSOR || at < 0 || at >= t.rank ? -1 : t.dims[at].value;
}

int64_t scan_length(const OpCtx *c) {
    const ScanAttrs *a = c->attrs;
    size_t n = c->n_in - (size_t)a->num_scan_inputs;
    int64_t length = -1;
    for (size_t i = n; length < 0 && i < c->n_in; i++)
        length = scan_extent(op_type(c, i), scan_int(a->scan_input_axes, i - n));
    return length;
}

size_t loop_carried(const OpCtx *c) {
    return c->n_in < 2 ? 0 : c->n_in - 2;
}

static bool is_true(const Value *v) {
    const Tensor *t = value_data(v);
    return t && t->data && t->elem == ELEM_BOOL && t->count == 1 && tensor_int(t, 0);
}

/* Whether the condition stays what it was at the beginning, or is true. */
static bool stays_true(const Graph *body) {
    const Value *v = body->out[0];
    while (v->def && v->def->graph == body && v->def->n_in == 1 && v->def->in[0] &&
           (node_is(v->def, "Identity") ||
            (node_is(v->def, "Cast") && node_int(v->def, "to", 0) == ELEM_BOOL &&
             v->def->in[0]->type.kind == TYPE_TENSOR && v->def->in[0]->type.elem == ELEM_BOOL)))
        v = v->def->in[0];
    return v == body->in[1] || is_true(v);
}

int64_t loop_trips(const OpCtx *c) {
    const Graph *g = ((const LoopAttrs *)c->attrs)->body;
    const Tensor *t = op_const(c, 0);
    if (!t || !t->data || t->elem != ELEM_INT64 || t->count != 1 ||
        (op_in(c, 1) && !is_true(op_in(c, 1))) || !stays_true(g))
        return -1;
    int64_t n = tensor_int(t, 0);
    return n < 0 ? 0 : n > INT32_MAX ? -1 : n;
}

int64_t loop_longest(const OpCtx *c) {
    const Tensor *t = op_const(c, 0);
    int64_t n = t && t->data && t->elem == ELEM_INT64 && t->count == 1 ? tensor_int(t, 0) : -1;
    return n > INT32_MAX ? -1 : n;
}
