/* Makes graph inputs and outputs the integers themselves (-io=quant): the QuantizeLinear behind an
 * input and the DequantizeLinear before an output go, and the interface takes their types. Names of
 * inputs and outputs stay. An input that something reads as float, or that is quantized in two
 * ways, stays float, with a remark. */
#include "passes/edit.h"

typedef struct QuantIo {
    PassContext *c;
    Module *m;
    Uses *uses;
    UniqueNames *names;
} QuantIo;

static bool is_typed(const Node *n, Conversion which) {
    return n && node_conversion(n) == which && n->n_in == 1 && n->in[0] && n->n_out == 1 &&
           n->out[0];
}

/* The one quantization under which everything reads the input; NULL when there is none. */
static const Quant *read_as(const QuantIo *q, const Value *x) {
    const Use *use;
    const Quant *quant = NULL;
    size_t n = uses_of(q->uses, x, &use);
    for (size_t i = 0; i < n; i++) {
        if (!is_typed(use[i].node, CONVERT_QUANTIZE))
            return NULL;
        const Quant *y = use[i].node->out[0]->type.quant;
        if (quant && !quant_equal(quant, y))
            return NULL;
        quant = y;
    }
    return quant;
}

static void quantize_input(QuantIo *q, Value *x) {
    const Use *use;
    size_t n = uses_of(q->uses, x, &use);
    if (x->type.kind != TYPE_TENSOR || x->type.elem != ELEM_FLOAT || x->type.quant || n == 0)
        return;
    const Quant *quant = read_as(q, x);
    if (!quant) {
        diag(q->c->d, DIAG_REMARK, x->loc,
             "input %s stays float: not everything reads it quantized",
             diag_name(q->c->d, x->name));
        return;
    }
    x->type = type_quantized(x->type, quant);
    for (size_t i = 0; i < n; i++) {
        Node *conversion = use[i].node;
        value_replace(q->m, q->uses, conversion->out[0], x);
        node_remove(conversion);
    }
}

/* The integers take the output's name; what was the float output gets another. */
static void quantize_output(QuantIo *q, Graph *g, size_t i) {
    Value *y = g->out[i];
    if (!is_typed(y->def, CONVERT_DEQUANTIZE) || y->graph != g)
        return;
    Value *ints = y->def->in[0];
    const Use *use;
    if (ints->kind != VALUE_NODE || ints->graph != g)
        return;
    Str name = y->name;
    y->name = unique_name(q->names, arena_strf(q->m->arena, STR_FMT "_float", STR_ARG(name)));
    ints->name = name;
    ints->declared = true;
    ints->doc = y->doc;
    ints->meta = y->meta;
    g->out[i] = ints;
    if (uses_of(q->uses, y, &use) == 1)
        node_remove(y->def);
}

bool pass_quant_io(Module *m, PassContext *c) {
    QuantIo q = {c, m, uses_new(m), unique_names_new(m)};
    for (size_t i = 0; i < m->graph->n_out; i++)
        quantize_output(&q, m->graph, i);
    q.uses = uses_new(m);
    for (size_t i = 0; i < m->graph->n_in; i++)
        quantize_input(&q, m->graph->in[i]);
    return true;
}
