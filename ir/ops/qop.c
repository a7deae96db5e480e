/* See qop.h. A form is a list of words: "0* 1* y 2", "y ..*" (op.h says what they mean). */
#include "ir/ops/qop.h"

#include <stdlib.h>

/* The channels-last forms are other operators: their shapes follow other rules. */
const OpDef *qop_of(const Node *n) {
    if (n->def || node_int(n, "channels_last", 0))
        return NULL;
    return qop_find(n->domain, n->op);
}

static void put_data(QopLayout *l, size_t i, bool star) {
    if (i >= l->n_data)
        return; /* a trailing optional operand that is not there */
    l->data[i] = (int)l->n_operands++;
    if (star) {
        l->scale[i] = (int)l->n_operands++;
        l->zp[i] = (int)l->n_operands++;
    }
}

/* Operand i counts even when absent if something stands after it (QGemm's C before y). */
static void put_gap(QopLayout *l, size_t i) {
    if (i >= l->n_data)
        l->n_operands++;
}

bool qop_layout(const QopForm *f, size_t n_data, QopLayout *l, Arena *a) {
    *l = (QopLayout){.n_data = n_data, .y_scale = -1, .y_zp = -1};
    l->data = NEW_ARRAY(a, int, 3 * n_data + 3);
    l->scale = l->data + n_data;
    l->zp = l->scale + n_data;
    for (size_t i = 0; i < 3 * n_data; i++)
        l->data[i] = -1;
    size_t seen = 0;
    for (const char *p = f->operands; *p;) {
        if (*p == 'y') {
            l->y_scale = (int)l->n_operands++;
            l->y_zp = (int)l->n_operands++;
            p++;
        } else if (*p == '.') {
            for (; seen < n_data; seen++)
                put_data(l, seen, true);
            p += strlen("..*");
        } else {
            char *end;
            seen = (size_t)strtoul(p, &end, 10);
            bool star = *end == '*';
            p = end + star;
            put_data(l, seen, star);
            if (*p)
                put_gap(l, seen);
            seen++;
        }
        while (*p == ' ')
            p++;
    }
    return seen >= n_data;
}

/* The largest number of data operands whose layout the node's operands can fill. */
static bool layout_of(const Node *n, const QopForm *f, QopLayout *l, Arena *a) {
    bool found = false;
    for (size_t data = 1; data <= n->n_in; data++) {
        QopLayout try;
        if (!qop_layout(f, data, &try, a))
            break;
        size_t first = (size_t)try.data[data - 1];
        if (first >= n->n_in)
            break;
        *l = try;
        found = true;
    }
    return found;
}

static Value *operand(const Node *n, int i) {
    return i >= 0 ? node_input(n, (size_t)i) : NULL;
}

bool qop_view(const Node *n, const OpDef **op, QopView *view, Diags *d) {
    const OpDef *def = qop_of(n);
    if (!def)
        return false;
    Arena *a = n->graph->module->arena;
    *view = (QopView){.op = def};
    if (!layout_of(n, &def->qop, &view->at, a))
        return diag_error(d, n->loc, "%s has too few operands (%zu)", diag_name(d, n->op), n->n_in);
    const QopLayout *l = &view->at;
    view->in = NEW_ARRAY(a, Value *, 3 * l->n_data);
    view->scale = view->in + l->n_data;
    view->zp = view->scale + l->n_data;
    for (size_t i = 0; i < l->n_data; i++) {
        view->in[i] = operand(n, l->data[i]);
        view->scale[i] = operand(n, l->scale[i]);
        view->zp[i] = operand(n, l->zp[i]);
        if (view->in[i])
            view->n_in = i + 1;
    }
    view->y_scale = operand(n, l->y_scale);
    view->y_zp = operand(n, l->y_zp);
    if (op)
        *op = def;
    return true;
}

OpCtx qop_ctx(const Node *n, const QopView *view, Diags *d) {
    OpCtx c = op_ctx(n, d);
    c.in = view->in;
    c.n_in = view->n_in;
    c.opset = module_opset(n->graph->module, STR(""));
    return c;
}

ElemType qop_result_elem(const QopView *view) {
    if (view->y_zp && view->y_zp->type.kind == TYPE_TENSOR)
        return view->y_zp->type.elem;
    if (!view->y_scale)
        return ELEM_FLOAT;
    const Value *x = NULL;
    for (size_t i = 0; i < view->n_in && !x; i++)
        x = view->scale[i] ? view->in[i] : NULL;
    return x && x->type.kind == TYPE_TENSOR ? x->type.elem : ELEM_UNDEFINED;
}

const Quant *qop_quant(Arena *a, ElemType storage, const Value *scale, const Value *zp, int axis) {
    const Tensor *s = value_data(scale), *z = value_data(zp);
    if (!s || !s->data || s->elem != ELEM_FLOAT || s->rank > 1 || s->count == 0 ||
        !elem_is_int(storage))
        return NULL;
    if (zp && (!z || !z->data || !elem_is_int(z->elem) || (z->count != 1 && z->count != s->count)))
        return NULL;
    float *scales = NEW_ARRAY(a, float, s->count);
    int64_t *zps = NEW_ARRAY(a, int64_t, s->count);
    for (size_t i = 0; i < s->count; i++) {
        scales[i] = (float)tensor_float(s, i);
        zps[i] = z ? tensor_int(z, z->count == 1 ? 0 : i) : 0;
    }
    if (s->count == 1)
        return quant_per_tensor(a, storage, scales[0], zps[0]);
    return axis < 0 ? NULL : quant_per_axis(a, storage, axis, s->count, scales, zps);
}
