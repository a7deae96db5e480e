/* Which way of quantization suits a model. Parameters that follow the numbers as they come keep
 * more of what recurrent networks and transformers compute, whose ranges depend on the input; those
 * of convolutional networks hardly do, and static ones cost nothing at run time.
 *
 * The rule counts nodes: `sequence` are RNN, GRU, LSTM, Attention, and products of two computed
 * matrices (attention spelled out); `convolution` are Conv and ConvTranspose. With at least one of
 * the first for every two of the second the model is a recurrent one or a transformer, with the
 * second alone a convolutional one; of others nothing is said. */
#include "compiler/pipeline.h"

typedef struct Census {
    size_t sequence, convolution;
} Census;

static bool multiplies_computed(const Node *n) {
    const QuantRule *r = &n->def->quant;
    size_t w = (size_t)r->mac.weight;
    return r->kind == QUANT_MAC && quant_rule_is_data(r, w) && node_input(n, w) &&
           !value_data(n->in[w]);
}

static void count(Graph *g, void *ctx) {
    Census *c = ctx;
    FOR_NODES(n, g) {
        if (!n->def)
            continue;
        if (n->def->family == FAMILY_CONVOLUTION)
            c->convolution++;
        else if (n->def->family == FAMILY_SEQUENCE || multiplies_computed(n))
            c->sequence++;
    }
}

const char *advice_of(Module *m, bool dynamic) {
    Census c = {0};
    module_each_graph(m, count, &c);
    if (!dynamic && c.sequence && 2 * c.sequence >= c.convolution)
        return "advice: a recurrent model or transformer; -dynamic usually keeps more of its "
               "accuracy "
               "than static parameters";
    if (dynamic && !c.sequence && c.convolution)
        return "advice: a convolutional model; static parameters (-calib=DATA) usually run faster "
               "than "
               "-dynamic and lose no more";
    return NULL;
}
