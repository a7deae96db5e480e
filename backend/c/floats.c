/* What of a program computes in floating point, and -integer-only, which refuses it. */
#include "backend/c/writer.h"
#include "ir/ops/op.h"

static bool is_float_call(const Call *call) {
    return call->kind == CALL_KERNEL && call->kernel->is_float;
}

/* What a QuantizeLinear makes or a DequantizeLinear reads; NULL of other nodes. */
static const Value *converted(const Node *n) {
    switch (node_conversion(n)) {
    case CONVERT_QUANTIZE: return n->out[0];
    case CONVERT_DEQUANTIZE: return n->in[0];
    default: return NULL;
    }
}

/* Integers from or to float, which is what it is for. */
static bool only_converts(const Node *n) {
    const Value *v = converted(n);
    return v && !elem_is_float(v->type.elem);
}

CFloats c_floats(const Program *p) {
    CFloats f = {.is = NEW_ARRAY(p->module->arena, bool, p->module->n_nodes)};
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        const Node *n = call->node;
        if (!is_float_call(call))
            continue;
        if (!n || only_converts(n)) {
            f.converts = true;
        } else if (!f.is[n->id]) {
            f.is[n->id] = true;
            f.n++;
        }
    }
    return f;
}

/* ---- why ---- */

static bool is_float(const Value *v) {
    return v && !op_quant(v) && v->type.kind == TYPE_TENSOR && elem_is_float(v->type.elem);
}

static const char *about(const Program *p, const char *what, const Value *v) {
    Arena *a = p->module->arena;
    Str name =
        arena_strf(a, "%s '%s' is float in the model", what, diag_name(p->module->diags, v->name));
    return name.s;
}

/* Shapes, scales to resize by and the like stay what they are. */
static bool may_be_integers(const Node *n, size_t i) {
    const QuantRule *r = &n->def->quant;
    return quant_rule_is_data(r, i) ||
           (r->kind == QUANT_MAC && (i == (size_t)r->mac.weight || i == (size_t)r->mac.bias));
}

/* An operand whose scale is computed at run time, which takes floating point; NULL: none. */
static const Value *dynamic_operand(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && op_quant(n->in[i]) && op_quant(n->in[i])->kind == QUANT_DYNAMIC)
            return n->in[i];
    return NULL;
}

/* A product of integers whose sums go on as floats, as its result is not quantized. */
static bool lacks_result(const Node *n) {
    const MacRule *mac = &n->def->quant.mac;
    const Value *w = node_input(n, (size_t)mac->weight);
    return n->def->quant.kind == QUANT_MAC && w && op_quant(w) && op_quant(n->in[0]) &&
           n->n_out == 1 && is_float(n->out[0]);
}

const char *c_why_float(const Program *p, const Node *n) {
    if (p->why_double[n->id])
        return arena_strf(p->module->arena, "computed in double: %s", p->why_double[n->id]).s;
    if (converted(n))
        return node_strf(n, "numbers of %s are computed with as floats",
                         elem_name(converted(n)->type.elem));
    if (!n->def || n->def->quant.kind == QUANT_NEVER)
        return "this operator has no integer form";
    if (n->def->quant.kind == QUANT_MAC &&
        is_float(node_input(n, (size_t)n->def->quant.mac.weight)))
        return about(p, "its weight", n->in[n->def->quant.mac.weight]);
    if (dynamic_operand(n))
        return node_strf(n, "the scale of its operand '%s' is computed at run time",
                         diag_name(p->module->diags, dynamic_operand(n)->name));
    if (lacks_result(n))
        return arena_strf(p->module->arena,
                          "its result '%s' is not quantized; QuantizeLinear and DequantizeLinear "
                          "behind it, at a scale for its numbers, would make it integer",
                          diag_name(p->module->diags, n->out[0]->name))
            .s;
    for (size_t i = 0; i < n->n_in; i++)
        if (is_float(n->in[i]) && may_be_integers(n, i) &&
            (!n->in[i]->def || !only_converts(n->in[i]->def)))
            return about(p, "its operand", n->in[i]);
    for (size_t i = 0; i < n->n_out; i++)
        if (is_float(n->out[i]))
            return about(p, "its result", n->out[i]);
    return "no integer kernel takes its types";
}

/* ---- -integer-only ---- */

