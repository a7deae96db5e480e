/* LSTM, Attention and EmbedLayerNormalization with integer weights become the operators that
 * com.microsoft has for them: -emit=qop for onnxruntime. ONNX itself has none: elsewhere they
 * compute in float from weights that are stored as integers, and read their input as float. */
#include "ir/later.h"
#include "passes/dynamic_form.h"
#include "passes/edit.h"
#include "passes/lower/lower.h"

/* Whether the scales are those of rows: W and R [directions, rows, length] have such, too. */
static bool is_by_row(const DynamicForm *f, const Quant *q, const Value *w) {
    return f->transposed && w->type.rank == 3 &&
           (q->n_axes == 2
                ? q->axis[0] == 0 && q->axis[1] == 1 && q->block[0] == 1 && q->block[1] == 1
                : q->n_axes == 1 && q->axis[0] == 1 && w->type.dims[0].value == 1);
}

static bool axis_fits(const DynamicForm *f, const Quant *q, const Value *w) {
    if (!q || q->kind != QUANT_PARAMS || elem_bits(q->storage) != 8 || !value_is_const(w))
        return false;
    if (is_by_row(f, q, w))
        return true;
    if (quant_is_blocked(q))
        return false;
    return q->n_axes == 0 || (f->axis >= 0 && q->n_axes == 1 && q->axis[0] == f->axis);
}

/* NULL when the node can take its form, else why not. */
static const char *form_refusal(const Lower *l, const Node *n) {
    const DynamicForm *f = &n->def->dynamic;
    FormLayout at = form_layout(f);
    OpCtx c = op_ctx(n, l->b.d);
    const char *why = NULL;
    if (!l->qop || !target_has_microsoft(l->c->target))
        return "its input and state are integers only in com.microsoft's form of it (-emit=qop)";
    if (f->applies && !f->applies(&c, &why))
        return why;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && (i >= FORM_OPERANDS || at.value[i] < 0))
            return "an operand has no place in com.microsoft's form of it";
    for (size_t i = 0; i < FORM_OPERANDS; i++)
        if (form_is_weight(f, i) && i < n->n_in && n->in[i] &&
            !axis_fits(f, lower_quant(l, n->in[i]), n->in[i]))
            return "its weights are not 8-bit constants with scales that com.microsoft's form has";
    return NULL;
}

/* ---- operands ---- */

static Value *weight_of(Lower *l, const DynamicForm *f, Value *w) {
    if (!f->transposed)
        return lower_ints(l, w);
    later_make(l->b.m, w->data);
    Tensor *t = tensor_transposed(l->b.a, w->data);
    return build_from(&l->b, w, "_transposed", tensor_type(l->b.a, t), t);
}

/* Scale and zero point, one for all or a vector; along the first axis always a vector, by row a
 * matrix. */
static void put_params(Lower *l, const DynamicForm *f, const Value *w, Node *to, int at_scale,
                       int at_zp) {
    const Quant *q = lower_quant(l, w);
    bool rows = is_by_row(f, q, w);
    int64_t n = f->transposed && !rows ? w->data->dims[0] : (int64_t)q->n_scale;
    float *scale = NEW_ARRAY(l->b.a, float, (size_t)n);
    uint8_t *zp = arena_alloc(l->b.a, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        scale[i] = quant_scale(q, q->n_scale > 1 ? (size_t)i : 0);
        zp[i] = (uint8_t)quant_zp(q, q->n_scale > 1 ? (size_t)i : 0);
    }
    int rank = rows ? 2 : f->transposed || q->n_axes > 0;
    int64_t dims[] = {rows ? w->data->dims[0] : n, w->data->rank > 1 ? w->data->dims[1] : 1};
    to->in[at_scale] =
        build_floats(&l->b, base_name(w->name), "_scale", ELEM_FLOAT, rank, dims, scale);
    to->in[at_zp] =
        build_const(&l->b, base_name(w->name), "_zero_point", q->storage, rank, dims, zp);
}

