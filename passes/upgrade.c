/* Rewrites operators in the form of a newer opset of the default domain (`target_opset`).
 *
 * Most operators only gained types; those whose form changed (Unsqueeze, Softmax, Dropout, ...)
 * have an `upgrade` function in their own file. An operator without a row here passes when ONNX
 * says that its definition did not change on the way, and is refused by name otherwise. */
#include "passes/pass.h"

enum { OLDEST_OPSET = 7 };

/* The IR version of the onnx release that introduced each opset (onnx.helper.VERSION_TABLE). */
static int64_t ir_for_opset(int64_t opset) {
    static const signed char ir[] = {
        [1] = 3,   [2] = 3,   [3] = 3,   [4] = 3,   [5] = 3,   [6] = 3,   [7] = 3,
        [8] = 3,   [9] = 4,   [10] = 5,  [11] = 6,  [12] = 7,  [13] = 7,  [14] = 7,
        [15] = 8,  [16] = 8,  [17] = 8,  [18] = 8,  [19] = 9,  [20] = 9,  [21] = 10,
        [22] = 10, [23] = 11, [24] = 12, [25] = 13, [26] = 13, [27] = 13, [28] = 14};
    return opset >= 1 && opset < (int64_t)sizeof ir ? ir[opset] : ir[sizeof ir - 1];
}

typedef struct Upgrade {
    PassContext *c;
    int64_t from, to;
    UniqueNames *names;
    Map *refused; /* operator types reported already */
    bool ok;
} Upgrade;

static bool unchanged(const Node *n, int64_t from, int64_t to) {
    const OnnxSchema *a = onnx_schema_find(n->domain, n->op, (int)from);
    const OnnxSchema *b = onnx_schema_find(n->domain, n->op, (int)to);
    return a && a == b;
}

static void upgrade_node(Upgrade *u, Node *n) {
    if (!domain_is_onnx(n->domain))
        return;
    if (n->def) {
        if (n->def->upgrade && !n->def->upgrade(n, u->from, u->to, u->names, u->c->d))
            u->ok = false;
        return;
    }
    if (qop_find(n->domain, n->op) || unchanged(n, u->from, u->to) || map_get(u->refused, n->op))
        return;
    map_set(u->refused, n->op, n);
    u->ok = diag_error(u->c->d, n->loc,
                       "operator %s cannot be converted from opset %lld to %lld: it changed in "
                       "between and qxc does not know how",
                       diag_name(u->c->d, n->op), (long long)u->from, (long long)u->to);
}

static void upgrade_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g) upgrade_node(ctx, n);
}

bool pass_upgrade(Module *m, PassContext *c) {
    int64_t from = module_opset(m, STR("")), to = c->target_opset;
    if (from == 0 || to <= from)
        return true;
    if (from < OLDEST_OPSET)
        return diag_error(c->d, LOC_NONE,
                          "opset %lld cannot be converted: conversion starts at opset %d",
                          (long long)from, OLDEST_OPSET);
    Upgrade u = {.c = c,
                 .from = from,
                 .to = to,
                 .names = unique_names_new(m),
                 .refused = map_new(m->arena),
                 .ok = true};
    module_each_graph(m, upgrade_graph, &u);
    module_set_opset(m, STR(""), to);
    if (m->ir_version < ir_for_opset(to))
        m->ir_version = ir_for_opset(to);
    m->has_ir_version = true;
    return u.ok;
}
