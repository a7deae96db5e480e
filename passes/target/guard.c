/* Keeps the target from fusing where its own fusion is wrong or has no kernel, as its page says. It
 * looks for DequantizeLinear, operator, QuantizeLinear; a Sum of one operand behind the
 * DequantizeLinear changes no number, is not optimised away, and is no part of any pattern. */
#include "passes/target/legal.h"

typedef struct Guard {
    QuantBuild *b;
    const TargetPage *target;
    Uses *uses;
} Guard;

bool is_guard(const Node *n) {
    return node_is(n, "Sum") && n->n_in == 1 && n->n_out == 1 && n->in[0] && n->out[0];
}

static void guard(QuantBuild *b, Node *n, size_t i) {
    Value *x = n->in[i];
    QuantBuild by_guard = *b;
    by_guard.pass = "guard";
    Node *sum = build_node(&by_guard, n, "Sum", STR_NONE, OPERANDS(x));
    n->in[i] = build_before(b, n, sum, base_name(x->name), "_guard", x->type);
}

/* The first operand that a fusion needs. */
static size_t first_dequantized(const Node *n) {
    size_t i = 0;
    while (i < n->n_in && !onnx_dequantize_of(n->in[i]))
        i++;
    return i;
}

static void guard_node(Guard *with, Node *n) {
    const TargetPage *t = with->target;
    FaultSite s = fault_site(n, with->uses);
    bool computes = !is_onnx_quantize(n) && !has_bodies(n);
    for (; computes && s.operand < n->n_in; s.operand++)
        if (target_fault(t, FAULT_GUARD, FAULT_OPERAND, &s))
            guard(with->b, n, s.operand);
    size_t i = first_dequantized(n);
    if (i < n->n_in && computes && target_fault(t, FAULT_GUARD, FAULT_NODE, &s))
        guard(with->b, n, i);
    else if (n->n_in && n->n_out && n->out[0] && target_fault(t, FAULT_GUARD, FAULT_MOVED, &s))
        guard(with->b, n, 0);
}

static void guard_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g) guard_node(ctx, n);
}

void guard_fusions(QuantBuild *b, Module *m, const TargetPage *target) {
    Guard with = {b, target, uses_new(m)};
    if (target->n_faults)
        module_each_graph(m, guard_graph, &with);
}
