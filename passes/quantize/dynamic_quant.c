/* Dynamic quantization (-dynamic): Conv, Gemm and MatMul with constant weights multiply integers,
 * weights of int8 and inputs of `uint8q<dynamic>`, whose parameters are computed from the numbers
 * as they come. Results are float, and so is everything else; no statistics are needed.
 *
 * A QuantizeLinear stands behind what computes the input, one for all products that read it. */
#include "passes/const_quant.h"
#include "passes/dynamic_form.h"
#include "passes/edit.h"
#include "passes/quant_build.h"
#include "passes/quantize/before_log.h"
#include "passes/quantize/vanished.h"
#include "passes/quantize/weight_quant.h"

typedef struct Dynamic {
    PassContext *c;
    Module *m;
    QuantBuild b;
    size_t n;               /* size of the tables: values that existed at the start */
    Value **integers;       /* by value id: its QuantizeLinear's result, or the weight's integers */
    const bool *before_log; /* by node id */
} Dynamic;

/* NULL when this product can take a dynamic input, else why not. */
static const char *why_float(const Dynamic *d, const Node *n) {
    const QuantRule *r = &n->def->quant;
    const Value *x = n->in[0], *w = n->in[r->mac.weight];
    const Value *bias = r->mac.bias && n->n_in > (size_t)r->mac.bias ? n->in[r->mac.bias] : NULL;
    const char *kept = choice_why_kept(d->c, n);
    Choice o = choice_of_weight(d->c, n, w);
    if (kept || o.is_float)
        return kept ? kept : "its weights stay float as asked";
    if (!r->mac.takes_dynamic)
        return "ONNX has no product of integers in its form";
    if (o.fixed ? elem_bits(o.fixed->storage) > 8 || quant_is_blocked(o.fixed)
                : elem_bits(o.storage) > 8)
        return "integer products have weights of 8 bits or less, not in blocks";
    if (!edit_float_const(w))
        return "its weights are not a float constant";
    if (!edit_is_finite(w))
        return "its weights hold NaN or infinity";
    if (w->data->rank < 2 || w->data->count == 0)
        return "its weights are no matrix";
    if (!x || x->type.kind != TYPE_TENSOR || x->type.elem != ELEM_FLOAT)
        return "its input is not float";
    if (node_int(n, "transA", 0))
        return "transA: its input would have to be transposed";
    if (bias && !edit_float_const(bias))
        return "its bias is not a float constant";
    const SchemeRule *said = choice_to_keep(d->c, n);
    if (d->before_log[n->id] && !(said && !said->keep))
        return "a logarithm reads its result, where small numbers count; "
               "a rule `node NAME quantize` has it quantized";
    return NULL;
}

static Value *quantized_input(Dynamic *d, Node *n, Value *x) {
    if (x->id < d->n && d->integers[x->id])
        return d->integers[x->id];
    Quant *q = quant_per_tensor(d->b.a, ELEM_UINT8, 1.0F, 0);
    *q = (Quant){.kind = QUANT_DYNAMIC,
                 .storage = q->storage,
                 .expressed = q->expressed,
                 .scale_type = q->scale_type,
                 .lo = q->lo,
                 .hi = q->hi};
    Str name = arena_strf(d->b.a, STR_FMT "_QuantizeLinear", STR_ARG(x->name));
    Node *to = build_node_for(&d->b, x, "QuantizeLinear", name, OPERANDS(x));
    node_add_output(to, 0, derived_name(&d->b, x->name, "_quantized"), type_quantized(x->type, q));
    place_behind(x, to, n);
    op_resolve(to, d->b.d);
    if (x->id < d->n)
        d->integers[x->id] = to->out[0];
    return to->out[0];
}

static Value *quantized_weight(Dynamic *d, Node *n, Value *w, int axis) {
    Value *known = w->id < d->n ? d->integers[w->id] : NULL;
    Choice o = choice_of_weight(d->c, n, w);
    o.block = 0; /* one accumulator has one scale */
    Quant *q = o.fixed ? quant_copy(d->b.a, o.fixed) : weight_quant(d->c, &o, n, w, axis);
    if (known && quant_equal(known->type.quant, q))
        return known;
    Value *v = build_from(&d->b, w, "_quantized", type_quantized(w->type, q),
                          const_quantize(d->b.a, w->data, q));
    bool is_new = v->type.quant == q;
    if (is_new)
        tell_vanished_weight(d->c, n, w, q);
    module_release(d->m, w->data);
    if (!is_new)
        return v;
    q->alias = v->name;
    module_add_quant(d->m, q);
    if (w->id < d->n)
        d->integers[w->id] = v;
    return v;
}

