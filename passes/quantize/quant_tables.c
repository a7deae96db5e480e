/* Tables that Gather looks rows up in (embeddings) become integers, one scale a column, and what
 * was looked up is dequantized: such tables are much of a model. Where what reads the rows computes
 * on integers, decisions were made and the pass has nothing to do. A table that anything else
 * reads, too, stays as it is. */
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/quant_build.h"
#include "passes/quantize/weight_quant.h"

enum { LEAST = 4096 }; /* elements: less is not worth a conversion */

typedef struct Tables {
    PassContext *c;
    Module *m;
    QuantBuild b;
    Uses *uses;
} Tables;

/* Moves whole rows of operand 0. */
static bool looks_up(const Node *n, const Value *table) {
    if (!n || !n->def || n->def->quant.kind != QUANT_MOVE || n->n_in != 2 || n->n_out != 1 ||
        n->in[0] != table || n->in[1] == table || !n->out[0])
        return false;
    OpCtx c = op_ctx(n, NULL);
    int last = table->data->rank - 1, to = n->def->quant.move.axis(&c, last);
    return n->def->quant.move.looks_up && to >= 0 && to == n->out[0]->type.rank - 1;
}

static bool is_table(const Tables *t, const Value *v) {
    const Tensor *data = edit_float_const(v);
    const Use *use;
    if (!data || data->rank < 2 || data->count < LEAST || v->type.quant)
        return false;
    size_t n = uses_of(t->uses, v, &use);
    for (size_t i = 0; i < n; i++)
        if (!looks_up(use[i].node, v) || choice_why_kept(t->c, use[i].node) ||
            choice_of_weight(t->c, use[i].node, v).is_float)
            return false;
    return n > 0 && edit_is_finite(v);
}

/* 8 bits where weights have fewer: a row is not summed up, and errors of fewer stay what they are.
 */
static Quant *table_quant(Tables *t, const Node *n, const Value *v) {
    Choice o = choice_of_weight(t->c, n, v);
    if (o.fixed)
        return quant_copy(t->b.a, o.fixed);
    if (elem_bits(o.storage) <= 8)
        o.storage = ELEM_INT8;
    o.sym = true;
    o.has_range = o.reduce_range = false;
    o.block = 0;
    return weight_quant(t->c, &o, n, v, v->data->rank - 1);
}

/* y = Gather(table) becomes DequantizeLinear(Gather(integers)). */
static void look_up_integers(Tables *t, Node *n, Value *ints) {
    Value *y = n->out[0];
    n->in[0] = ints;
    OpCtx c = op_ctx(n, t->b.d);
    Quant *q = quant_copy(t->b.a, op_moved_quant(&c, n->def, ints->type.quant));
    q->alias = derived_name(&t->b, y->name, "_quantized");
    module_add_quant(t->m, q);
    Str name = arena_strf(t->b.a, STR_FMT "_DequantizeLinear", STR_ARG(y->name));
    Node *back = build_node(&t->b, n, "DequantizeLinear", name, OPERANDS(y));
    node_follow(n, 0, back, q->alias, type_quantized(y->type, q));
    op_resolve(back, t->b.d);
}

static void quantize_table(Tables *t, Value *v) {
    const Use *use;
    size_t n = uses_of(t->uses, v, &use);
    Quant *q = table_quant(t, use[0].node, v);
    Value *ints = graph_add_const(v->graph, derived_name(&t->b, v->name, "_quantized"),
                                  type_quantized(v->type, q), const_quantize(t->b.a, v->data, q));
    module_release(t->m, v->data);
    value_from(ints, v, t->b.pass);
    q->alias = ints->name;
    module_add_quant(t->m, q);
    for (size_t i = 0; i < n; i++)
        look_up_integers(t, use[i].node, ints);
}

static void quantize_graph(Graph *g, void *ctx) {
    Tables *t = ctx;
    size_t n = g->n_consts; /* those that were there */
    for (size_t i = 0; i < n; i++)
        if (is_table(t, g->consts[i]))
            quantize_table(t, g->consts[i]);
}

bool pass_quant_tables(Module *m, PassContext *c) {
    Tables t = {c, m, quant_build_new(m, c, "quant-tables"), uses_new(m)};
    module_each_graph(m, quantize_graph, &t);
    edit_sweep(m);
    return true;
}