static void put_input(Lower *l, Node *to, const FormLayout *at, size_t i, Value *ints) {
    const Node *dynamic = ints->def;
    if (at->scale[i] < 0) {
        l->freed = true;
        to->in[at->value[i]] = dynamic->in[0];
        return;
    }
    to->in[at->value[i]] = ints;
    to->in[at->scale[i]] = dynamic->out[1];
    to->in[at->zp[i]] = dynamic->out[2];
}

/* ---- the node ---- */

/* Attributes that the form has no name for are at their defaults (applies). */
static void copy_attrs(Lower *l, const Node *from, Node *to) {
    const OnnxSchema *schema = node_schema(to);
    to->attrs = NEW_ARRAY(l->b.a, Attr, from->n_attrs + 1);
    for (size_t i = 0; i < from->n_attrs; i++)
        if (!schema || onnx_schema_attr(schema, from->attrs[i].name))
            to->attrs[to->n_attrs++] = from->attrs[i];
}

static void take_results(Lower *l, Node *n, Node *to) {
    for (size_t i = 0; i < n->n_out; i++) {
        if (!n->out[i])
            continue;
        node_take_result(to, i, n->out[i]);
    }
    for (size_t i = 0; i < (size_t)n->def->dynamic.results; i++) {
        if (to->out[i])
            continue;
        Type t = type_tensor(ELEM_INT32, 1, n->in[0]->type.dims); /* mask_index_out */
        node_add_output(to, i, derived_name(&l->b, n->out[0]->name, "_mask_index"), t);
    }
}

static void lower_form(Lower *l, Node *n) {
    const DynamicForm *f = &n->def->dynamic;
    FormLayout at = form_layout(f);
    module_import_microsoft(l->b.m);
    size_t results = n->n_out > (size_t)f->results ? n->n_out : (size_t)f->results;
    Node *to = node_new(n->graph, STR("com.microsoft"), str_from(f->op), at.n_operands, results);
    to->name = lower_quant_name(l, n);
    to->loc = n->loc;
    for (size_t i = 0; i < n->n_in; i++) {
        Value *v = n->in[i];
        if (!v)
            continue;
        if ((int)i == f->data)
            put_input(l, to, &at, i, lower_ints(l, v));
        else if (form_is_weight(f, i)) {
            to->in[at.value[i]] = weight_of(l, f, v);
            put_params(l, f, v, to, at.scale[i], at.zp[i]);
        } else
            to->in[at.value[i]] = lower_float(l, v, n);
    }
    while (to->n_in && !to->in[to->n_in - 1])
        to->n_in--;
    copy_attrs(l, n, to);
    take_results(l, n, to);
    node_from(to, n, l->b.pass);
    node_insert_before(n, to);
    node_remove(n);
    op_resolve(to, l->b.d);
}

/* In float, from stored integers. */
static void lower_stored(Lower *l, Node *n, const char *why) {
    const DynamicForm *f = &n->def->dynamic;
    pass_remark(l->c, n, "%s", why);
    l->freed = true;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i])
            n->in[i] = (int)i == f->data ? lower_ints(l, n->in[i])->def->in[0]
                                         : lower_float(l, n->in[i], n);
}

bool lower_dynamic_form(Lower *l, Node *n) {
    const DynamicForm *f = n->def ? &n->def->dynamic : NULL;
    if (!f || !f->op)
        return false;
    bool dynamic = f->data < 0;
    for (size_t i = 0; i < n->n_in; i++) {
        const Quant *q = n->in[i] ? lower_quant(l, n->in[i]) : NULL;
        dynamic = dynamic || ((int)i == f->data && q && q->kind == QUANT_DYNAMIC);
        if (form_is_weight(f, i) && n->in[i] && !q)
            dynamic = dynamic && f->data >= 0; /* float tables: nothing to do */
    }
    if (!dynamic)
        return false;
    const char *why = form_refusal(l, n);
    if (why && f->data < 0)
        return false; /* as any node on quantized operands */
    if (why)
        lower_stored(l, n, why);
    else
        lower_form(l, n);
    return true;
}

void lower_form_finish(const Lower *l, Module *m, uint32_t first) {
    if (l->freed)
        edit_drop_dead(m, first);
}
