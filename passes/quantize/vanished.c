#include "passes/quantize/vanished.h"

#include <math.h>

static bool becomes_zero(const Quant *q, size_t entry, float x) {
    return quant_of_real(q, entry, x) == quant_zp(q, entry);
}

static void tell(const PassContext *c, const Value *v, const Value *keep, float most) {
    diag_warning(c->d, v->loc,
                 "all of '%s' becomes 0: its numbers are %.3g at most, too small for a scale; "
                 "-keep=%s leaves them float",
                 diag_name(c->d, v->name), (double)most, diag_name(c->d, keep->name));
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
        tell(c, w, n->out[0], most);
}

void tell_vanished_value(const PassContext *c, const Uses *uses, const Value *v, float min,
                         float max, const Quant *q) {
    float most = fmaxf(fabsf(min), fabsf(max));
    if (most == 0 || !becomes_zero(q, 0, min) || !becomes_zero(q, 0, max))
        return;
    const Use *use;
    const Node *reader = !v->def && uses_of(uses, v, &use) ? use[0].node : NULL;
    tell(c, v, reader ? reader->out[0] : v, most);
}
