/* What -target=ort-cpu cannot convert. See legal.h. */
#include "passes/emulate.h"
#include "passes/target/legal.h"
#include "target/ort_kernels.h"

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
    module_release_quant(v->graph->module, q);
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

bool kernels_check(Module *m, PassContext *c) {
    Check check = {c->d, {.opset = c->target_opset}, module_opset(m, STR("")), true};
    module_each_value(m, check_value, &check);
    if (ort_probed_opset(check.opset) < check.opset && !c->newer_refused)
        diag_warning(c->d, LOC_NONE,
                     "the result is at opset %lld; onnxruntime is known to load those up to %lld",
                     (long long)check.opset, (long long)ort_probed_opset(check.opset));
    return check.ok;
}
