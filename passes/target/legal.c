#include "passes/target/legal.h"
#include "passes/emulate.h"

#include "ir/ops/qop.h"
#include "target/ort_kernels.h"
#include "passes/params.h"

/* ---- opset ---- */

/* `b` says what the result has to do with; what it is too old for is emulated. Constants are only
 * dequantized: an int32 bias is as old as DequantizeLinear. */
static int64_t opset_of(const QuantBuild *b, const Quant *q, bool constant) {
    int bits = elem_bits(onnx_storage(b, q->storage));
    if (q->kind == QUANT_DYNAMIC)
        return 11; /* DynamicQuantizeLinear */
    if ((!constant && emulates_quantize(b, q)) || emulates_dequantize(b, q))
        return EMULATE_OPSET;
    bool blocked = quant_is_blocked(q);
    int64_t need = 10;
    if (q->n_axes)
        need = 13;
    ElemType scale = onnx_scale_type(q);
    if (scale != ELEM_FLOAT || !quant_is_integers(q))
        need = 19;
    if (bits == 4 || bits == 16 || blocked)
        need = 21;
    if (scale != q->expressed)
        need = 23;
    return bits == 2 ? 25 : need;
}

enum { QUANT_FIRST_OPSET = 10 };

typedef struct Need {
    QuantBuild b; /* only its opset matters */
    int64_t opset;
    const Value *of; /* the first that needs it; NULL where all do with what there is */
} Need;

static void need_value(Value *v, void *ctx) {
    Need *need = ctx;
    if (v->type.kind != TYPE_TENSOR || !v->type.quant)
        return;
    int64_t opset = opset_of(&need->b, v->type.quant, v->kind == VALUE_CONST);
    module_release_quant(v->graph->module, v->type.quant);
    if (opset > need->opset) {
        need->opset = opset;
        need->of = v;
    }
}

static Need min_opset(const Module *m, int64_t at_most) {
    Need need = {.b = {.opset = at_most}, .opset = QUANT_FIRST_OPSET};
    module_each_value((Module *)m, need_value, &need);
    return need;
}

int64_t quant_min_opset(const Module *m) {
    return min_opset(m, 0).opset;
}

static bool refuse_opset(const Need *need, int64_t asked, Diags *d) {
    const Value *v = need->of;
    bool channels = v && v->type.quant->n_axes && need->opset == 13;
    if (asked < QUANT_FIRST_OPSET)
        return diag_error(d, LOC_NONE,
                          "the quantized types of this model need opset %lld, not %lld "
                          "(-target-opset): QuantizeLinear came with opset %d%s",
                          (long long)need->opset, (long long)asked, QUANT_FIRST_OPSET,
                          channels ? ", which is enough with -per-tensor" : "");
    const char *what = !v         ? ""
                       : channels ? " has a scale for each channel; -per-tensor has one for all"
                                  : " is ";
    return diag_error(d, LOC_NONE,
                      "the quantized types of this model need opset %lld, not %lld "
                      "(-target-opset)%s%s%s%s%s",
                      (long long)need->opset, (long long)asked, v ? ": '" : "",
                      v ? diag_name(d, v->name) : "", v ? "'" : "", what,
                      channels || !v ? "" : elem_name(v->type.quant->storage));
}

typedef struct Check {
    Diags *d;
    QuantBuild b; /* only its opset matters */
    const Uses *uses;
    bool ok;
} Check;

static void check_value(Value *v, void *ctx) {
    Check *c = ctx;
    if (v->type.kind != TYPE_TENSOR || !v->type.quant)
        return;
    const Quant *q = v->type.quant;
    if (q->kind == QUANT_UNKNOWN)
        c->ok = diag_error(c->d, v->loc, "the quantization of '%s' is still unknown",
                           diag_name(c->d, v->name));
    else if (q->kind == QUANT_DYNAMIC) {
        const char *why = dynamic_refusal(c->uses, v);
        if (why)
            c->ok = diag_error(c->d, v->loc, "'%s' has parameters computed at run time, but %s",
                               diag_name(c->d, v->name), why);
    } else if (q->expressed != ELEM_FLOAT && q->expressed != ELEM_DOUBLE &&
               (emulates_quantize(&c->b, q) || emulates_dequantize(&c->b, q)))
        c->ok = diag_error(
            c->d, v->loc,
            "'%s' is %s quantized to %s; ONNX has no such conversion, and only float and double "
            "are emulated",
            diag_name(c->d, v->name), elem_name(q->expressed), elem_name(q->storage));
}

static bool raise_opset(Module *m, PassContext *c, int64_t opset) {
    int64_t asked = c->target_opset;
    c->target_opset = opset;
    bool ok = pass_upgrade(m, c) && module_resolve(m, c->d);
    c->target_opset = asked;
    return ok;
}

