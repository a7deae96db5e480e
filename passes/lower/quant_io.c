/* Makes graph inputs and outputs the integers themselves (-io=quant): the QuantizeLinear behind an
 * input and the DequantizeLinear before an output go, and the interface takes their types. Names of
 * inputs and outputs stay. What stays float, as nothing quantizes it or in two ways, is told, and
 * why. */
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

/* ---- what is told ---- */

static void tell(const QuantIo *q, const char *port, const Value *v, const char *why) {
    diag(q->c->d, DIAG_REMARK, v->loc, "%s %s stays float: %s", port, diag_name(q->c->d, v->name),
         why);
}

/* With what a pass said of the node. */
static const char *float_node(const QuantIo *q, const char *verb, const Node *n) {
    const char *why = NULL;
    for (size_t i = 0; i < q->c->n_remarks; i++)
        if (q->c->remarks[i].node == n)
            why = q->c->remarks[i].reason;
    return node_strf(n, "%s %s as float%s%s", node_text(n), verb, why ? ": " : "", why ? why : "");
}

static bool is_float_tensor(const Value *v) {
    return v->type.kind == TYPE_TENSOR && !v->type.quant && elem_is_float(v->type.elem);
}

/* Bits of a small floating-point type, or parameters that only the model knows, are nothing that a
 * caller has. */
static const char *why_no_port(const Node *n, const Quant *q) {
    if (q->kind != QUANT_PARAMS)
        return "its scale is computed at run time";
    return quant_is_integers(q) ? NULL : node_strf(n, "its numbers are %s", elem_name(q->storage));
}

/* ---- inputs ---- */

/* The one quantization under which everything reads the input; NULL when there is none, and why. */
static const Quant *read_as(const QuantIo *q, const Value *x, const char **why) {
    const Use *use;
    const Quant *quant = NULL;
    size_t n = uses_of(q->uses, x, &use);
    *why = "nothing reads it";
    for (size_t i = 0; i < n; i++) {
        const Node *reader = use[i].node;
        *why = !reader ? "it goes out as it is" : float_node(q, "reads it", reader);
        if (!is_typed(reader, CONVERT_QUANTIZE))
            return NULL;
        const Quant *y = reader->out[0]->type.quant;
        *why = why_no_port(reader, y);
        if (*why)
            return NULL;
        *why = "it is read quantized in two ways";
        if (quant && !quant_equal(quant, y))
            return NULL;
        quant = y;
    }
    return quant;
}

static void quantize_input(QuantIo *q, Value *x) {
    const char *why;
    if (!is_float_tensor(x))
        return;
    const Quant *quant = read_as(q, x, &why);
    if (!quant || x->type.elem != ELEM_FLOAT) {
        tell(q, "input", x, quant ? "its type is not float32" : why);
        return;
    }
    const Use *use;
    size_t n = uses_of(q->uses, x, &use);
    x->type = type_quantized(x->type, quant);
    for (size_t i = 0; i < n; i++) {
        Node *conversion = use[i].node;
        value_replace(q->m, q->uses, conversion->out[0], x);
        node_remove(conversion);
    }
}

/* ---- outputs ---- */

/* NULL where they are yielded. */
static const char *why_no_integers(const QuantIo *q, const Graph *g, const Value *y) {
    const Node *n = y->def;
    if (!n || y->graph != g)
        return y->kind == VALUE_CONST ? "it is a constant" : "it is an input as it is";
    if (!is_typed(n, CONVERT_DEQUANTIZE))
        return float_node(q, "yields it", n);
    const Value *ints = n->in[0];
    if (ints->kind == VALUE_NODE && ints->graph == g)
        return why_no_port(n, ints->type.quant);
    return ints->kind == VALUE_CONST ? "its integers are a constant" : "its integers are an input";
}

/* The integers take the output's name; what was the float output gets another. */
static void quantize_output(QuantIo *q, Graph *g, size_t i) {
    Value *y = g->out[i];
    const Use *use;
    if (!is_float_tensor(y))
        return;
    const char *why = why_no_integers(q, g, y);
    if (why) {
        tell(q, "output", y, why);
        return;
    }
    Value *ints = y->def->in[0];
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
