/* Attributes, axes among them, in older forms. */
#include "passes/downgrade_parts.h"

#include <string.h>

/* ---- axes ---- */

bool downgrade_from_start(const Form *f, int64_t *list, size_t n) {
    const Value *of = node_is(f->n, "Unsqueeze") ? f->n->out[0] : node_input(f->n, 0);
    int rank = of ? of->type.rank : -1;
    for (size_t i = 0; i < n; i++) {
        if (list[i] >= 0)
            continue;
        if (rank < 0)
            return false;
        list[i] += rank > 0 ? rank : 1; /* a scalar is a row of one */
    }
    return true;
}

bool downgrade_is_axes(const char *name) {
    return strcmp(name, "axis") == 0 || strcmp(name, "axes") == 0;
}

static const char *count_from_start(const Form *f, const char *name) {
    const Attr *a = node_attr(f->n, name);
    if (!a || (a->kind != ATTR_INT && a->kind != ATTR_INTS))
        return NULL;
    int64_t *list = arena_copy(f->n->graph->module->arena, a->v.i, a->n * sizeof *list);
    if (!downgrade_from_start(f, list, a->n))
        return "an axis counts from the end, which it does not there, and the rank is unknown";
    if (f->names && a->kind == ATTR_INT)
        node_set_int(f->n, name, list[0]);
    else if (f->names)
        node_set_ints(f->n, name, list, a->n);
    return NULL;
}

bool downgrade_is_last_axis(const Form *f) {
    const Attr *a = node_attr(f->n, "axis");
    const SchemaAttr *s = onnx_schema_attr(f->newer, STR("axis"));
    int64_t axis = a && attr_holds(a, ATTR_INT) ? a->v.i[0] : s ? s->value.i : 0;
    return axis == -1 || axis == (int64_t)value_rank(node_input(f->n, 0)) - 1;
}

/* ---- attributes ---- */

static bool same_default(const SchemaAttr *x, const SchemaAttr *y) {
    if (x->presence != SCHEMA_ATTR_DEFAULT || y->presence != SCHEMA_ATTR_DEFAULT)
        return x->presence == y->presence || y->presence == SCHEMA_ATTR_OPTIONAL;
    switch ((int)x->type) {
    case SCHEMA_INT: return x->value.i == y->value.i;
    case SCHEMA_FLOAT: return x->value.f == y->value.f;
    case SCHEMA_STRING: return strcmp(x->value.s, y->value.s) == 0;
    default: return false;
    }
}

static bool is_default(const Attr *a, const SchemaAttr *s) {
    if (!s || s->presence != SCHEMA_ATTR_DEFAULT || (int)a->kind != (int)s->type)
        return false;
    switch ((int)s->type) {
    case SCHEMA_INT: return attr_holds(a, ATTR_INT) && a->v.i[0] == s->value.i;
    case SCHEMA_FLOAT: return attr_holds(a, ATTR_FLOAT) && a->v.f[0] == s->value.f;
    case SCHEMA_STRING: return attr_holds(a, ATTR_STRING) && str_is(a->v.s[0], s->value.s);
    default: return false;
    }
}

static bool all_are(const Attr *a, double number) {
    for (size_t i = 0; i < a->n && a->kind == ATTR_INTS; i++)
        if ((double)a->v.i[i] != number)
            return false;
    return a->kind == ATTR_INTS;
}

static bool results_equal(const Node *n) {
    for (size_t i = 0; i < n->n_out; i++) {
        Type x = n->out[0] ? n->out[0]->type : (Type){.rank = -1};
        Type y = n->out[i] ? n->out[i]->type : (Type){.rank = -1};
        if (x.rank < 0 || x.rank != y.rank)
            return false;
        for (int k = 0; k < x.rank; k++)
            if (!dim_equal(x.dims[k], y.dims[k]))
                return false;
    }
    return true;
}

/* An attribute that the older form does not have says nothing that it does not mean. */
static bool may_go(const Form *f, const Attr *a, const char *name) {
    const Fact *unsaid = downgrade_fact(f, UNSAID, name);
    bool irrelevant = downgrade_of_operand(f, SINGLE, 1) && strcmp(name, "axis") == 0;
    return is_default(a, onnx_schema_attr(f->newer, a->name)) || irrelevant ||
           (unsaid && all_are(a, unsaid->number)) ||
           (downgrade_fact(f, EQUAL_PARTS, name) && results_equal(f->n));
}

const char *downgrade_stated(const Form *f) {
    Arena *arena = f->n->graph->module->arena;
    for (size_t i = f->n->n_attrs; i-- > 0;) {
        const Attr *a = &f->n->attrs[i];
        const char *name = arena_str(arena, a->name).s;
        if (onnx_schema_attr(f->older, a->name)) {
            const char *why =
                f->to < 11 && downgrade_is_axes(name) ? count_from_start(f, name) : NULL;
            if (why)
                return why;
        } else if (!may_go(f, a, name)) {
            return arena_strf(arena, "its attribute %s does not exist there", name).s;
        } else if (f->names) {
            node_drop_attr(f->n, name);
        }
    }
    return NULL;
}

static void state_default(const Form *f, const SchemaAttr *s) {
    if (s->type == SCHEMA_INT)
        node_set_int(f->n, s->name, s->value.i);
    else if (s->type == SCHEMA_FLOAT)
        node_set_float(f->n, s->name, s->value.f);
    else
        node_set_string(f->n, s->name, str_from(s->value.s));
}

const char *downgrade_unstated(const Form *f) {
    for (int i = 0; i < f->older->n_attrs; i++) {
        const SchemaAttr *older = &f->older->attrs[i];
        const SchemaAttr *newer = onnx_schema_attr(f->newer, str_from(older->name));
        if (!newer || node_attr(f->n, older->name) || same_default(newer, older))
            continue;
        if (newer->presence != SCHEMA_ATTR_DEFAULT ||
            (newer->type != SCHEMA_INT && newer->type != SCHEMA_FLOAT &&
             newer->type != SCHEMA_STRING))
            return "an attribute that it leaves out means something else there";
        if (f->names)
            state_default(f, newer);
    }
    return NULL;
}
