/* What a model may say that is only read and written, and must not say once it is computed with:
 * scales that are no positive numbers, zero points and scales that do not belong together,
 * dimensions below -1, outputs of elements that no node yields. */
#include "ir/ops/qop.h"

#include <math.h>

typedef struct Walk {
    Diags *d;
    bool ok;
} Walk;

/* ---- parameters as operands ---- */

typedef struct Params { /* where they stand among the operands; -1: there is none */
    int scale, zp;
    bool alike;       /* as many of the one as of the other */
    int64_t channels; /* else: how many of each there may be instead of one; -1: not known */
} Params;

static const Tensor *const_data(const Node *n, int i) {
    const Value *v = i < 0 ? NULL : node_input(n, (size_t)i);
    while (v && v->def && node_is(v->def, "Identity") && v->def->n_in)
        v = v->def->in[0];
    const Tensor *t = value_data(v);
    return t && t->data ? t : NULL;
}

/* "x_scale" of "x_zero_point". */
static Str prefix_of(const char *name, const char *end) {
    return str_ends(str_from(name), end) ? (Str){name, strlen(name) - strlen(end)} : STR_NONE;
}

static int operand_called(const OnnxSchema *s, const Node *n, Str prefix, const char *end) {
    for (size_t i = 0; i < n->n_in; i++) {
        const SchemaParam *p = onnx_schema_param(s, false, (int)i);
        Str found = p ? prefix_of(p->name, end) : STR_NONE;
        if (found.n && str_eq(found, prefix))
            return (int)i;
    }
    return -1;
}

/* Scales that may be 0 or negative, as those of MatMulNBits, have another name ("scales"). */
static bool check_scale(const Node *n, int at, Diags *d) {
    const Tensor *t = const_data(n, at);
    for (size_t i = 0; t && elem_is_float(t->elem) && i < t->count; i++) {
        double s = tensor_float(t, i);
        if (isfinite(s) && s > 0)
            continue;
        Loc loc = node_in_loc(n, (size_t)at, d);
        const char *op = diag_name(d, n->op), *name = diag_name(d, n->in[at]->name);
        if (!isfinite(s))
            return diag_error(d, loc, "%s: element %zu of scale '%s' is not a finite number", op, i,
                              name);
        return diag_error(d, loc, "%s: element %zu of scale '%s' is %g; scales are greater than 0",
                          op, i, name, s);
    }
    return true;
}

static int64_t length_of(const Node *n, int at) {
    const Value *v = at < 0 ? NULL : node_input(n, (size_t)at);
    size_t count;
    return v && type_count(v->type, &count) ? (int64_t)count : -1;
}

/* One, or one a channel. */
static bool check_length(const Node *n, int at, const char *what, int64_t channels, Diags *d) {
    int64_t have = length_of(n, at);
    if (have < 0 || have == 1 || have == channels || (have > 1 && channels < 0))
        return true;
    Loc loc = node_in_loc(n, (size_t)at, d);
    if (channels <= 1)
        return diag_error(d, loc, "%s: %lld %s, where one is wanted", diag_name(d, n->op),
                          (long long)have, what);
    return diag_error(d, loc, "%s: %lld %s for %lld channels", diag_name(d, n->op), (long long)have,
                      what, (long long)channels);
}

static bool check_lengths(const Node *n, Params p, Diags *d) {
    int64_t scales = length_of(n, p.scale), zps = length_of(n, p.zp);
    if (!p.alike && !(check_length(n, p.scale, "scales", p.channels, d) &&
                      check_length(n, p.zp, "zero points", p.channels, d)))
        return false;
    bool fit = scales < 0 || zps < 0 || scales == zps || (!p.alike && (scales == 1 || zps == 1));
    return fit ||
           diag_error(d, node_in_loc(n, (size_t)p.zp, d), "%s: %lld zero points for %lld scales",
                      diag_name(d, n->op), (long long)zps, (long long)scales);
}