typedef struct Refusal {
    const CWriteOptions *options;
    const Program *p;
    CFloats floats;
    Diags *d;
    size_t said;
} Refusal;

static void blame_reasons(Graph *g, void *ctx) {
    Refusal *r = ctx;
    FOR_NODES(n, g) {
        const char *why =
            r->options->why_float ? r->options->why_float(n, r->options->why_ctx) : NULL;
        const char *in_double = r->p->why_double[n->id] ? c_why_float(r->p, n) : NULL;
        if (!why && !(in_double && r->floats.is[n->id]))
            continue;
        diag_error(r->d, n->loc, "-integer-only: %s %s: %s", node_text(n),
                   why ? "stays float" : "computes in floating point", why ? why : in_double);
        r->said++;
    }
}

static void blame_nodes(Graph *g, void *ctx) {
    Refusal *r = ctx;
    FOR_NODES(n, g) {
        if (r->floats.is[n->id]) {
            diag_error(r->d, n->loc, "-integer-only: %s computes in floating point: %s",
                       node_text(n), c_why_float(r->p, n));
            r->said++;
        }
    }
}

/* Whether something reads one of them. */
static bool blame_inputs(const Program *p, Diags *d) {
    const Uses *uses = uses_new(p->module);
    const Use *use;
    bool any = false;
    for (size_t i = 0; i < p->n_inputs; i++) {
        const Value *v = p->buffers[p->inputs[i]].value;
        if (!elem_is_float(p->buffers[p->inputs[i]].elem))
            continue;
        bool is_read = uses_of(uses, v, &use) > 0;
        any = any || is_read;
        diag_error(d, v->loc, "-integer-only: graph input %s is float%s", diag_name(d, v->name),
                   is_read ? ""
                           : ", and nothing reads it: leave it out of the graph's line in a .qir, "
                             "or write `~` and a quantization behind its type");
    }
    return any;
}

/* A conversion has a float on one side. */
static const char *why_converted(const Program *p, const Node *n) {
    bool to_float = node_conversion(n) == CONVERT_DEQUANTIZE;
    const Value *v = to_float ? n->out[0] : n->in[0];
    return arena_strf(p->module->arena, "what it %s, '%s', is float", to_float ? "gives" : "rounds",
                      diag_name(p->module->diags, v->name))
        .s;
}

/* Whether there is more to blame than inputs that nothing reads. */
static bool blame_conversions(const Program *p, Diags *d) {
    const Graph *g = p->module->graph;
    const Node *last = NULL;
    bool any = blame_inputs(p, d);
    for (size_t i = 0; i < p->n_outputs; i++)
        if (elem_is_float(p->buffers[p->outputs[i]].elem))
            any = !diag_error(d, g->out[i]->loc, "-integer-only: graph output %s is float",
                              diag_name(d, g->out[i]->name));
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        if (!is_float_call(call) || (c && call->node == last))
            continue;
        last = call->node;
        any = true;
        if (last)
            diag_error(d, last->loc, "-integer-only: %s computes in floating point: %s",
                       node_text(last), why_converted(p, last));
        else
            diag_error(d, LOC_NONE, "-integer-only: a graph input is rounded in floating point");
    }
    return any;
}

/* The nodes that were left float and why; those that merely compute on their results, convert them
 * or hand them out are named only where no reason is known. */
bool c_refuse_floats(const CWriter *w) {
    const Program *p = w->program;
    Refusal r = {w->options, p, c_floats(p), w->diags, 0};
    bool any = r.floats.n || r.floats.converts;
    for (size_t i = 0; i < p->n_inputs; i++)
        any = any || elem_is_float(p->buffers[p->inputs[i]].elem);
    for (size_t i = 0; i < p->n_outputs; i++)
        any = any || elem_is_float(p->buffers[p->outputs[i]].elem);
    if (!any)
        return true;
    module_each_graph(p->module, blame_reasons, &r);
    if (!r.said)
        module_each_graph(p->module, blame_nodes, &r);
    bool more = r.said || blame_conversions(p, w->diags);
    if (more && w->options->way_on)
        diag_note(w->diags, LOC_NONE, "%s", w->options->way_on);
    if (r.said)
        diag_note(w->diags, LOC_NONE,
                  "without -integer-only the C computes these in float and all else on integers");
    return false;
}
