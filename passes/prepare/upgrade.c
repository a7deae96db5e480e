/* The pass `upgrade`: the whole module in the form of another opset of the default domain
 * (`target_opset`).
 *
 * Downwards only what is the same there, but for types: the verifier asks about these. */
#include "passes/upgrade.h"

#include <string.h>

static void upgrade_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g) upgrade_node(ctx, n);
}

/* A function's body has no constants in ONNX, only Constant nodes. */
static void constants_to_nodes(Graph *body) {
    for (size_t i = body->n_consts; i-- > 0;) {
        Value *v = body->consts[i];
        Node *n = node_new(body, STR_NONE, STR("Constant"), 0, 1);
        n->from = v->from;
        v->from = (Provenance){0};
        node_set_tensor(n, "value", v->data);
        v->kind = VALUE_NODE;
        v->def = n;
        n->out[0] = v;
        v->data = NULL;
        if (body->first)
            node_insert_before(body->first, n);
        else
            graph_append(body, n);
    }
    body->n_consts = 0;
}

static void import_newer(Function *f, int64_t to) {
    for (size_t i = 0; i < f->n_imports; i++)
        if (domain_is_onnx(f->imports[i].domain) && f->imports[i].version < to)
            f->imports[i].version = to;
}

/* ---- downwards ---- */

enum { OLDEST_BELOW = 13 };

static bool same_params(const SchemaParam *x, const SchemaParam *y, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(x[i].name, y[i].name) != 0 || x[i].option != y[i].option)
            return false;
    return true;
}

static bool same_default(const SchemaAttr *x, const SchemaAttr *y) {
    if (x->presence != y->presence || x->type != y->type)
        return false;
    if (x->presence != SCHEMA_ATTR_DEFAULT)
        return true;
    switch ((int)x->type) {
    case ATTR_INT: return x->value.i == y->value.i;
    case ATTR_FLOAT: return x->value.f == y->value.f;
    case ATTR_STRING: return strcmp(x->value.s, y->value.s) == 0;
    default: return false;
    }
}

/* What schemas do not show: operators, or values of their attributes, that are others below an
 * opset. */
static const struct {
    const char *op;
    int64_t since;
    const char *attr, *value; /* NULL: whatever they are */
} NEWER[] = {
    {"GroupNormalization", 21, NULL, NULL}, /* scales of groups, not of channels */
    {"RoiAlign", 16, NULL, NULL},           /* by default no half pixel */
    {"Resize", 19, "coordinate_transformation_mode", "half_pixel_symmetric"},
    {"Pad", 19, "mode", "wrap"},
    {"ScatterND", 18, "reduction", "max"},
    {"ScatterND", 18, "reduction", "min"},
    {"ScatterElements", 18, "reduction", "max"},
    {"ScatterElements", 18, "reduction", "min"},
    {"GridSample", 20, "mode", "linear"},
    {"GridSample", 20, "mode", "cubic"},
};

static bool is_newer(const Node *n, int64_t opset) {
    for (size_t i = 0; i < sizeof NEWER / sizeof *NEWER; i++) {
        if (!node_is(n, NEWER[i].op) || opset >= NEWER[i].since)
            continue;
        const Attr *a = NEWER[i].attr ? node_attr(n, NEWER[i].attr) : NULL;
        if (!NEWER[i].attr || (a && a->kind == ATTR_STRING && str_is(a->v.s[0], NEWER[i].value)))
            return true;
    }
    return false;
}

/* Whether the node, as it stands, means by the older schema what it means by the newer one. */
static bool means_the_same(const Node *n, const OnnxSchema *older, const OnnxSchema *newer) {
    if (older->n_inputs != newer->n_inputs || older->n_outputs != newer->n_outputs ||
        !same_params(older->inputs, newer->inputs, older->n_inputs) ||
        !same_params(older->outputs, newer->outputs, older->n_outputs))
        return false;
    for (int i = 0; i < newer->n_attrs; i++) {
        const SchemaAttr *a = &newer->attrs[i], *b = onnx_schema_attr(older, str_from(a->name));
        bool stated = node_attr(n, a->name) != NULL;
        if (stated ? !b : b && !same_default(a, b))
            return false;
    }
    return true;
}

static void lower_node(Upgrade *u, const Node *n, int64_t from) {
    if (!domain_is_onnx(n->domain))
        return;
    const OnnxSchema *newer = onnx_schema_find(n->domain, n->op, (int)from);
    const OnnxSchema *older = onnx_schema_find(n->domain, n->op, (int)u->to);
    if (newer == older ||
        (newer && older && !is_newer(n, u->to) && means_the_same(n, older, newer)))
        return;
    u->ok = upgrade_refuse(u, n, from,
                           older ? "it means something else there; export the model at that opset"
                                 : "it does not exist there; export the model at that opset");
}

static void lower_graph(Graph *g, void *ctx) {
    Upgrade *u = ctx;
    FOR_NODES(n, g) lower_node(u, n, module_opset(g->module, STR("")));
}

static bool downgrade(Module *m, PassContext *c, int64_t from) {
    if (c->target_opset < from && (c->target_opset < OLDEST_BELOW || m->n_functions))
        return diag_error(c->d, LOC_NONE,
                          "-target-opset=%lld: the model is at opset %lld, and operators are "
                          "converted downwards to %d at least, without functions; export it again "
                          "at that opset",
                          (long long)c->target_opset, (long long)from, OLDEST_BELOW);
    Upgrade u = upgrade_begin(m, c, c->target_opset);
    module_each_graph(m, lower_graph, &u);
    if (!u.ok)
        return false;
    module_set_opset(m, STR(""), u.to);
    int64_t ir = onnx_ir_for_opset(u.to), least = onnx_ir_for_opset(21); /* has all we write */
    if (m->ir_version > least)
        m->ir_version = ir > least ? ir : least;
    return true;
}

bool pass_upgrade(Module *m, PassContext *c) {
    int64_t from = module_opset(m, STR("")), to = c->target_opset;
    if (to > 0 && to <= from && c->lowers_opset)
        return downgrade(m, c, from);
    if (to <= from)
        return true;
    if (from && from < UPGRADE_OLDEST)
        return diag_error(c->d, LOC_NONE,
                          "opset %lld cannot be converted: conversion starts at opset %d",
                          (long long)from, UPGRADE_OLDEST);
    Upgrade u = upgrade_begin(m, c, to);
    module_each_graph(m, upgrade_graph, &u);
    for (size_t i = 0; i < m->n_functions; i++) {
        constants_to_nodes(m->functions[i]->body);
        import_newer(m->functions[i], to);
    }
    upgrade_end(&u, m);
    return u.ok;
}
