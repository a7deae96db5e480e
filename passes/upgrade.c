/* Rewrites operators in the form of a newer opset of the default domain.
 *
 * Most operators only gained types; those whose form changed (Unsqueeze, Softmax, Dropout, ...)
 * have an `upgrade` function in their own file. An operator without a row here passes when ONNX
 * says that its definition did not change on the way, and is refused by name otherwise. */
#include "passes/upgrade.h"
#include "passes/downgrade.h"

Upgrade upgrade_begin(Module *m, PassContext *c, int64_t to) {
    return (Upgrade){
        .c = c, .to = to, .names = unique_names_new(m), .refused = map_new(m->arena), .ok = true};
}

void upgrade_end(Upgrade *u, Module *m) {
    module_set_opset(m, STR(""), u->to);
    if (m->ir_version < onnx_ir_for_opset(u->to))
        m->ir_version = onnx_ir_for_opset(u->to);
    m->has_ir_version = true;
}

static bool unchanged(const Node *n, int64_t from, int64_t to) {
    const OnnxSchema *a = onnx_schema_find(n->domain, n->op, (int)from);
    const OnnxSchema *b = onnx_schema_find(n->domain, n->op, (int)to);
    return a && a == b;
}

/* In a function's body an attribute may stand for one of the call, of which nothing is known. */
static const Attr *reference(const Node *n) {
    for (size_t i = 0; i < n->n_attrs; i++)
        if (attr_is_ref(&n->attrs[i]))
            return &n->attrs[i];
    return NULL;
}

bool upgrade_refuse(Upgrade *u, const Node *n, int64_t from, const char *why) {
    if (map_get(u->refused, n->op))
        return false;
    map_set(u->refused, n->op, (void *)n);
    return diag_error(u->c->d, n->loc,
                      "operator %s cannot be converted from opset %lld to %lld: %s",
                      diag_name(u->c->d, n->op), (long long)from, (long long)u->to, why);
}

static bool convert(Upgrade *u, Node *n, int64_t from) {
    if (from < UPGRADE_OLDEST)
        return upgrade_refuse(u, n, from, "in a function conversion starts at opset 7");
    if (n->def && n->def->upgrade && reference(n))
        return upgrade_refuse(
            u, n, from,
            "an attribute of it is the function's, so the function must be inlined first "
            "(-passes=inline-functions,upgrade)");
    if (n->def)
        return !n->def->upgrade || n->def->upgrade(n, from, u->to, u->names, u->c->d);
    if (qop_find(n->domain, n->op) || unchanged(n, from, u->to))
        return true;
    const OnnxSchema *then = onnx_schema_find(n->domain, n->op, (int)u->to);
    if (!then && !onnx_schema_find(n->domain, n->op, (int)from))
        return true; /* an operator of somebody else in ONNX's domain, which no opset says */
    return upgrade_refuse(u, n, from,
                          !then ? "ONNX has no such operator"
                          : then->flags & SCHEMA_DEPRECATED
                              ? "it does not exist there any more"
                              : "it changed in between and qxc does not know how");
}

bool downgrade_node(Upgrade *u, Node *n) {
    int64_t from = node_opset(n), lowest = u->to + 1;
    const char *why = domain_is_onnx(n->domain) ? node_older_form(n, from, u->to, u->names) : NULL;
    if (!why || map_get(u->refused, n->op))
        return !why;
    while (lowest < from && node_older_form(n, from, lowest, NULL))
        lowest++;
    map_set(u->refused, n->op, n);
    return diag_error(u->c->d, n->loc,
                      "operator %s cannot be converted from opset %lld to %lld: %s; the lowest "
                      "opset that this node has a form at is %lld",
                      diag_name(u->c->d, n->op), (long long)from, (long long)u->to, why,
                      (long long)lowest);
}

void upgrade_node(Upgrade *u, Node *n) {
    int64_t from = node_opset(n);
    if (domain_is_onnx(n->domain) && from > u->to)
        node_older_form(n, from, u->to, u->names); /* the verifier asks whether it took it */
    if (domain_is_onnx(n->domain) && from < u->to && !convert(u, n, from))
        u->ok = false;
}

typedef struct Lowest {
    int64_t from, to;
    bool fits;
} Lowest;

static void ask_graph(Graph *g, void *ctx) {
    Lowest *l = ctx;
    FOR_NODES(n, g)
    if (domain_is_onnx(n->domain) &&
        (node_older_form(n, l->from, l->to, NULL) || node_fuses_as_newer(n, l->from, l->to)))
        l->fits = false;
}

int64_t module_lowest_opset(Module *m, int64_t least) {
    Lowest l = {.from = module_opset(m, STR(""))};
    for (l.to = least; l.to < l.from && !m->n_functions; l.to++) {
        l.fits = true;
        module_each_graph(m, ask_graph, &l);
        if (l.fits)
            return l.to;
    }
    return l.from;
}
