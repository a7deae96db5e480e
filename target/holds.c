#include "target/target.h"

/* Whether no block reaches beyond the end of its axis. */
static bool blocks_fit(const Quant *q, Type t) {
    for (int i = 0; i < q->n_axes; i++)
        if (q->block[i] > 1 && t.dims[q->axis[i]].value % q->block[i])
            return false;
    return true;
}

bool target_stores(const TargetPage *t, ElemType e) {
    for (size_t i = 0; i < t->n_types; i++)
        if (t->types[i] == e)
            return true;
    return t->n_types == 0;
}

const char *target_refuses_quant(const TargetPage *t, const Value *v) {
    const Quant *q = v->type.quant;
    bool settled =
        q->kind == QUANT_PARAMS || (q->kind == QUANT_DYNAMIC && t->forms[TARGET_FORM_DYNAMIC]);
    if (t->no_real && (!settled || q->expressed != ELEM_FLOAT))
        return t->no_real;
    if (!target_stores(t, q->storage))
        return t->no_type;
    if (t->zeros == TARGET_ZEROS_NONE && !quant_zp_all_zero(q))
        return t->no_zero;
    bool weight = v->kind == VALUE_CONST && t->scales == TARGET_SCALES_CHANNEL;
    if (t->scales != TARGET_SCALES_ANY && !weight && !quant_is_per_tensor(q))
        return t->no_scales;
    bool blocks = q->n_axes > 1 || quant_is_blocked(q);
    return blocks && !(t->blocks_divide && blocks_fit(q, v->type)) ? t->no_blocks : NULL;
}

typedef struct Check {
    const TargetPage *t;
    Diags *d;
    Map *told; /* operators */
    bool ok;
} Check;

static void check_value(Value *v, void *ctx) {
    Check *c = ctx;
    const Quant *q = v->type.kind == TYPE_TENSOR ? v->type.quant : NULL;
    const char *why = q ? target_refuses_quant(c->t, v) : NULL;
    if (why)
        c->ok = diag_error(
            c->d, v->loc, "'%s' is quantized to %s%s%s: %s", diag_name(c->d, v->name),
            elem_name(q->storage), q->n_axes ? ", scales along an axis" : "",
            c->t->zeros != TARGET_ZEROS_NONE || quant_zp_all_zero(q) ? "" : ", zero point not 0",
            why);
}

static bool has_operator(const TargetPage *t, Str op) {
    return !t->operators.n || target_names(&t->operators, op);
}

bool target_lacks(const TargetPage *t, Str op) {
    return target_names(&t->lacks, op);
}

bool target_spells_out(const TargetPage *t, const Node *n) {
    int64_t opset = module_opset(n->graph->module, STR(""));
    if (!domain_is_onnx(n->domain))
        return t && str_is(n->domain, "com.microsoft") && !target_has_microsoft(t);
    if (!n->def || !n->def->composite || opset <= 0)
        return false;
    return (t && (target_lacks(t, n->op) || !has_operator(t, n->op))) ||
           !onnx_schema_find(n->domain, n->op, (int)opset);
}

/* What is to stay float is decided before; a model that came quantized has it all the same. */
static void warn_of_quantized(const Check *c, const Node *n, const FaultSite *s) {
    const TargetFault *f = target_fault(c->t, FAULT_FLOAT, FAULT_NODE, s);
    if (f && n->n_out && n->out[0] && op_quant(n->out[0]))
        diag_warning(c->d, n->loc, "%s came quantized: %s", node_text(n), fault_words(f, c->t, n));
}

/* Whether there was none. */
static bool check_fault(Check *c, const Node *n, const FaultSite *s) {
    const TargetFault *f = target_fault(c->t, FAULT_REFUSE, FAULT_NODE, s);
    if (f)
        c->ok = diag_error(c->d, n->loc, "%s: %s", node_text(n), fault_words(f, c->t, n));
    return !f;
}

/* What is spelled out is no part of the result: that is asked for what it is spelled with. */
static void check_decided(Graph *g, void *ctx) {
    Check *c = ctx;
    FOR_NODES(n, g) {
        FaultSite site = fault_site(n, NULL);
        if (!target_spells_out(c->t, n))
            check_fault(c, n, &site);
        warn_of_quantized(c, n, &site);
    }
}

bool target_check_quantized(const TargetPage *t, Module *m, Diags *d) {
    Check check = {t, d, NULL, true};
    module_each_value(m, check_value, &check);
    if (t->n_faults)
        module_each_graph(m, check_decided, &check);
    return check.ok;
}

/* ---- what is written ---- */

static void refuse_operator(Check *c, const Node *n) {
    const char *why = c->t->no_operator;
    if ((domain_is_onnx(n->domain) && has_operator(c->t, n->op)) ||
        !map_set(c->told, n->op, (void *)n))
        return;
    c->ok = diag_error(c->d, n->loc, "%s cannot run operator %s%s%s%s%s", c->t->runtime,
                       diag_name(c->d, n->domain), n->domain.n ? "::" : "", diag_name(c->d, n->op),
                       why ? ": " : "", why ? why : "");
}

static void check_written(Graph *g, void *ctx) {
    Check *c = ctx;
    FOR_NODES(n, g) {
        FaultSite site = fault_site(n, NULL);
        if (check_fault(c, n, &site) && c->t->operators.n)
            refuse_operator(c, n);
    }
}

static void check_opset(const TargetPage *t, const Module *m, Diags *d) {
    int64_t opset = module_opset(m, STR(""));
    if (t->last_opset && (opset < t->first_opset || opset > t->last_opset))
        diag_warning(
            d, LOC_NONE, "the result is at opset %lld; %s is known to load those from %lld to %lld",
            (long long)opset, t->runtime, (long long)t->first_opset, (long long)t->last_opset);
}

bool target_check_written(const TargetPage *t, Module *m, Diags *d) {
    Check check = {t, d, map_new(m->scratch), true};
    check_opset(t, m, d);
    if (t->operators.n || t->n_faults)
        module_each_graph(m, check_written, &check);
    return check.ok;
}
