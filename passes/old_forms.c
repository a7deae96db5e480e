/* See old_forms.h. What changed by opset 7 is a rewrite for each operator; what only got another
 * default, or an attribute that meant nothing, follows from the two schemas. */
#include "passes/old_forms.h"
#include "ir/provenance.h"
#include "passes/edit.h"

#include <math.h>

typedef struct Renewal {
    UniqueNames *names;
    Diags *d;
    int64_t from;
    bool ok;
} Renewal;

typedef bool RewriteFn(Renewal *r, Node *n);

static bool refuse(Renewal *r, const Node *n, const char *why) {
    return diag_error(r->d, n->loc, "operator %s of opset %lld cannot be converted to opset %d: %s",
                      diag_name(r->d, n->op), (long long)r->from, OLD_FORMS_END, why);
}

static void rename_attr(Node *n, const char *from, const char *to) {
    const Attr *a = node_attr(n, from);
    if (!a)
        return;
    Attr renamed = *a;
    renamed.name = str_from(to);
    node_drop_attr(n, from);
    node_set_attr(n, &renamed);
}

/* ---- broadcasting: operand 1 stood at axis `axis` of operand 0 and the next ones ---- */

/* operand 1 with `more` dimensions of 1 behind its own. */
static void append_ones(Renewal *r, Node *n, int more) {
    Value *b = n->in[1];
    int64_t shape[2 * MAX_RANK];
    int rank = b->type.rank;
    for (int i = 0; i < rank + more; i++)
        shape[i] = i < rank ? 0 : 1; /* 0: as it is */
    Node *reshape = node_new(n->graph, STR_NONE, STR("Reshape"), 2, 1);
    reshape->loc = n->loc;
    reshape->in[0] = b;
    Str name = arena_strf(n->graph->module->arena, STR_FMT "_at_axis", STR_ARG(b->name));
    node_add_output(reshape, 0, unique_name(r->names, name), TYPE_UNKNOWN);
    reshape->in[1] = upgrade_ints(reshape, "shape", (Ints){shape, (size_t)(rank + more)}, r->names);
    node_from(reshape, n, "upgrade");
    node_insert_before(n, reshape);
    n->in[1] = reshape->out[0];
    r->ok = op_resolve(reshape, r->d) && node_infer(reshape, r->d) && r->ok;
}

static bool broadcast(Renewal *r, Node *n) {
    int64_t axis = node_int(n, "axis", INT64_MIN);
    bool broadcasts = node_int(n, "broadcast", 0) != 0 && axis != INT64_MIN;
    int a = value_rank(node_input(n, 0)), b = value_rank(node_input(n, 1));
    node_drop_attr(n, "axis");
    node_drop_attr(n, "broadcast");
    if (!broadcasts || b == 0)
        return true;
    if (a < 0 || b < 0)
        return refuse(r, n, "it broadcasts at an axis, and the rank of an operand is not known");
    axis += axis < 0 ? a : 0;
    if (axis < 0 || axis > a - b || a > MAX_RANK)
        return refuse(r, n, "its axis does not fit the ranks of its operands");
    if (axis + b < a)
        append_ones(r, n, a - b - (int)axis);
    return true;
}

/* A slope for each channel stands at axis 1. */
static bool prelu(Renewal *r, Node *n) {
    const Value *slope = node_input(n, 1);
    int rank = value_rank(node_input(n, 0));
    if (value_rank(slope) == 1 && slope->type.dims[0].value != 1 && rank > 2 && rank <= MAX_RANK)
        append_ones(r, n, rank - 2);
    return true;
}

/* ---- one operator each ---- */

/* The type was a name, "FLOAT". */
static bool cast(Renewal *r, Node *n) {
    const Attr *to = node_attr(n, "to");
    char name[16];
    if (to->kind != ATTR_STRING)
        return true;
    Str word = to->v.s[0];
    size_t k = 0;
    for (; k < word.n && k + 1 < sizeof name; k++)
        name[k] = (char)(word.s[k] >= 'A' && word.s[k] <= 'Z' ? word.s[k] - 'A' + 'a' : word.s[k]);
    name[k] = '\0';
    ElemType e = elem_from_name(str_from(name));
    if (e == ELEM_UNDEFINED || word.n != k)
        return refuse(r, n, "its attribute 'to' names no type");
    node_drop_attr(n, "to");
    node_set_int(n, "to", e);
    return true;
}