bool legal_prepare(Module *m, PassContext *c) {
    Check check = {c->d, {.opset = c->target_opset}, uses_new(m), true};
    module_each_value(m, check_value, &check);
    if (!check.ok)
        return false;
    Need least = min_opset(m, c->target_opset);
    int64_t need = least.opset, have = module_opset(m, STR(""));
    if (c->target_opset && c->target_opset < need)
        return refuse_opset(&least, c->target_opset, c->d);
    if (c->target_opset > need)
        need = c->target_opset;
    if (have < need && !raise_opset(m, c, need))
        return false;
    warn_of_saturation(m, c);
    return target_check_quantized(c->target, m, c->d) &&
           (!c->target->kernels || kernels_check(m, c));
}

/* ---- helpers ---- */

bool quant_narrowed(const Quant *q) {
    return quant_is_integers(q) && q->has_range &&
           (q->lo > elem_min(q->storage) || q->hi < elem_max(q->storage));
}

bool same_quant(const Node *n) {
    const Quant *y = op_quant(n->out[0]);
    if (!y)
        return false;
    for (size_t i = 0; i < n->n_in; i++) {
        const Quant *x = op_quant(n->in[i]);
        if (n->in[i] && quant_rule_is_data(&n->def->quant, i) && (!x || !quant_equal(x, y)))
            return false;
    }
    return true;
}

/* ---- QOperators ---- */

static const char *operands_refuse(const Node *n) {
    const QuantRule *r = &n->def->quant;
    for (size_t i = 0; i < n->n_in; i++) {
        bool weight = r->kind == QUANT_MAC && r->mac.weight && i == (size_t)r->mac.weight;
        const Quant *q = op_quant(n->in[i]);
        if (!n->in[i] || (!weight && !quant_rule_is_data(r, i)))
            continue;
        if (!q)
            return node_strf(n, "operand %zu is float", i);
        if (q->expressed != ELEM_FLOAT || q->scale_type != ELEM_FLOAT)
            return node_strf(n, "%s takes float scales only", n->def->qop.op);
        if (quant_is_per_tensor(q))
            continue;
        OpCtx c = op_ctx(n, NULL);
        int axis = weight ? quant_weight_axis(r, &c) : -1;
        if (q->n_axes > 1 || q->block[0] > 1)
            return node_strf(n, "%s takes no weights quantized in blocks", n->def->qop.op);
        if (q->axis[0] != axis)
            return node_strf(n, "%s takes no operand quantized along axis %d", n->def->qop.op,
                             q->axis[0]);
    }
    const Value *bias = r->mac.bias && n->n_in > (size_t)r->mac.bias ? n->in[r->mac.bias] : NULL;
    if (bias && (!op_quant(bias) || op_quant(bias)->storage != ELEM_INT32))
        return node_strf(n, "its bias is not int32 on the accumulator's grid");
    return NULL;
}

/* The element types of all operands against the QOperator's schema and its type variables, and
 * what the target has for them. */
static const char *schema_refuses(const Node *n, const OnnxSchema *s, const QopLayout *l,
                                  const TargetPage *target) {
    const QuantRule *r = &n->def->quant;
    const char *vars[8];
    ElemType bound[8];
    size_t n_vars = 0;
    for (size_t i = 0; i <= n->n_in; i++) {
        bool out = i == n->n_in;
        const Value *v = out ? n->out[0] : n->in[i];
        int at = out ? 0 : l->data[i];
        if (!v || at < 0)
            continue;
        if (!onnx_schema_allows(s, out, at, (int)v->type.elem))
            return node_strf(n, "%s takes no %s", s->name, elem_name(v->type.elem));
        const char *var = onnx_schema_param(s, out, at)->type_var;
        size_t k = 0;
        while (k < n_vars && strcmp(vars[k], var) != 0)
            k++;
        if (k < n_vars && bound[k] != v->type.elem)
            return node_strf(n, "%s takes no mixture of %s and %s", s->name, elem_name(bound[k]),
                             elem_name(v->type.elem));
        bool is_key = out || (op_quant(v) && (!r->mac.bias || i != (size_t)r->mac.bias));
        if (*var && is_key && k == n_vars && n_vars < 8) {
            vars[n_vars] = var;
            bound[n_vars++] = v->type.elem;
        }
    }
    return target->kernels ? ort_refuses(n, s->domain, s->name, bound, n_vars) : NULL;
}

