/* Older forms: what the two schemas say of operands, attributes and types, and the facts of
 * downgrade.def, which schemas do not say. */
#include "passes/downgrade.h"

#include <math.h>
#include <string.h>

#include "ir/onnx_schema.h"

typedef struct Form {
    Node *n;
    const OnnxSchema *newer, *older;
    int64_t from, to;
    UniqueNames *names; /* NULL: nothing is to change */
} Form;

/* ---- the facts ---- */

typedef enum FactKind {
    RENAMED,
    ONLY,
    STATED,
    EMPTY,
    SINGLE,
    LAST_AXIS,
    UNSAID,
    EQUAL_PARTS,
    NEWER,
    NEWER_FLAG,
    FUSED
} FactKind;

typedef struct Fact {
    FactKind kind;
    const char *op, *key, *word;
    int64_t since; /* 0: whatever the opsets are */
    int operand;
    double number;
} Fact;

/* clang-format off */
static const Fact FACTS[] = {
#define RENAMED(op_, newer, older)      {.kind = RENAMED, .op = op_, .key = newer, .word = older},
#define ONLY(op_, key_, number_)        {.kind = ONLY, .op = op_, .key = key_, .number = number_},
#define STATED(op_, key_, number_)      {.kind = STATED, .op = op_, .key = key_, .number = (double)(number_)},
#define EMPTY(op_, since_, operand_)    {.kind = EMPTY, .op = op_, .since = since_, .operand = operand_},
#define SINGLE(op_, since_, operand_)   {.kind = SINGLE, .op = op_, .since = since_, .operand = operand_},
#define LAST_AXIS(op_, since_)          {.kind = LAST_AXIS, .op = op_, .since = since_},
#define UNSAID(op_, key_, number_)      {.kind = UNSAID, .op = op_, .key = key_, .number = number_},
#define EQUAL_PARTS(op_, key_)          {.kind = EQUAL_PARTS, .op = op_, .key = key_},
#define NEWER(op_, since_, key_, word_) {.kind = NEWER, .op = op_, .since = since_, .key = key_, .word = word_},
#define NEWER_FLAG(op_, since_, key_)   {.kind = NEWER_FLAG, .op = op_, .since = since_, .key = key_},
#define FUSED(op_, since_)              {.kind = FUSED, .op = op_, .since = since_},
#include "passes/downgrade.def"
};
/* clang-format on */
enum { N_FACTS = sizeof FACTS / sizeof *FACTS };

/* The fact is about this operator, and the change lies between the two opsets. */
static bool applies(const Form *f, const Fact *fact, FactKind kind) {
    return fact->kind == kind && node_is(f->n, fact->op) &&
           (!fact->since || (f->to < fact->since && fact->since <= f->from));
}

static const Fact *find(const Form *f, FactKind kind, const char *key) {
    for (size_t i = 0; i < N_FACTS; i++)
        if (applies(f, &FACTS[i], kind) && (!key || strcmp(FACTS[i].key, key) == 0))
            return &FACTS[i];
    return NULL;
}

static bool holds_of_operand(const Form *f, FactKind kind, size_t operand) {
    for (size_t i = 0; i < N_FACTS; i++)
        if (applies(f, &FACTS[i], kind) && FACTS[i].operand == (int)operand)
            return true;
    return false;
}

/* What the schema or the node says of an attribute that is a word. */
static bool says_word(const Form *f, const char *key, const char *word) {
    const Attr *a = node_attr(f->n, key);
    const SchemaAttr *s = onnx_schema_attr(f->newer, str_from(key));
    if (a)
        return attr_holds(a, ATTR_STRING) && str_is(a->v.s[0], word);
    return s && s->presence == SCHEMA_ATTR_DEFAULT && s->type == SCHEMA_STRING &&
           strcmp(s->value.s, word) == 0;
}

static bool has_flag(const Form *f, const char *key) {
    const Attr *a = node_attr(f->n, key);
    return a && attr_holds(a, ATTR_INT) && a->v.i[0];
}

static bool is_newer(const Form *f) {
    for (const Fact *x = FACTS; x < FACTS + N_FACTS; x++)
        if ((applies(f, x, NEWER) && (!x->key || says_word(f, x->key, x->word))) ||
            (applies(f, x, NEWER_FLAG) && has_flag(f, x->key)))
            return true;
    return false;
}

