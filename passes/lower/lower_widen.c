/* Integers of less than a byte, in bytes: QOperators have no narrower operands. `int4q<0.1, 0>`
 * becomes `int8q<0.1, 0, range=-8:7>`, the same integers.
 *
 * Weights are widened where an operator on integers reads them, or one whose result is widened;
 * those behind a DequantizeLinear stay small. What is computed is widened all together, so that
 * values that share parameters go on sharing them; unless inputs or outputs of the model are that
 * narrow, which are the user's. */
#include "passes/lower/lower_widen.h"
#include "ir/later.h"

typedef struct Widen {
    Arena *a;
    Map *wide; /* by quantization */
    bool interface;
    size_t constants, before, after; /* how many became wider, and their bytes */
} Widen;

static bool is_narrow(const Value *v) {
    const Quant *q =
        v && v->type.kind == TYPE_TENSOR && type_is_quantized(v->type) ? v->type.quant : NULL;
    return q && q->kind == QUANT_PARAMS && elem_bits(q->storage) < 8 && !quant_is_blocked(q);
}

static const Quant *wide(Widen *w, const Quant *q) {
    Quant *known = map_get_at(w->wide, q);
    if (known)
        return known;
    Quant *out = quant_copy(w->a, q);
    out->alias = q->alias;
    out->storage = elem_is_signed(q->storage) ? ELEM_INT8 : ELEM_UINT8;
    out->lo = quant_lo(q);
    out->hi = quant_hi(q);
    out->has_range = true;
    map_set_at(w->wide, q, out);
    return out;
}

static void widen(Widen *w, Value *v) {
    if (!is_narrow(v))
        return;
    v->type = type_quantized(v->type, wide(w, v->type.quant));
    if (!v->data)
        return;
    later_make(v->graph->module, v->data);
    w->constants++;
    w->before += elem_bytes(v->data->elem, v->data->count);
    v->data = tensor_as(w->a, v->data, v->type.quant->storage);
    w->after += v->data->count;
}

static void look_at_interface(Graph *g, void *ctx) {
    Widen *w = ctx;
    for (size_t i = 0; i < g->n_in; i++)
        w->interface |= is_narrow(g->in[i]);
    for (size_t i = 0; i < g->n_out; i++)
        w->interface |= is_narrow(g->out[i]);
}

static void widen_graph(Graph *g, void *ctx) {
    Widen *w = ctx;
    FOR_NODES(n, g) {
        bool integer =
            n->def && n->def->qop.op && n->n_in && n->in[0] && type_is_quantized(n->in[0]->type);
        bool result = !w->interface && n->n_out && is_narrow(n->out[0]);
        integer = integer || result; /* as of a Transpose, which has its operand's */
        for (size_t i = 0; integer && i < n->n_in; i++)
            if (n->in[i] && n->in[i]->kind == VALUE_CONST)
                widen(w, n->in[i]);
        for (size_t i = 0; !w->interface && i < n->n_out; i++)
            widen(w, n->out[i]);
    }
}

void lower_widen(Module *m, Diags *d) {
    Widen w = {.a = m->arena, .wide = map_new(m->arena)};
    module_each_graph(m, look_at_interface, &w);
    module_each_graph(m, widen_graph, &w);
    if (w.constants)
        diag_note(d, LOC_NONE,
                  "QOperators have no operands of less than 8 bits: %zu constant%s widened, %zu -> "
                  "%zu bytes",
                  w.constants, plural((int64_t)w.constants), w.before, w.after);
}