static bool check_params(const Node *n, Params p, Diags *d) {
    return check_scale(n, p.scale, d) && check_lengths(n, p, d);
}

/* The channels of operand i, which the weights of a multiply-accumulate alone have. */
static int64_t channels_of(const QopView *view, const OpCtx *c, size_t i) {
    const QuantRule *r = &view->op->quant;
    if (r->kind != QUANT_MAC || !r->mac.weight || i != (size_t)r->mac.weight)
        return 1;
    Type w = op_type(c, i);
    int axis = quant_weight_axis(r, c);
    return w.rank >= 0 && axis >= 0 && axis < w.rank ? w.dims[axis].value : -1;
}

static bool check_qoperator(const Node *n, Diags *d) {
    QopView view;
    if (!qop_view(n, NULL, &view, d))
        return false;
    OpCtx c = qop_ctx(n, &view, d);
    bool ok = true;
    for (size_t i = 0; i < view.n_in; i++) {
        Params p = {view.at.scale[i], view.at.zp[i], false, channels_of(&view, &c, i)};
        ok = check_params(n, p, d) && ok;
    }
    Params y = {view.at.y_scale, view.at.y_zp, false, 1};
    return check_params(n, y, d) && ok;
}

/* By the names that the schema has for operands. */
static bool check_named(const Node *n, const OnnxSchema *s, Diags *d) {
    bool ok = true;
    for (size_t i = 0; i < n->n_in; i++) {
        const SchemaParam *param = onnx_schema_param(s, false, (int)i);
        Str prefix = param ? prefix_of(param->name, "_scale") : STR_NONE;
        if (!prefix.n)
            continue;
        int zp = operand_called(s, n, prefix, "_zero_point");
        Params p = {(int)i, zp, node_conversion(n) != CONVERT_NONE, -1};
        ok = check_params(n, p, d) && ok;
    }
    return ok;
}

static void look_at_nodes(Graph *g, void *ctx) {
    Walk *u = ctx;
    if (graph_never_runs(g))
        return;
    FOR_NODES(n, g) {
        const OnnxSchema *s = node_schema(n);
        if (n->typed && qop_of(n))
            u->ok = check_qoperator(n, u->d) && u->ok;
        else if (s)
            u->ok = check_named(n, s, u->d) && u->ok;
    }
}

/* ---- inputs and outputs ---- */

static bool check_dims(const Value *v, const char *what, Diags *d) {
    Type t = v->stated ? *v->stated : v->type;
    for (int i = 0; t.kind == TYPE_TENSOR && i < t.rank; i++)
        if (t.dims[i].negative < -1)
            return diag_error(d, v->loc,
                              "%s '%s': dimension %d is %lld; a dimension is 0 or more, or open",
                              what, diag_name(d, v->name), i, (long long)t.dims[i].negative);
    return true;
}

/* Callers rely on the elements that an output states, and onnxruntime insists on them; of shapes it
 * takes what it computes. What is stated of inner values is a hint. */
static bool check_output(const Module *m, const Value *v, Diags *d) {
    bool fits = !v->stated || v->stated->kind == TYPE_NONE ||
                (v->stated->kind == v->type.kind &&
                 (v->type.kind != TYPE_TENSOR || v->stated->elem == type_real_elem(v->type)));
    return fits || v->kind != VALUE_NODE ||
           diag_error(d, v->loc, "the model states output '%s' as %s, but %s yields %s",
                      diag_name(d, v->name), type_text(m->arena, *v->stated),
                      diag_name(d, v->def->op), type_text(m->arena, v->type));
}

bool module_check_use(Module *m, Diags *d) {
    Walk u = {d, true};
    const Graph *g = m->graph;
    for (size_t i = 0; i < g->n_in; i++)
        u.ok = check_dims(g->in[i], "input", d) && u.ok;
    for (size_t i = 0; i < g->n_out; i++)
        u.ok = check_dims(g->out[i], "output", d) && check_output(m, g->out[i], d) && u.ok;
    module_each_graph(m, look_at_nodes, &u);
    return u.ok;
}
