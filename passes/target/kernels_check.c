/* What -target=ort-cpu cannot convert, and where its sums saturate. See legal.h. */
#include <stdlib.h>

#include "passes/emulate.h"
#include "passes/target/legal.h"
#include "target/ort_kernels.h"

/* ---- conversions ---- */

typedef struct Check {
    Diags *d;
    QuantBuild b; /* only its opset matters */
    int64_t opset;
    bool ok;
} Check;

static void check_value(Value *v, void *ctx) {
    Check *c = ctx;
    const Quant *q = v->type.kind == TYPE_TENSOR ? v->type.quant : NULL;
    if (!q || q->kind == QUANT_DYNAMIC || q->expressed == ELEM_DOUBLE)
        return;
    ElemType real = q->expressed, scale = onnx_scale_type(q), e = onnx_storage(&c->b, q->storage);
    bool to = v->kind != VALUE_NODE || emulates_quantize(&c->b, q) ||
              ort_has_kernel("", "QuantizeLinear", c->opset, (ElemType[]){real, scale, e}, 3);
    bool from = emulates_dequantize(&c->b, q) ||
                ort_has_kernel("", "DequantizeLinear", c->opset, (ElemType[]){e, scale, real}, 3);
    if (to && from)
        return;
    if (scale != real)
        c->ok = diag_error(c->d, v->loc,
                           "'%s': onnxruntime quantizes %s only with a scale of that type: state "
                           "scale_type=%s",
                           diag_name(c->d, v->name), elem_name(real), elem_name(real));
    else
        c->ok =
            diag_error(c->d, v->loc, "'%s': onnxruntime has no kernel that converts %s %s %s",
                       diag_name(c->d, v->name), elem_name(real), to ? "from" : "to", elem_name(e));
}

/* ---- u8 x s8 without VNNI ---- */

typedef struct Saturating {
    size_t products;
    const Node *first;
} Saturating;

/* Two products of 255 and 127 leave int16, in which AVX2 adds pairs; of 255 and 64 they do not. */
static bool saturates(const Node *n) {
    const Value *w = n->in[n->def->quant.mac.weight];
    const Tensor *t = value_data(w);
    if (n->in[0]->type.elem != ELEM_UINT8 || w->type.elem != ELEM_INT8)
        return false;
    for (size_t i = 0; t && i < t->count; i++)
        if (llabs(tensor_int(t, i)) > 64)
            return true;
    return !t;
}

static void look_at_products(Graph *g, void *ctx) {
    Saturating *s = ctx;
    FOR_NODES(n, g) {
        if (!n->def || n->def->quant.kind != QUANT_MAC ||
            n->n_in <= (size_t)n->def->quant.mac.weight || !n->in[n->def->quant.mac.weight] ||
            !op_quant(n->in[0]) || !op_quant(n->in[n->def->quant.mac.weight]) || !saturates(n))
            continue;
        s->first = s->products++ ? s->first : n;
    }
}

static void warn_of_saturation(Module *m, PassContext *c) {
    Saturating s = {0};
    if (c->saturates)
        module_each_graph(m, look_at_products, &s);
    if (s.products)
        diag_warning(c->d, s.first->loc,
                     "uint8 times int8 weights beyond 64: without VNNI onnxruntime adds pairs of "
                     "products in 16 bits, which saturate: use -reduce-range, or "
                     "-weights=\"uint8 asym\" (%zu nodes)",
                     s.products);
}

bool kernels_check(Module *m, PassContext *c) {
    warn_of_saturation(m, c);
    Check check = {c->d, {.opset = c->target_opset}, module_opset(m, STR("")), true};
    module_each_value(m, check_value, &check);
    if (ort_probed_opset(check.opset) < check.opset && !c->newer_refused)
        diag_warning(c->d, LOC_NONE,
                     "the result is at opset %lld; onnxruntime is known to load those up to %lld",
                     (long long)check.opset, (long long)ort_probed_opset(check.opset));
    return check.ok;
}
