/* See passes/lower/state_precision.h. */
#include "passes/lower/state_precision.h"

#include "ir/ops/op.h"

/* Bits of the smallest signed type that holds the integers; 0 where Aidge has none. */
static int precision_of(const Quant *q) {
    static const int widths[] = {2, 4, 8, 16};
    if (q->kind != QUANT_PARAMS || !quant_is_integers(q) || !elem_is_signed(q->storage) ||
        !quant_zp_all_zero(q))
        return 0;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        int64_t half = (int64_t)1 << (widths[i] - 1);
        if (quant_lo(q) >= -half && quant_hi(q) < half)
            return widths[i];
    }
    return 0;
}

/* The constant weights of a product, or NULL. */
static const Value *weights_of(const Node *n) {
    const QuantRule *r = &n->def->quant;
    const Value *w = r->kind == QUANT_MAC ? node_input(n, (size_t)r->mac.weight) : NULL;
    return w && w->kind == VALUE_CONST ? w : NULL;
}

static void state(Node *n, Str key, Str value, Diags *d) {
    Str old = node_meta(n, key);
    if (!old.s)
        meta_set(n->graph->module->arena, &n->meta, key, value);
    else if (!str_eq(old, value))
        diag_warning(d, n->loc, "%s: %s stays \"%s\", though it is \"%s\" now", node_text(n), key.s,
                     diag_name(d, old), value.s);
}

static void state_node(Node *n, Diags *d) {
    const Value *y = n->n_out ? n->out[0] : NULL, *w = weights_of(n);
    if (n->def->quant.kind == QUANT_NEVER || !y || !elem_is_float(type_real_elem(y->type)))
        return;
    const Quant *made = y->type.quant, *read = w ? w->type.quant : NULL;
    int bits = made ? precision_of(made) : 0;
    if (!made && !read)
        state(n, STR(META_QUANTIZATION "ptq.notquantized"), STR("1"), d);
    else if (bits && (!w || (read && precision_of(read) == bits)))
        state(n, STR(META_QUANTIZATION "ptq.precision"),
              arena_strf(n->graph->module->arena, "int%d", bits), d);
    else
        diag_warning(d, n->loc,
                     "%s gets no quantization.ptq.precision, which is one signed, symmetric type "
                     "of results and weights: only qxc reads what else its metadata say",
                     node_text(n));
}

static void state_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    if (n->def)
        state_node(n, ctx);
}

void state_precision(Module *m, Diags *d) {
    module_each_graph(m, state_graph, d);
}
