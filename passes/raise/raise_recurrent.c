/* What yields several results, each of parameters of its own (LSTM, GRU, RNN, Attention with its
 * cache), computes on quantized types where everything does: data and stored weights come from
 * DequantizeLinear, and each result that is read reaches a QuantizeLinear of its own. Where that is
 * not so, or the integer kernels do not have it, it stays as it is. */
#include "passes/raise/raise.h"
#include "ir/ops/op.h"

enum { MOST_RESULTS = 3, MOST_OPERANDS = 8 };

static bool is_weight(const Node *n, size_t i) {
    return i < 32 && (n->def->quant.stores.operands >> i & 1);
}

/* Of each operand what it is to read, false where one is not quantized as it has to be. */
static bool find_sources(const Node *n, Value *to[MOST_OPERANDS]) {
    for (size_t i = 0; i < n->n_in; i++) {
        bool data = quant_rule_is_data(&n->def->quant, i), weight = is_weight(n, i);
        bool bias = i == (size_t)n->def->quant.mac.bias;
        Value *x = data || weight || bias ? raise_source(n->in[i]) : NULL;
        bool fits = x && x->type.quant->kind == QUANT_PARAMS && elem_bits(x->type.elem) <= 16;
        to[i] = x && (data || weight || value_data(x)) ? x : n->in[i];
        if (n->in[i] &&
            ((weight && !fits) || (data && !(fits && quant_is_per_tensor(x->type.quant)))))
            return false;
    }
    return true;
}

static bool find_results(const Raise *r, const Node *n, Node *to[MOST_RESULTS]) {
    bool any = false;
    for (size_t i = 0; i < n->n_out; i++) {
        const Use *uses;
        to[i] = NULL;
        if (!n->out[i] || !uses_of(r->uses, n->out[i], &uses))
            continue;
        to[i] = raise_reached_quantize(r, n->out[i]);
        const Quant *q = to[i] ? to[i]->out[0]->type.quant : NULL;
        if (!q || !quant_is_per_tensor(q) || elem_bits(q->storage) > 16)
            return false;
        any = true;
    }
    return any;
}

void raise_recurrent(Raise *r, Node *n) {
    Value *in[MOST_OPERANDS], *was[MOST_OPERANDS];
    Node *quantize[MOST_RESULTS];
    if (n->n_in > MOST_OPERANDS || n->n_out > MOST_RESULTS || !find_sources(n, in) ||
        !find_results(r, n, quantize))
        return;
    memcpy(was, n->in, n->n_in * sizeof *was);
    memcpy(n->in, in, n->n_in * sizeof *in);
    OpCtx c = op_ctx(n, NULL);
    const char *why = n->def->quant.integer_refusal(&c, in[0]->type.quant);
    if (why) {
        memcpy(n->in, was, n->n_in * sizeof *was);
        pass_remark(r->c, n, "%s", why);
        return;
    }
    for (size_t i = 0; i < n->n_out; i++)
        if (quantize[i])
            raise_result(r, n->out[i], quantize[i], quantize[i]->out[0]->type.quant);
}