static bool concat(Renewal *r, Node *n) {
    (void)r;
    if (!node_attr(n, "axis"))
        node_set_int(n, "axis", 1);
    return true;
}

static bool reshape(Renewal *r, Node *n) {
    if (!node_attr(n, "shape"))
        return refuse(r, n, "it has no shape");
    upgrade_ints_attr(n, "shape", 1, r->names);
    return true;
}

static bool pad(Renewal *r, Node *n) {
    (void)r;
    rename_attr(n, "paddings", "pads");
    return true;
}

/* So many tiles along one axis, both operands. */
static bool tile(Renewal *r, Node *n) {
    int64_t repeats[MAX_RANK];
    int rank = value_rank(node_input(n, 0));
    const Tensor *tiles = value_data(node_input(n, 1)), *along = value_data(node_input(n, 2));
    if (rank < 0 || rank > MAX_RANK || !tiles || !along || !tiles->data || !along->data ||
        tiles->count != 1 || along->count != 1)
        return refuse(r, n, "its tiles, its axis or the rank of its operand are not known");
    double count = tensor_float(tiles, 0), axis = tensor_float(along, 0);
    if (!(axis >= 0 && axis < rank && count >= 0 && count <= INT32_MAX))
        return refuse(r, n, "its axis or its number of tiles is out of range");
    for (int i = 0; i < rank; i++)
        repeats[i] = i == (int)axis ? (int64_t)count : 1;
    n->n_in = 2;
    n->in[1] = upgrade_ints(n, "repeats", (Ints){repeats, (size_t)rank}, r->names);
    return true;
}

/* Factors for height and width became those of all axes, and the mode "bilinear" "linear". */
static bool upsample(Renewal *r, Node *n) {
    (void)r;
    Arena *a = n->graph->module->arena;
    const Attr *mode = node_attr(n, "mode");
    if (mode && mode->kind == ATTR_STRING && str_is(mode->v.s[0], "bilinear"))
        node_set_string(n, "mode", STR("linear"));
    float scales[] = {1, 1, node_float(n, "height_scale", 1), node_float(n, "width_scale", 1)};
    node_drop_attr(n, "height_scale");
    node_drop_attr(n, "width_scale");
    node_set_attr(n, &(Attr){.name = STR("scales"),
                             .kind = ATTR_FLOATS,
                             .n = 4,
                             .v.f = arena_copy(a, scales, sizeof scales)});
    return true;
}

static bool pool(Renewal *r, Node *n) {
    const Attr *p = node_attr(n, "p");
    if (!p || p->kind != ATTR_FLOAT)
        return true;
    float v = p->v.f[0];
    if (!(v >= 1 && v <= 1e6f) || v != floorf(v))
        return refuse(r, n, "its p is no whole number");
    node_drop_attr(n, "p");
    node_set_int(n, "p", (int64_t)v);
    return true;
}

/* Opset 1 had lengths of the data's type. */
static bool split(Renewal *r, Node *n) {
    const Tensor *t = value_data(node_input(n, 1));
    if (!node_input(n, 1))
        return true;
    if (!t || !t->data)
        return refuse(r, n, "its lengths are not constant");
    int64_t *lengths = NEW_ARRAY(n->graph->module->arena, int64_t, t->count);
    for (size_t i = 0; i < t->count; i++) {
        double v = tensor_float(t, i);
        if (!(v >= 0 && v <= INT32_MAX && v == floor(v)))
            return refuse(r, n, "its lengths are not whole numbers");
        lengths[i] = (int64_t)v;
    }
    node_set_ints(n, "split", lengths, t->count);
    n->n_in = 1;
    return true;
}

