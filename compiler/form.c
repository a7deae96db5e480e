/* See module_form in compiler/pipeline.h. */
#include "compiler/pipeline.h"
#include "ir/ops/op.h"
#include "passes/annotations.h"
#include "passes/emulate.h"
#include "passes/raise/raise_scaling.h"

static void look_at_value(Value *v, void *ctx) {
    ModuleForm *f = ctx;
    if (!v->type.quant)
        return;
    if (type_is_quantized(v->type))
        f->typed = true;
    else if (elem_is_float(type_real_elem(v->type)))
        f->fake = true;
}

static void look_for_annotations(Graph *g, void *ctx) {
    bool *found = ctx;
    *found |= annotations_of(g).n > 0;
}

static void look_for_qonnx(Graph *g, void *ctx) {
    bool *found = ctx;
    for (const Node *n = g->first; n && !*found; n = n->next)
        *found = node_is_qonnx(n);
}

static void look_at_nodes(Graph *g, void *ctx) {
    ModuleForm *f = ctx;
    look_for_annotations(g, &f->annotated);
    look_for_qonnx(g, &f->qonnx);
    FOR_NODES(n, g) {
        f->scaling |= is_scaling(n);
        f->integers |= node_on_integers(n);
        bool q = node_conversion(n) == CONVERT_QUANTIZE || node_conversion(n) == CONVERT_DEQUANTIZE;
        if ((q && n->n_in > 1) || qop_find(n->domain, n->op) || is_integer_product(n) ||
            node_is(n, "DynamicQuantizeLinear") || is_channels_last(n) || is_emulated(n))
            f->onnx_quantized = true;
    }
}

ModuleForm module_form(Module *m) {
    ModuleForm f = {0};
    module_each_value(m, look_at_value, &f);
    module_each_graph(m, look_at_nodes, &f);
    return f;
}

bool module_is_fake(Module *m) {
    ModuleForm f = {0};
    module_each_value(m, look_at_value, &f);
    return f.fake;
}

bool module_has_qonnx(Module *m) {
    bool found = false;
    module_each_graph(m, look_for_qonnx, &found);
    return found;
}

bool module_is_annotated(Module *m) {
    bool found = false;
    module_each_graph(m, look_for_annotations, &found);
    return found;
}

bool form_is_spelled(ModuleForm f) {
    return f.scaling || f.qonnx || f.onnx_quantized || f.integers;
}
