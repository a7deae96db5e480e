#include "passes/quantize/vanished.h"

#include "passes/edit.h"
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
static const char *how_to_keep(const PassContext *c, const Node *n) {
    return !n || choice_why_kept(c, n)
               ? ""
               : node_strf(n, "; -keep=%s leaves them float",
                           diag_name(c->d, n->name.n ? n->name : n->out[0]->name));
}

static void tell(const PassContext *c, const Node *n, const Value *v, const Quant *q, float most) {
    Diags *d = c->d;
    const char *how = how_to_keep(c, n);
    if (most < FLT_MIN * (float)(quant_hi(q) - quant_lo(q)))
        diag_warning(d, v->loc,
                     "all of '%s' becomes 0: its numbers are %.3g at most, too small for a scale%s",
                     diag_name(d, v->name), (double)most, how);
    else
        diag_warning(d, v->loc,
                     "all of '%s' becomes 0: its numbers are %.3g at most, and its scale is %.3g%s",
                     diag_name(d, v->name), (double)most, (double)quant_scale(q, 0), how);
}

/* The largest number of the entry `k` of the quantization, whose elements are `inner` in a row, one
 * row in `channels`; -1 as soon as one is left that does not become 0. */
static float most_lost(const Tensor *t, const Quant *q, size_t k, size_t channels, size_t inner) {
    float most = 0;
    for (size_t row = k; row < t->count / inner; row += channels)
        for (size_t i = row * inner; i < (row + 1) * inner; i++) {
            float x = (float)tensor_float(t, i);
            size_t entry = channels > 1 ? k : quant_index(q, t->rank, t->dims, i);
            if (x != 0 && !becomes_zero(q, entry, x))
                return -1;
            most = fmaxf(most, fabsf(x));
        }
    return most;
}

/* Channels that a stated scale leaves nothing of: our own is too large only where the channel is
 * too small to matter beside its bias. Nor are numbers a loss that no scale is small enough for. */
static void tell_channels(const PassContext *c, const Node *n, const Value *w, const Quant *q) {
    const Tensor *t = w->data;
    AxisWalk channels = edit_axis(t->rank, t->dims, q->axis[0]);
    size_t first = 0, count = 0;
    float least = FLT_MIN * (float)(quant_hi(q) - quant_lo(q)), most = 0;
    for (size_t k = 0; k < channels.axis; k++) {
        float lost = most_lost(t, q, k, channels.axis, channels.inner);
        if (lost < least)
            continue;
        if (count++ == 0) {
            first = k;
            most = lost;
        }
    }
    if (count)
        diag_warning(
            c->d, w->loc,
            "%zu channel%s of '%s' become%s 0, the first at index %zu: its numbers are %.3g at "
            "most, and its scale is %.3g%s",
            count, plural((int64_t)count), diag_name(c->d, w->name), count == 1 ? "s" : "", first,
            (double)most, (double)quant_scale(q, first), how_to_keep(c, n));
}

void tell_vanished_weight(const PassContext *c, const Node *n, const Value *w, const Quant *q) {
    float most = w->data->count ? most_lost(w->data, q, 0, 1, w->data->count) : 0;
    if (most > 0)
        tell(c, n, w, q, most);
    else if (most < 0 && q->n_axes == 1 && !quant_is_blocked(q) && n &&
             choice_of_weight(c, n, w).fixed)
        tell_channels(c, n, w, q);
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
