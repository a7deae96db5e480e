/* DynamicQuantizeLSTM, QAttention and QEmbedLayerNormalization as LSTM, Attention and
 * EmbedLayerNormalization on quantized weights and, but for the last, an input of uint8q<dynamic>.
 * What has parameters that are not constant stays as it is. */
#include "passes/dynamic_form.h"
#include "passes/raise/raise.h"

static Value *operand(const Node *n, int i) {
    return i >= 0 && (size_t)i < n->n_in ? n->in[i] : NULL;
}

/* Scales [directions, rows] of W or R, which stand as [directions, length, rows]. */
static bool is_by_row(const DynamicForm *f, const Tensor *t, const Tensor *s) {
    return f->transposed && t->rank == 3 && s->rank == 2 && s->dims[0] == t->dims[0] &&
           s->dims[1] == t->dims[2];
}

static const Quant *by_row(Raise *r, const Tensor *t, const Tensor *s, const Tensor *z) {
    const Quant *one = raise_weights(r, t->elem, 1, s->count, s, z, 1);
    if (!one || t->dims[0] == 1 || one->n_axes == 0)
        return one;
    Quant *q = quant_copy(r->b.a, one);
    q->n_axes = 2;
    for (int i = 0; i < 2; i++) {
        q->axis[i] = i;
        q->block[i] = 1;
    }
    return q;
}

/* The type of weight `w`, NULL where it is none. */
static const Quant *weight_type(Raise *r, const DynamicForm *f, const Value *w, const Value *scale,
                                const Value *zp) {
    const Tensor *t = value_data(w), *s = value_data(scale), *z = value_data(zp);
    if (!t || !t->data || t->rank < 1 || (t->elem != ELEM_INT8 && t->elem != ELEM_UINT8) || !s ||
        !s->data || s->elem != ELEM_FLOAT || s->count == 0 || (zp && (!z || !z->data)) ||
        (z && z->count != 1 && z->count != s->count))
        return NULL;
    if (is_by_row(f, t, s))
        return by_row(r, t, s, z);
    if (s->count > 1 &&
        (f->axis < 0 || f->axis >= t->rank || t->dims[f->axis] != (int64_t)s->count))
        return NULL;
    return raise_weights(r, t->elem, f->axis, s->count, s, z, 1);
}

/* The constant in the layout of the float operator. */
static Value *plain_weight(Raise *r, const DynamicForm *f, Value *w) {
    const Tensor *t = value_data(w);
    if (!f->transposed || t->rank < 2)
        return w;
    size_t tail = strlen("_transposed");
    Str base = str_ends(w->name, "_transposed") ? (Str){w->name.s, w->name.n - tail} : w->name;
    Tensor *turned = tensor_transposed(r->b.a, t);
    Value *v = build_shared(&r->b, w->graph, base, "_rows", tensor_type(r->b.a, turned), turned);
    if (!v->from.n)
        value_from(v, w, r->b.pass);
    return v;
}

bool raise_form(Raise *r, Node *n, RaiseInput *input, void *ctx) {
    const OpDef *op = form_find(n);
    if (!op)
        return false;
    const DynamicForm *f = &op->dynamic;
    FormLayout at = form_layout(f);
    const Quant *quant[FORM_OPERANDS] = {0};
    size_t n_in = 0;
    for (size_t i = 0; i < FORM_OPERANDS; i++) {
        const Value *v = operand(n, at.value[i]);
        n_in = v ? i + 1 : n_in;
        if (!v || !form_is_weight(f, i))
            continue;
        quant[i] = weight_type(r, f, v, operand(n, at.scale[i]), operand(n, at.zp[i]));
        if (!quant[i])
            return false;
    }
    Value *x = NULL;
    if (f->data >= 0) {
        Value *given = operand(n, at.value[f->data]);
        Node *dynamic = NULL;
        if (at.scale[f->data] >= 0) {
            dynamic = given && given->def && node_is(given->def, "DynamicQuantizeLinear")
                          ? given->def
                          : NULL;
            if (!dynamic || dynamic->n_out < 3 || given != dynamic->out[0] ||
                operand(n, at.scale[f->data]) != dynamic->out[1] ||
                operand(n, at.zp[f->data]) != dynamic->out[2])
                return false;
            given = dynamic->in[0];
        }
        x = given ? input(ctx, n, given, dynamic) : NULL;
        if (!x)
            return false;
    }
    Node *to = node_new(n->graph, str_from(op->domain), str_from(op->name), n_in, n->n_out);
    to->name = raise_float_name(n->name);
    to->loc = n->loc;
    for (size_t i = 0; i < n_in; i++) {
        Value *v = operand(n, at.value[i]);
        to->in[i] = (int)i == f->data ? x
                    : quant[i]        ? raise_const(r, plain_weight(r, f, v), quant[i])
                                      : v;
    }
    to->attrs = n->attrs;
    to->n_attrs = n->n_attrs;
    for (size_t i = 0; i < n->n_out; i++) {
        to->out[i] = n->out[i];
        if (to->out[i])
            to->out[i]->def = to;
    }
    node_from(to, n, r->b.pass);
    node_insert_before(n, to);
    node_remove(n);
    op_resolve(to, r->b.d);
    return true;
}
