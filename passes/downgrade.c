/* Older forms: what the two schemas say of operands, attributes and types, and the facts of
 * downgrade.def, which schemas do not say. */
#include "passes/downgrade_parts.h"

#include <string.h>

/* ---- operands ---- */

static const char *older_name(const Form *f, const char *newer) {
    const Fact *fact = downgrade_fact(f, RENAMED, newer);
    return fact ? fact->word : newer;
}

/* An operand that is an attribute in the older form. */
static const char *to_attribute(const Form *f, const Value *v, const SchemaAttr *to) {
    const Tensor *t = value_data(v);
    bool list = to->type == SCHEMA_INTS || to->type == SCHEMA_FLOATS;
    bool ints = to->type == SCHEMA_INT || to->type == SCHEMA_INTS;
    if (!t || !t->data)
        return "an operand of it is computed, and is an attribute there";
    if ((!list && t->count != 1) ||
        (ints ? t->elem != ELEM_INT64 && t->elem != ELEM_INT32 : t->elem != ELEM_FLOAT || list))
        return "an operand of it is no number that the attribute there could hold";
    int64_t *values = NEW_ARRAY(f->n->graph->module->arena, int64_t, t->count + 1);
    for (size_t i = 0; ints && i < t->count; i++)
        values[i] = tensor_int(t, i);
    if (ints && f->to < 11 && downgrade_is_axes(to->name) &&
        !downgrade_from_start(f, values, t->count))
        return "an axis counts from the end, which it does not there, and the rank is unknown";
    if (!f->names || (list && !t->count))
        return NULL;
    if (list)
        node_set_ints(f->n, to->name, values, t->count);
    else if (ints)
        node_set_int(f->n, to->name, values[0]);
    else
        node_set_float(f->n, to->name, (float)tensor_float(t, 0));
    return NULL;
}

static bool holds_only(const Value *v, double number) {
    const Tensor *t = value_data(v);
    for (size_t i = 0; t && t->data && i < t->count; i++)
        if (tensor_float(t, i) != number)
            return false;
    return t && t->data;
}

/* One that the older schema has at no place. */
static const char *gone_operand(const Form *f, const char *name, const Value *v) {
    const Fact *only = downgrade_fact(f, ONLY, name), *stated = downgrade_fact(f, STATED, name);
    const SchemaAttr *attr = onnx_schema_attr(f->older, str_from(older_name(f, name)));
    if (only)
        return !v || holds_only(v, only->number)
                   ? NULL
                   : "an operand of it does not exist there, nor what it says";
    if (!attr)
        return v ? "an operand of it does not exist there" : NULL;
    if (v)
        return to_attribute(f, v, attr);
    if (attr->presence == SCHEMA_ATTR_REQUIRED)
        return "an operand that it leaves out is an attribute there that it has to have";
    if (stated && f->names)
        node_set_float(f->n, attr->name, (float)stated->number);
    return NULL;
}

/* What is beyond ONNX already (Aidge's operators on integers) is so at any opset. */
static bool takes_type(const Form *f, bool is_output, size_t i, const Value *v) {
    if (!v || type_is_quantized(v->type) || v->type.kind != TYPE_TENSOR ||
        v->type.elem == ELEM_UNDEFINED)
        return true;
    return onnx_schema_allows(f->older, is_output, (int)i, (int)v->type.elem) ||
           !onnx_schema_allows(f->newer, is_output, (int)i, (int)v->type.elem);
}

/* One that the older schema has as well. */
static const char *kept_operand(const Form *f, size_t i, const SchemaParam *newer,
                                const SchemaParam *older) {
    Value *v = node_input(f->n, i);
    if (strcmp(older->name, newer->name) != 0 &&
        strcmp(older->name, older_name(f, newer->name)) != 0)
        return "its operands mean something else there";
    if (!takes_type(f, false, i, v))
        return "it does not take this element type there";
    if (v && downgrade_of_operand(f, SINGLE, i) && v->type.rank != 0)
        return "it has one scale for a whole tensor there";
    if (v || older->option != SCHEMA_SINGLE || newer->option == SCHEMA_SINGLE)
        return NULL;
    if (!downgrade_of_operand(f, EMPTY, i))
        return "it has to have an operand there that it leaves out";
    while (f->names && f->n->n_in <= i)
        node_add_input(f->n, NULL);
    if (f->names)
        f->n->in[i] = upgrade_floats(f->n, older->name, (Floats){NULL, 0}, f->names);
    return NULL;
}

static const char *operands(const Form *f) {
    size_t n = f->newer->n_inputs > f->n->n_in ? f->newer->n_inputs : f->n->n_in, kept = 0;
    const char *why = NULL;
    for (size_t i = 0; i < n && !why; i++) {
        const SchemaParam *newer = onnx_schema_param(f->newer, false, (int)i);
        const SchemaParam *older = onnx_schema_param(f->older, false, (int)i);
        if (newer && older)
            why = kept_operand(f, i, newer, older);
        else if (newer)
            why = gone_operand(f, newer->name, node_input(f->n, i));
        kept = older ? i + 1 : kept;
    }
    if (!why && f->names && f->n->n_in > kept)
        f->n->n_in = kept;
    return why;
}

static const char *results(const Form *f) {
    for (size_t i = 0; i < f->n->n_out; i++) {
        const SchemaParam *newer = onnx_schema_param(f->newer, true, (int)i);
        const SchemaParam *older = onnx_schema_param(f->older, true, (int)i);
        if (!f->n->out[i] || !newer)
            continue;
        if (!older || strcmp(newer->name, older->name) != 0)
            return "a result of it does not exist there";
        if (!takes_type(f, true, i, f->n->out[i]))
            return "it does not yield this element type there";
    }
    return NULL;
}

/* ---- the node ---- */

const char *node_older_form(Node *n, int64_t from, int64_t to, UniqueNames *names) {
    Form f = {n,
              onnx_schema_find(n->domain, n->op, (int)from),
              onnx_schema_find(n->domain, n->op, (int)to),
              from,
              to,
              names};
    if (f.newer == f.older)
        return NULL;
    if (!f.older)
        return n->def && n->def->composite ? NULL : "it does not exist there";
    if (!f.newer || downgrade_is_newer(&f))
        return "it means something else there";
    if (n->def && n->def->own_form && n->def->own_form(n))
        return downgrade_stated(&f); /* operands are those of its type, whatever the opset */
    if (downgrade_fact(&f, LAST_AXIS, NULL) && !downgrade_is_last_axis(&f))
        return "its axis is not the last, and there it is the first of several";
    if (names && node_older_form(n, from, to, NULL))
        return node_older_form(n, from, to, NULL); /* not half of it */
    const char *why = operands(&f);
    why = why ? why : results(&f);
    why = why ? why : downgrade_unstated(&f);
    return why ? why : downgrade_stated(&f);
}

bool node_fuses_as_newer(Node *n, int64_t from, int64_t to) {
    Form f = {.n = n, .from = from, .to = to};
    bool behind = false;
    for (size_t i = 0; i < n->n_in; i++)
        behind = behind || (n->in[i] && n->in[i]->def && is_onnx_dequantize(n->in[i]->def));
    return behind && downgrade_fact(&f, FUSED, NULL);
}
