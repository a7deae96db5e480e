#include "passes/target/ort_kernels.h"

#include <stdlib.h>

#include "passes/emulate.h"

typedef struct Kernels {
    const char *domain, *op;
    int first, last;
    const char *types; /* combinations with a blank between, types with a comma */
} Kernels;

static const Kernels table[] = {
#define ORT_KERNELS(domain, op, first, last, types) {domain, op, first, last, types},
#include "passes/target/ort_kernels.def"
#undef ORT_KERNELS
};
enum { N_KERNELS = sizeof table / sizeof table[0] };

static int64_t clamp_opset(int64_t opset) {
    int64_t first = table[0].first, last = table[0].last;
    for (size_t i = 1; i < N_KERNELS; i++) {
        first = table[i].first < first ? table[i].first : first;
        last = table[i].last > last ? table[i].last : last;
    }
    return opset < first ? first : opset > last ? last : opset;
}

static bool is_combination(const char *at, const ElemType *types, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(elem_name(types[i]));
        char end = i + 1 < n ? ',' : ' ';
        if (strncmp(at, elem_name(types[i]), length) != 0 ||
            (at[length] != end && (end == ',' || at[length])))
            return false;
        at += length + (at[length] != 0);
    }
    return true;
}

static bool holds(const char *types, const ElemType *wanted, size_t n) {
    for (const char *at = types; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
        if (is_combination(at, wanted, n))
            return true;
    return false;
}

bool ort_has_kernel(const char *domain, const char *op, int64_t opset, const ElemType *types,
                    size_t n) {
    opset = clamp_opset(opset);
    for (size_t i = 0; i < N_KERNELS; i++)
        if (strcmp(table[i].domain, domain) == 0 && strcmp(table[i].op, op) == 0 &&
            table[i].first <= opset && opset <= table[i].last)
            return holds(table[i].types, types, n);
    return false;
}

const char *ort_refuses(const Node *n, const char *domain, const char *op, const ElemType *types,
                        size_t n_types) {
    const Module *m = n->graph->module;
    if (ort_has_kernel(domain, op, module_opset(m, STR("")), types, n_types))
        return NULL;
    Buf b = buf_new(m->arena);
    buf_fmt(&b, "onnxruntime has no kernel for %s on", op);
    for (size_t i = 0; i < n_types; i++)
        buf_fmt(&b, "%s %s", i ? "," : "", elem_name(types[i]));
    return buf_as_str(&b).s;
}

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
    const Value *w = n->in[n->def->quant.weight];
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
        if (!n->def || n->def->quant.kind != QUANT_MAC || n->n_in <= (size_t)n->def->quant.weight ||
            !n->in[n->def->quant.weight] || !op_quant(n->in[0]) ||
            !op_quant(n->in[n->def->quant.weight]) || !saturates(n))
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

bool ort_check(Module *m, PassContext *c) {
    warn_of_saturation(m, c);
    Check check = {c->d, {.opset = c->target_opset}, module_opset(m, STR("")), true};
    module_each_value(m, check_value, &check);
    if (clamp_opset(check.opset) < check.opset && !c->newer_refused)
        diag_warning(c->d, LOC_NONE,
                     "the result is at opset %lld; onnxruntime is known to load those up to %lld",
                     (long long)check.opset, (long long)clamp_opset(check.opset));
    return check.ok;
}
