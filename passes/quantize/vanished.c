#include "passes/quantize/vanished.h"

#include "passes/quantize/choice.h"
#include "passes/quantize/masks.h"

#include <float.h>
#include <math.h>

typedef struct Look {
    const PassContext *c;
    const Uses *uses;
    Map *told; /* quantizations that values share */
} Look;

static bool becomes_zero(const Quant *q, size_t entry, float x) {
    return quant_of_real(q, entry, x) == quant_zp(q, entry);
}

/* The node that makes it, or reads it. */
static const Node *node_of(const Look *l, const Value *v) {
    const Use *use;
    return v->def ? v->def : uses_of(l->uses, v, &use) ? use[0].node : NULL;
}

/* `n` can be kept float, unless it is already. */
static void tell(const PassContext *c, const Node *n, const Value *v, const Quant *q, float most) {
    Diags *d = c->d;
    const char *how = !n || choice_why_kept(c, n)
                          ? ""
                          : node_strf(n, "; -keep=%s leaves them float",
                                      diag_name(d, n->name.n ? n->name : n->out[0]->name));
    if (most < FLT_MIN * (float)(quant_hi(q) - quant_lo(q)))
        diag_warning(d, v->loc,
                     "all of '%s' becomes 0: its numbers are %.3g at most, too small for a scale%s",
                     diag_name(d, v->name), (double)most, how);
    else
        diag_warning(d, v->loc,
                     "all of '%s' becomes 0: its numbers are %.3g at most, and its scale is %.3g%s",
                     diag_name(d, v->name), (double)most, (double)quant_scale(q, 0), how);
}

void tell_vanished_weight(const PassContext *c, const Node *n, const Value *w, const Quant *q) {
    const Tensor *t = w->data;
    float most = 0;
    for (size_t i = 0; i < t->count; i++) {
        float x = (float)tensor_float(t, i);
        if (x != 0 && !becomes_zero(q, quant_index(q, t->rank, t->dims, i), x))
            return;
        most = fmaxf(most, fabsf(x));
    }
    if (most > 0)
        tell(c, n, w, q, most);
}

static void look_at_range(const Look *l, const Value *v) {
    const Quant *q = v->type.quant;
    float min, max;
    bool cut;
    if (!quant_is_per_tensor(q) || map_get_at(l->told, q) ||
        !masked_range(l->uses, v, &min, &max, &cut))
        return;
    float most = fmaxf(fabsf(min), fabsf(max));
    if (most == 0 || !becomes_zero(q, 0, min) || !becomes_zero(q, 0, max))
        return;
    map_set_at(l->told, q, (void *)v);
    tell(l->c, node_of(l, v), v, q, most);
}

static void look(Value *v, void *ctx) {
    const Look *l = ctx;
    const Quant *q = v->type.quant;
    if (!q || q->kind != QUANT_PARAMS || !quant_is_integers(q) || type_is_quantized(v->type) ||
        v->type.elem != ELEM_FLOAT)
        return;
    if (v->kind == VALUE_CONST && v->data) {
        tell_vanished_weight(l->c, node_of(l, v), v, q);
        module_release(v->graph->module, v->data);
    } else if (v->stat)
        look_at_range(l, v);
}

void tell_vanished(const PassContext *c, Module *m) {
    module_each_value(m, look, &(Look){c, uses_new(m), map_new(m->arena)});
}
