/* Where a model holds Q and DQ and no operator computes on quantized types for all that, each one
 * next to them says what stopped it first. */
#include "passes/edit.h"
#include "passes/raise/raise.h"

typedef struct Reasons {
    Raise *r;
    bool integer;   /* some operator computes on integers */
    bool quantizes; /* some value is quantized; else weights alone are meant to be integers */
} Reasons;

static bool multiplies(const Node *n) {
    return n->def && n->def->quant.kind == QUANT_MAC && n->n_in > (size_t)n->def->quant.mac.weight;
}

static bool computes(const Node *n) {
    QuantClass k = n->def ? n->def->quant.kind : QUANT_NEVER;
    return multiplies(n) || k == QUANT_COMPUTE || k == QUANT_JOIN;
}

static bool is_operand(const Node *n, size_t i) {
    return n->in[i] && (quant_rule_is_data(&n->def->quant, i) ||
                        (multiplies(n) && i == (size_t)n->def->quant.mac.weight));
}

static void look(Graph *g, void *ctx) {
    Reasons *s = ctx;
    FOR_NODES(n, g) {
        s->quantizes |= is_own_quantize(n) || is_onnx_quantize(n);
        for (size_t i = 0; computes(n) && i < n->n_in; i++)
            s->integer |= n->in[i] && type_is_quantized(n->in[i]->type);
    }
}

static bool is_dequantized(const Value *v) {
    return v->def && (is_own_dequantize(v->def) || is_onnx_dequantize(v->def));
}

/* Why operand `i` is none of a quantized type, NULL where it could be one. */
static const char *why_operand(const Node *n, size_t i) {
    const Value *v = n->in[i];
    const char *name = node_strf(n, STR_FMT, STR_ARG(v->name));
    if (v->def && is_own_dequantize(v->def))
        return NULL;
    if (v->def && is_onnx_dequantize(v->def))
        return node_strf(n, "the DequantizeLinear of its operand '%s' stays as it is", name);
    if (multiplies(n) && i == (size_t)n->def->quant.mac.weight)
        return node_strf(n, "its weight '%s' is not quantized", name);
    return node_strf(n, "its operand '%s' is not quantized", name);
}

static bool is_quantized_behind(const Raise *r, const Node *n) {
    return n->n_out && n->out[0] && raise_reached_quantize(r, n->out[0]);
}

static void tell(Graph *g, void *ctx) {
    Reasons *s = ctx;
    FOR_NODES(n, g) {
        bool beside = computes(n) && is_quantized_behind(s->r, n);
        const char *why = NULL;
        for (size_t i = 0; computes(n) && i < n->n_in; i++) {
            if (!is_operand(n, i))
                continue;
            beside |= is_dequantized(n->in[i]);
            why = why ? why : why_operand(n, i);
        }
        if (beside && !why && !multiplies(n) && !is_quantized_behind(s->r, n))
            why = "its result is not quantized";
        if (beside && why)
            pass_remark(s->r->c, n, "%s", why);
    }
}

void raise_reasons(Raise *r) {
    Reasons s = {.r = r};
    raise_each_graph(r->m, look, &s);
    if (!s.quantizes || s.integer)
        return;
    r->uses = uses_new(r->m);
    raise_each_graph(r->m, tell, &s);
}