/* ---- LSTM, Attention, EmbedLayerNormalization ---- */

static const char *why_no_form(const Dynamic *d, const Node *n) {
    const DynamicForm *f = &n->def->dynamic;
    const Value *x = f->data >= 0 ? n->in[f->data] : NULL;
    const char *why = choice_why_kept(d->c, n);
    OpCtx c = op_ctx(n, d->b.d);
    float min, max;
    if (why || (f->applies && !f->applies(&c, &why)))
        return why;
    if (f->data >= 0 && (!x || x->type.kind != TYPE_TENSOR || x->type.elem != ELEM_FLOAT))
        return "its input is not float";
    for (size_t i = 0; i < n->n_in; i++) {
        if (!form_is_weight(f, i) || !n->in[i])
            continue;
        Choice o = choice_of_weight(d->c, n, n->in[i]);
        if (o.is_float)
            return "its weights stay float as asked";
        if (o.fixed || elem_bits(o.storage) != 8)
            return "com.microsoft's form of it has weights of 8 bits, by their own numbers";
        if (!edit_float_const(n->in[i]))
            return "its weights are not a float constant";
        if (!edit_range(n->in[i], &min, &max))
            return "its weights hold NaN or infinity";
    }
    return NULL;
}

/* Where the form has no scales of output channels though these are asked for. */
static bool loses_channels(const Dynamic *d, const Node *n) {
    const DynamicForm *f = &n->def->dynamic;
    for (size_t i = 0; i < n->n_in && f->axis >= 0 && f->axis != n->def->quant.stores.axis; i++)
        if (form_is_weight(f, i) && n->in[i] && choice_of_weight(d->c, n, n->in[i]).channel)
            return true;
    return false;
}

static void quantize_form(Dynamic *d, Node *n) {
    const DynamicForm *f = &n->def->dynamic;
    const char *why = why_no_form(d, n);
    if (why) {
        pass_remark(d->c, n, "%s", why);
        return;
    }
    if (loses_channels(d, n))
        diag(d->b.d, DIAG_REMARK, n->loc,
             "%s: com.microsoft's form of it takes one scale for each direction here, not for each "
             "channel of its weights",
             n->def->name);
    if (f->data >= 0)
        n->in[f->data] = quantized_input(d, n, n->in[f->data]);
    for (size_t i = 0; i < n->n_in; i++)
        if (form_is_weight(f, i) && n->in[i])
            n->in[i] = quantized_weight(d, n, n->in[i], f->axis);
}

static void quantize_graph(Graph *g, void *ctx) {
    Dynamic *d = ctx;
    FOR_NODES(n, g) {
        if (n->def && n->def->dynamic.op) {
            quantize_form(d, n);
            continue;
        }
        if (n->def && n->def->quant.stores.operands)
            pass_remark(d->c, n, "there is no integer form of it; -weight-only stores its weights");
        if (!n->def || n->def->quant.kind != QUANT_MAC ||
            n->n_in <= (size_t)n->def->quant.mac.weight || !n->in[n->def->quant.mac.weight]) {
            const char *unlike = why_unlike_product(n);
            if (unlike)
                pass_remark(d->c, n, "%s", unlike);
            continue;
        }
        const char *why = why_float(d, n);
        if (why) {
            pass_remark(d->c, n, "%s", why);
            continue;
        }
        size_t at = (size_t)n->def->quant.mac.weight;
        if (choice_of_weight(d->c, n, n->in[at]).block)
            diag(d->b.d, DIAG_REMARK, n->loc,
                 "%s: its weights are not in blocks, as a sum of integers has one scale",
                 n->def->name);
        n->in[0] = quantized_input(d, n, n->in[0]);
        OpCtx c = op_ctx(n, d->b.d);
        int axis = quant_weight_axis(&n->def->quant, &c);
        n->in[at] = quantized_weight(d, n, n->in[at], axis);
    }
}

bool pass_dynamic_quant(Module *m, PassContext *c) {
    if (!choice_check(c, m))
        return false;
    Dynamic d = {.c = c,
                 .m = m,
                 .b = quant_build_new(m, c, "dynamic-quant"),
                 .n = m->n_values,
                 .integers = NEW_ARRAY(m->arena, Value *, m->n_values),
                 .before_log = before_log(m)};
    module_each_graph(m, quantize_graph, &d);
    edit_order(m);
    edit_sweep(m);
    return true;
}