/* ---- axes ---- */

/* Below opset 11 axes do not count from the end. */
static bool from_start(const Form *f, int64_t *list, size_t n) {
    const Value *of = node_is(f->n, "Unsqueeze") ? f->n->out[0] : node_input(f->n, 0);
    int rank = of ? of->type.rank : -1;
    for (size_t i = 0; i < n; i++) {
        if (list[i] >= 0)
            continue;
        if (rank < 0)
            return false;
        list[i] += rank;
    }
    return true;
}

static bool is_axes(const char *name) {
    return strcmp(name, "axis") == 0 || strcmp(name, "axes") == 0;
}

static const char *count_from_start(const Form *f, const char *name) {
    const Attr *a = node_attr(f->n, name);
    if (!a || (a->kind != ATTR_INT && a->kind != ATTR_INTS))
        return NULL;
    int64_t *list = arena_copy(f->n->graph->module->arena, a->v.i, a->n * sizeof *list);
    if (!from_start(f, list, a->n))
        return "an axis counts from the end, which it does not there, and the rank is unknown";
    if (f->names && a->kind == ATTR_INT)
        node_set_int(f->n, name, list[0]);
    else if (f->names)
        node_set_ints(f->n, name, list, a->n);
    return NULL;
}

static bool is_last_axis(const Form *f) {
    const Attr *a = node_attr(f->n, "axis");
    const SchemaAttr *s = onnx_schema_attr(f->newer, STR("axis"));
    int64_t axis = a && attr_holds(a, ATTR_INT) ? a->v.i[0] : s ? s->value.i : 0;
    return axis == -1 || axis == (int64_t)value_rank(node_input(f->n, 0)) - 1;
}

/* ---- operands ---- */

static const char *older_name(const Form *f, const char *newer) {
    const Fact *fact = find(f, RENAMED, newer);
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
    if (ints && f->to < 11 && is_axes(to->name) && !from_start(f, values, t->count))
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
    const Fact *only = find(f, ONLY, name), *stated = find(f, STATED, name);
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
    if (v && holds_of_operand(f, SINGLE, i) && v->type.rank != 0)
        return "it has one scale for a whole tensor there";
    if (v || older->option != SCHEMA_SINGLE || newer->option == SCHEMA_SINGLE)
        return NULL;
    if (!holds_of_operand(f, EMPTY, i))
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
    const Fact *unsaid = find(f, UNSAID, name);
    bool irrelevant = holds_of_operand(f, SINGLE, 1) && strcmp(name, "axis") == 0;
    return is_default(a, onnx_schema_attr(f->newer, a->name)) || irrelevant ||
           (unsaid && all_are(a, unsaid->number)) ||
           (find(f, EQUAL_PARTS, name) && results_equal(f->n));
}

static const char *stated_attrs(const Form *f) {
    Arena *arena = f->n->graph->module->arena;
    for (size_t i = f->n->n_attrs; i-- > 0;) {
        const Attr *a = &f->n->attrs[i];
        const char *name = arena_str(arena, a->name).s;
        if (onnx_schema_attr(f->older, a->name)) {
            const char *why = f->to < 11 && is_axes(name) ? count_from_start(f, name) : NULL;
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

/* What goes without saying in the newer form is stated where the older one means something else. */
static const char *unstated_attrs(const Form *f) {
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
    if (!f.newer || is_newer(&f))
        return "it means something else there";
    if (n->def && n->def->own_form && n->def->own_form(n))
        return stated_attrs(&f); /* operands are those of its type, whatever the opset */
    if (find(&f, LAST_AXIS, NULL) && !is_last_axis(&f))
        return "its axis is not the last, and there it is the first of several";
    if (names && node_older_form(n, from, to, NULL))
        return node_older_form(n, from, to, NULL); /* not half of it */
    const char *why = operands(&f);
    why = why ? why : results(&f);
    why = why ? why : unstated_attrs(&f);
    return why ? why : stated_attrs(&f);
}

bool node_fuses_as_newer(Node *n, int64_t from, int64_t to) {
    Form f = {.n = n, .from = from, .to = to};
    bool behind = false;
    for (size_t i = 0; i < n->n_in; i++)
        behind = behind || (n->in[i] && n->in[i]->def && is_onnx_dequantize(n->in[i]->def));
    return behind && find(&f, FUSED, NULL);
}
