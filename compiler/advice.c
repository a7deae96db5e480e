/* Which way of quantization suits a model. Parameters that follow the numbers as they come keep
 * more of what recurrent networks and transformers compute, whose ranges depend on the input. With
 * convolutions static ones are usually faster; which of both loses more differs from model to
 * model, so nothing is said of that.
 *
 * The rule counts nodes: `sequence` are RNN, GRU, LSTM, Attention, and products of two computed
 * matrices (attention spelled out); `convolution` are Conv and ConvTranspose. With at least one of
 * the first for every two of the second the model is a recurrent one or a transformer, with the
 * second alone a convolutional one; of others nothing is said. A runtime that is slow with
 * ConvInteger is told of wherever a result has one. */
#include "compiler/pipeline.h"

typedef struct Census {
    size_t sequence, convolution;
    size_t integer;  /* convolutions that will be ConvInteger */
    bool signed_too; /* with weights of int8 */
} Census;

static bool multiplies_computed(const Node *n) {
    const QuantRule *r = &n->def->quant;
    size_t w = (size_t)r->mac.weight;
    return r->kind == QUANT_MAC && quant_rule_is_data(r, w) && node_input(n, w) &&
           !value_data(n->in[w]);
}

static void count_convolution(Census *c, const Node *n) {
    const Value *w = node_input(n, (size_t)n->def->quant.mac.weight);
    bool integer = w && type_is_quantized(w->type);
    c->convolution++;
    c->integer += integer;
    c->signed_too = c->signed_too || (integer && elem_is_signed(w->type.quant->storage));
}

static void count(Graph *g, void *ctx) {
    Census *c = ctx;
    FOR_NODES(n, g) {
        if (!n->def)
            continue;
        if (n->def->family == FAMILY_CONVOLUTION)
            count_convolution(c, n);
        else if (n->def->family == FAMILY_SEQUENCE || multiplies_computed(n))
            c->sequence++;
    }
}

static const char *about_conv_integer(const Job *j, Module *m, const Census *c) {
    return arena_strf(m->arena,
                      "advice: %s usually takes %s for ConvInteger (%zu here)%s than for Conv on "
                      "floats; %s-keep=Conv leaves %s float, and static parameters (-calib=DATA) "
                      "are usually faster",
                      j->ctx.target->runtime, c->signed_too ? "much longer" : "longer", c->integer,
                      c->signed_too ? " with int8 weights" : "",
                      c->signed_too ? "-weights=uint8 takes little longer, " : "",
                      c->integer > 1 ? "them" : "it")
        .s;
}

static const char *about_dynamic(const Job *j, Module *m, const Census *c) {
    if (j->ctx.target->slow_conv && j->form >= FORM_QDQ)
        return c->integer ? about_conv_integer(j, m, c) : NULL;
    if (!c->sequence && c->convolution)
        return "advice: a convolutional model; static parameters (-calib=DATA) usually run faster "
               "than -dynamic";
    return NULL;
}

const char *advice_of(const Job *j, Module *m) {
    Census c = {0};
    module_each_graph(m, count, &c);
    if (j->o->dynamic)
        return about_dynamic(j, m, &c);
    if (c.sequence && 2 * c.sequence >= c.convolution)
        return "advice: a recurrent model or transformer; -dynamic usually keeps more of its "
               "accuracy than static parameters";
    return NULL;
}
