#include "passes/quantize/vanished.h"

#include <math.h>

static bool becomes_zero(const Quant *q, size_t entry, float x) {
    return quant_of_real(q, entry, x) == quant_zp(q, entry);
}

/* `keep`: the node that can be kept float, NULL where there is none. */
static void tell(const PassContext *c, const Value *v, const Node *keep, float most) {
    const char *how =
        !keep ? ""
              : node_strf(keep, "; -keep=%s leaves them float",
                          diag_name(c->d, keep->name.n ? keep->name : keep->out[0]->name));
    diag_warning(c->d, v->loc,
                 "all of '%s' becomes 0: its numbers are %.3g at most, too small for a scale%s",
                 diag_name(c->d, v->name), (double)most, how);
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
        tell(c, w, n, most);
}

void tell_vanished_value(const PassContext *c, const Uses *uses, const Value *v, float min,
                         float max, const Quant *q) {
    float most = fmaxf(fabsf(min), fabsf(max));
    if (most == 0 || !becomes_zero(q, 0, min) || !becomes_zero(q, 0, max))
        return;
    const Use *use;
    tell(c, v, v->def ? v->def : uses_of(uses, v, &use) ? use[0].node : NULL, most);
}
