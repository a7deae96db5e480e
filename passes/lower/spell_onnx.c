/* com.microsoft's operators that are still there when all else is done are spelled with those of
 * ONNX, and what has no such spelling is refused by name: for targets that have no others. By now
 * everything that is no integer operator computes in float, so a spelling costs no accuracy.
 * What they mean is in lib/. */
#include "ir/onnx_schema.h"
#include "passes/edit.h"
#include "passes/inline.h"
#include "passes/library.h"
#include "passes/split_products.h"

typedef struct Spell {
    Module *m;
    PassContext *c;
    Chooser chooser;
    Map *refused; /* by operator: each is named once */
    bool ok;
} Spell;

/* Operators of ONNX, of a version that has them, and a target's own. Those of com.microsoft are
 * spelled for whoever asks, and those of the library are words of spellings. */
static bool is_allowed(const void *ctx, Str domain, Str op) {
    const Spell *s = ctx;
    if (!domain_is_onnx(domain))
        return !str_is(domain, "com.microsoft") && !str_is(domain, "qxc") &&
               target_has_domain(s->c->target, domain);
    const OnnxSchema *schema = onnx_schema_find(domain, op, (int)module_opset(s->m, domain));
    return schema && !(schema->flags & SCHEMA_ORT);
}

/* Of a row of ours: ranks and operands have been held against the operator's laws. */
static const Function *lacking(void *ctx, const Node *n, const CallPath *path) {
    const Spell *s = ctx;
    return is_allowed(s, n->domain, n->op) ? NULL : library_choose(&s->chooser, n, path);
}

static void refuse(Spell *s, const Node *n) {
    Buf key = buf_new(n->graph->module->arena);
    const char *why = holds_products(n) ? split_refusal(n) : NULL;
    Str name = function_key(&key, n->domain, n->op, STR_NONE);
    s->ok = false;
    if (!map_set(s->refused, name, s))
        return;
    diag_error(s->c->d, n->loc,
               "operator %s%s%s is none of ONNX's, and -target=%s has no others%s%s; "
               "-target=ort-cpu takes it",
               diag_name(s->c->d, n->domain), n->domain.n ? "::" : "", diag_name(s->c->d, n->op),
               s->c->target->name, why ? ": " : "", why ? why : "");
}

static void refuse_graph(Graph *g, void *ctx) {
    Spell *s = ctx;
    FOR_NODES(n, g)
    if (!is_allowed(s, n->domain, n->op))
        refuse(s, n);
}

bool pass_spell_onnx(Module *m, PassContext *c) {
    int64_t opset = module_opset(m, STR(""));
    Spell s = {m, c, {c->library, opset, is_allowed, &s}, map_new(m->arena), true};
    Inlining what = {"spell-onnx", lacking, NULL, &s, opset, false};
    uint32_t first = m->n_nodes;
    if (!pass_split_products(m, c) || !inline_calls(m, c, &what))
        return false;
    edit_drop_dead(m, first);
    module_each_graph(m, refuse_graph, &s);
    if (s.ok)
        edit_forget_import(m, STR("com.microsoft"));
    return s.ok;
}

/* ---- what the opset lacks, or a target of this opset ---- */

static bool is_newer(const TargetPage *t, const Node *n) {
    return domain_is_onnx(n->domain) && target_spells_out(t, n);
}

typedef struct Newer {
    const TargetPage *target;
    bool found;
} Newer;

static void look_for_newer(Graph *g, void *ctx) {
    Newer *s = ctx;
    FOR_NODES(n, g)
    s->found = s->found || is_newer(s->target, n);
}

bool module_has_newer(Module *m, const TargetPage *t) {
    Newer s = {t, false};
    module_each_graph(m, look_for_newer, &s);
    return s.found;
}

static bool is_had(const void *ctx, Str domain, Str op) {
    const Spell *s = ctx;
    if (domain_is_onnx(domain))
        return onnx_schema_find(domain, op, (int)module_opset(s->m, domain)) &&
               !target_lacks(s->c->target, op);
    return str_is(domain, "com.microsoft") && target_has_microsoft(s->c->target) &&
           op_find(domain, op);
}

static const Function *newer(void *ctx, const Node *n, const CallPath *path) {
    const Spell *s = ctx;
    bool takes = is_newer(s->c->target, n) || (path && !is_had(s, n->domain, n->op));
    return takes ? library_choose(&s->chooser, n, path) : NULL;
}

static void look_for_microsoft(Graph *g, void *ctx) {
    bool *found = ctx;
    FOR_NODES(n, g)
    *found = *found || str_is(n->domain, "com.microsoft");
}

/* What an ONNX file would not be read back with. A target's page refuses for itself what it lacks.
 */
static void refuse_newer(Graph *g, void *ctx) {
    Spell *s = ctx;
    FOR_NODES(n, g)
    if (is_newer(NULL, n))
        s->ok = diag_error(s->c->d, n->loc,
                           "%s does not exist at opset %lld, and no function spells it out as it "
                           "stands here: -explain-match=%s says what is in the way",
                           diag_name(s->c->d, n->op), (long long)module_opset(s->m, STR("")),
                           diag_name(s->c->d, n->op));
}

bool pass_spell_newer(Module *m, PassContext *c) {
    int64_t opset = module_opset(m, STR(""));
    Spell s = {m, c, {c->library, opset, is_had, &s}, map_new(m->arena), true};
    Inlining what = {"spell-newer", newer, NULL, &s, opset, false};
    uint32_t first = m->n_nodes;
    bool microsoft = false;
    if (!inline_calls(m, c, &what))
        return false;
    edit_drop_dead(m, first);
    module_each_graph(m, look_for_microsoft, &microsoft);
    if (microsoft)
        module_import_microsoft(m);
    module_each_graph(m, refuse_newer, &s);
    return s.ok;
}