static const char *result_refuses(const Node *n, const OnnxSchema *s, const QopLayout *l) {
    const Quant *y = op_quant(n->out[0]);
    if (!y)
        return onnx_schema_param(s, false, l->y_scale)->option == SCHEMA_OPTIONAL
                   ? NULL
                   : node_strf(n, "its result is float");
    if (!quant_is_per_tensor(y))
        return node_strf(n, "its result is quantized per axis");
    if (y->expressed != ELEM_FLOAT || y->scale_type != ELEM_FLOAT)
        return node_strf(n, "%s takes float scales only", s->name);
    bool clips = module_opset(n->graph->module, STR("")) >= 12 && elem_bits(y->storage) == 8;
    return quant_narrowed(y) && !clips
               ? node_strf(n, "%s saturates to the whole range of %s, not to %lld..%lld", s->name,
                           elem_name(y->storage), (long long)y->lo, (long long)y->hi)
               : NULL;
}

const char *qop_refusal(const Node *n, const TargetPage *target, Diags *d) {
    const QopForm *f = &n->def->qop;
    if (!f->op)
        return node_strf(n, "%s has no QOperator form", n->def->name);
    if (!target_has_domain(target, str_from(f->domain)))
        return node_strf(n, "%s is not an operator of ONNX itself", f->op);
    int64_t opset = module_opset(n->graph->module, STR(""));
    if (opset < f->since)
        return node_strf(n, "%s needs opset %lld", f->op, (long long)f->since);
    const OnnxSchema *s = onnx_schema(f->domain, f->op, *f->domain ? 1 : (int)opset);
    QopLayout l;
    if (!s || !qop_layout(f, n->n_in, &l, n->graph->module->arena))
        return node_strf(n, "%s cannot hold %zu operands", f->op, n->n_in);
    const char *why = result_refuses(n, s, &l);
    why = why ? why : operands_refuse(n);
    why = why ? why : schema_refuses(n, s, &l, target);
    OpCtx c = op_ctx(n, d);
    if (!why && f->applies && !f->applies(&c, &why) && !why)
        why = node_strf(n, "%s does not apply", f->op);
    FaultSite site = fault_site(n, NULL);
    const TargetFault *fault = why ? NULL : target_fault(target, FAULT_NO_QOP, FAULT_NODE, &site);
    return fault ? fault_words(fault, target, n) : why;
}

/* ---- operators on the integers themselves ---- */

static const char *type_refusal(const Node *n, const char *op, bool out, size_t i, ElemType e) {
    Str name = str_from(op);
    const OnnxSchema *s = onnx_schema_find(n->domain, name, (int)node_opset(n));
    if (!s || onnx_schema_allows(s, out, (int)i, (int)e))
        return NULL;
    for (int opset = (int)node_opset(n) + 1; opset <= onnx_schema_newest(n->domain); opset++) {
        const OnnxSchema *later = onnx_schema_find(n->domain, name, opset);
        if (later && onnx_schema_allows(later, out, (int)i, (int)e))
            return node_strf(n, "%s takes no %s before opset %d", op, elem_name(e), opset);
    }
    return node_strf(n, "%s takes no %s", op, elem_name(e));
}

const char *other_refusal(const Node *n, const char *op, ElemType e, const TargetPage *target) {
    const char *why = type_refusal(n, op, false, 0, e);
    return why || !target->kernels ? why : ort_refuses(n, "", op, &e, 1);
}

const char *integer_refusal(const Node *n, const TargetPage *target) {
    const char *why = NULL;
    FaultSite s = fault_site(n, NULL);
    const TargetFault *fault = target_fault(target, FAULT_NO_INTEGERS, FAULT_NODE, &s);
    if (fault)
        return fault_words(fault, target, n);
    for (size_t i = 0; i < n->n_in && !why; i++)
        if (op_quant(n->in[i])) {
            ElemType e = n->in[i]->type.elem;
            why = type_refusal(n, n->def->name, false, i, e);
            if (!why && target->kernels)
                why = ort_refuses(n, n->def->domain, n->def->name, &e, 1);
        }
    for (size_t i = 0; i < n->n_out && !why; i++)
        if (n->out[i] && op_quant(n->out[i]))
            why = type_refusal(n, n->def->name, true, i, n->out[i]->type.elem);
        else if (n->out[i] && elem_is_float(n->out[i]->type.elem))
            why = node_strf(n, "its result is float");
    return why;
}

/* ---- Relu and Clip ---- */

bool clamp_bounds(const Node *n, float *lo, float *hi) {
    OpCtx c = op_ctx(n, NULL);
    return n->def && n->def->quant.clamp && n->def->quant.clamp(&c, lo, hi);
}

bool clamp_is_noop(const Node *n, const Quant *q) {
    float lo, hi;
    if (!quant_is_per_tensor(q) || !clamp_bounds(n, &lo, &hi))
        return false;
    return quant_of_real(q, 0, lo) == quant_lo(q) && quant_of_real(q, 0, hi) == quant_hi(q);
}