static bool dropout(Renewal *r, Node *n) {
    if (!node_int(n, "is_test", 0))
        return refuse(r, n, "it is in training (is_test is 0), which opset 7 cannot state");
    node_drop_attr(n, "is_test");
    return true;
}

/* With one result it is no training, whatever the attribute says. */
static bool batchnorm(Renewal *r, Node *n) {
    if (node_int(n, "is_test", 0))
        for (size_t i = 1; i < n->n_out; i++)
            if (n->out[i])
                return refuse(r, n, "it is no training (is_test is 1) and has results of one");
    node_drop_attr(n, "is_test");
    return true;
}

static const struct {
    const char *op;
    RewriteFn *fn;
} rewrites[] = {
    {"Add", broadcast},     {"And", broadcast},   {"BatchNormalization", batchnorm},
    {"Cast", cast},         {"Concat", concat},   {"Div", broadcast},
    {"Dropout", dropout},   {"Equal", broadcast}, {"GlobalLpPool", pool},
    {"Greater", broadcast}, {"Less", broadcast},  {"LpPool", pool},
    {"Mul", broadcast},     {"Or", broadcast},    {"PRelu", prelu},
    {"Pad", pad},           {"Pow", broadcast},   {"Reshape", reshape},
    {"Split", split},       {"Sub", broadcast},   {"Tile", tile},
    {"Upsample", upsample}, {"Xor", broadcast},
};

/* ---- what the schemas say ---- */

/* Attributes that nothing was computed with: what may be written over, whether Gemm's C may have
 * fewer dimensions, whether a recurrent layer's sequence is asked for. */
static bool is_idle(Str name) {
    return str_is(name, "consumed_inputs") || str_is(name, "broadcast") ||
           str_is(name, "output_sequence");
}

static void drop_idle(Node *n, const OnnxSchema *new) {
    for (size_t i = n->n_attrs; i-- > 0;) {
        Str name = n->attrs[i].name;
        if (is_idle(name) && !onnx_schema_attr(new, name))
            node_drop_attr(n, arena_str(n->graph->module->arena, name).s);
    }
}

/* Numbers that meant something else where they were left out (Selu's). */
static void state_defaults(Node *n, const OnnxSchema *old, const OnnxSchema *new) {
    for (int i = 0; i < old->n_attrs; i++) {
        const SchemaAttr *was = &old->attrs[i], *is = onnx_schema_attr(new, str_from(was->name));
        if (was->type == SCHEMA_FLOAT && was->presence == SCHEMA_ATTR_DEFAULT && is &&
            is->type == SCHEMA_FLOAT && was->value.f != is->value.f && !node_attr(n, was->name))
            node_set_float(n, was->name, was->value.f);
    }
}

static bool rewrite(Renewal *r, Node *n) {
    const OnnxSchema *old = onnx_schema_find(n->domain, n->op, (int)r->from);
    const OnnxSchema *new = onnx_schema_find(n->domain, n->op, OLD_FORMS_END);
    if (n->misread || !domain_is_onnx(n->domain) || !old || !new || old == new)
        return true;
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++)
        if (str_is(n->op, rewrites[i].op) && !rewrites[i].fn(r, n))
            return false;
    drop_idle(n, new);
    state_defaults(n, old, new);
    return true;
}

/* In order, so that types of operands are known. */
static void renew_graph(Renewal *r, Graph *g) {
    FOR_NODES(n, g) {
        for (size_t i = 0; i < n->n_attrs; i++)
            for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++)
                renew_graph(r, n->attrs[i].v.g[k]);
        r->ok = rewrite(r, n) && op_resolve(n, r->d) && node_infer(n, r->d) && r->ok;
    }
}

bool old_forms_renew(Module *m, PassContext *c) {
    Renewal r = {
        .names = unique_names_new(m), .d = c->d, .from = module_opset(m, STR("")), .ok = true};
    module_set_opset(m, STR(""), OLD_FORMS_END);
    renew_graph(&r, m->graph);
    if (r.ok)
        edit_sweep(m); /* operands that are lists now */
    return r.ok;
}
