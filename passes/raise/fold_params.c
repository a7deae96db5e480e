/* Computes the constants that say how values are quantized: scales, zero points and integers that
 * Q, DQ and QOperators read, bounds, shapes and axes, and weights that are only moved. Exporters
 * spell these as Constant, Identity, Cast and ConstantOfShape. What computes with the elements of
 * other constants is left, as it may spell out a DequantizeLinear of weights (passes/emulate.h). So
 * are Q and DQ of constants, but of those that are no data: the bounds of a Clip. */
#include "exec/fold.h"
#include "ir/ops/op.h"
#include "ir/ops/qop.h"
#include "passes/edit.h"
#include "passes/quant_build.h"

typedef struct Params {
    bool *constant; /* by node id: all it reads is constant */
    bool *rounded;  /* a Q or DQ of constants that are no data */
    bool *wanted;   /* and says how something is quantized */
    bool changed;
} Params;

static bool is_conversion(const Node *n) {
    return is_onnx_quantize(n) || is_onnx_dequantize(n);
}

static void find_constants(Graph *g, void *ctx) {
    Params *p = ctx;
    FOR_NODES(n, g) {
        bool all = n->def && !is_conversion(n) && !node_is_qonnx(n);
        for (size_t i = 0; i < n->n_in && all; i++) {
            const Value *v = n->in[i];
            all = !v || value_is_const(v) || (v->def && p->constant[v->def->id]);
        }
        p->constant[n->id] = all;
    }
}

/* Whether operand `i` bounds what others hold. */
static bool is_bound(const Node *n, size_t i) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    return r && r->kind == QUANT_CLAMP && !quant_rule_is_data(r, i);
}

/* Whether operand `i` says how something is quantized or moved, or what is quantized. A Clip of
 * integers that are dequantized says their range (raise_clips.c). */
static bool is_param(const Node *n, size_t i) {
    if (is_onnx_quantize(n) || is_integer_product(n) || qop_find(n->domain, n->op))
        return true;
    if (is_onnx_dequantize(n) || node_is_qonnx(n))
        return i > 0;
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    return r && r->kind != QUANT_NEVER && r->kind != QUANT_MAC && !quant_rule_is_data(r, i);
}

/* ---- conversions of bounds: tools that quantize each constant round those of a Clip, too ---- */

static void find_rounded(Graph *g, void *ctx) {
    Params *p = ctx;
    FOR_NODES(n, g) {
        bool all = is_conversion(n);
        for (size_t i = 0; i < n->n_in && all; i++) {
            const Value *v = n->in[i];
            all = !v || value_is_const(v) ||
                  (v->def && (p->constant[v->def->id] || p->rounded[v->def->id]));
        }
        p->rounded[n->id] = all;
    }
}

static void leave_data(Params *p, const Value *v) {
    if (v && v->def && p->rounded[v->def->id]) {
        p->rounded[v->def->id] = false;
        p->changed = true;
    }
}

static void find_data(Graph *g, void *ctx) {
    Params *p = ctx;
    for (size_t i = 0; i < g->n_out; i++)
        leave_data(p, g->out[i]);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_in; i++)
        if (!p->rounded[n->id] && (is_conversion(n) || !is_bound(n, i)))
            leave_data(p, n->in[i]);
}

/* ---- what is computed ---- */

static bool makes_or_moves(const Node *n) {
    return n->def->constant || node_moves(n);
}

static void find_wanted(Graph *g, void *ctx) {
    Params *p = ctx;
    for (Node *n = g->last; n; n = n->prev) {
        if (p->constant[n->id] && makes_or_moves(n))
            p->wanted[n->id] = true;
        for (size_t i = 0; i < n->n_in; i++) {
            const Node *of = n->in[i] ? n->in[i]->def : NULL;
            if (!of || !(p->constant[of->id] || p->rounded[of->id]) || p->wanted[of->id])
                continue;
            p->wanted[of->id] = p->wanted[n->id] || is_param(n, i);
            p->changed |= p->wanted[of->id];
        }
    }
}

static bool is_wanted(const Node *n, void *ctx) {
    return ((const Params *)ctx)->wanted[n->id];
}

bool pass_fold_params(Module *m, PassContext *c) {
    (void)c;
    Params p = {.constant = NEW_ARRAY(m->scratch, bool, m->n_nodes + 1),
                .rounded = NEW_ARRAY(m->scratch, bool, m->n_nodes + 1),
                .wanted = NEW_ARRAY(m->scratch, bool, m->n_nodes + 1)};
    module_each_graph(m, find_constants, &p);
    module_each_graph(m, find_rounded, &p);
    do {
        p.changed = false;
        module_each_graph(m, find_data, &p);
    } while (p.changed);
    do { /* bodies read what stands outside */
        p.changed = false;
        module_each_graph(m, find_wanted, &p);
    } while (p.changed);
    if (module_fold(m,
                    &(FoldOptions){
                        .wanted = is_wanted, .ctx = &p, .conversions = true, .by = "fold-params"}))
        edit_sweep(m);
    return true;
}
