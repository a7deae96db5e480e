/* The pass `upgrade`: the whole module in the form of another opset of the default domain
 * (`target_opset`).
 *
 * Downwards goes what has an older form (passes/downgrade.def). */
#include "passes/edit.h"
#include "passes/old_forms.h"

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

static void lower_graph(Graph *g, void *ctx) {
    Upgrade *u = ctx;
    FOR_NODES(n, g)
    u->ok = downgrade_node(u, n) && u->ok;
}

static bool downgrade(Module *m, PassContext *c, int64_t from) {
    if (c->target_opset < from && (c->target_opset < UPGRADE_OLDEST || m->n_functions))
        return diag_error(c->d, LOC_NONE,
                          "-target-opset=%lld: the model is at opset %lld, and operators are "
                          "converted downwards to %d at least, without functions "
                          "(-passes=inline-functions,upgrade)",
                          (long long)c->target_opset, (long long)from, UPGRADE_OLDEST);
    Upgrade u = upgrade_begin(m, c, c->target_opset);
    module_each_graph(m, lower_graph, &u);
    if (!u.ok)
        return false;
    edit_sweep(m); /* operands that became attributes */
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
    if (from && from < OLD_FORMS_END && to < OLD_FORMS_END)
        return diag_error(c->d, LOC_NONE,
                          "opset %lld can be converted to opset %d or newer, not to %lld",
                          (long long)from, OLD_FORMS_END, (long long)to);
    if (from && from < OLD_FORMS_END && !old_forms_renew(m, c))
        return false;
    Upgrade u = upgrade_begin(m, c, to);
    module_each_graph(m, upgrade_graph, &u);
    for (size_t i = 0; i < m->n_functions; i++) {
        constants_to_nodes(m->functions[i]->body);
        import_newer(m->functions[i], to);
    }
    upgrade_end(&u, m);
    return u.ok;
}
