/* See passes/quantize/outliers.h. */
#include "passes/quantize/outliers.h"
#include "passes/quantize/channel_scale.h"

#include <stdlib.h>

enum {
    GAP = 4,            /* times as large as the next channel */
    FEW = 4,            /* one channel of so many is an outlier at most */
    CHANNELS_LEAST = 8, /* that a value has */
};

/* ---- sizes ---- */

static bool scalable(const Channels *ch, const ChannelSet *s) {
    size_t class;
    for (size_t i = 0; s && i < s->n; i++)
        if (channels_class(ch, s->id[i], &class))
            return true;
    return false;
}

/* A value whose scale matters: not one that a clamp takes over. */
static void choose_value(Value *v, void *ctx) {
    ChannelSizes *sizes = ctx;
    Arena *a = sizes->channels.m->arena;
    const ChannelSet *s = sizes->channels.of[v->id];
    const Use *use;
    size_t n = uses_of(sizes->channels.uses, v, &use);
    if (!scalable(&sizes->channels, s) ||
        (n == 1 && use->node && use->node->def && use->node->def->quant.kind == QUANT_CLAMP))
        return;
    sizes->largest[v->id] = NEW_ARRAY(a, float, s->n);
    ARENA_PUSH(a, sizes->values, sizes->n_values, sizes->cap_values, v);
}

ChannelSizes *channel_sizes_new(Module *m, Diags *d) {
    ChannelSizes *sizes = NEW(m->arena, ChannelSizes);
    sizes->channels = channels_find(m, d);
    sizes->largest = NEW_ARRAY(m->arena, float *, m->n_values);
    module_each_value(m, choose_value, sizes);
    return sizes;
}

void channel_sizes_look(void *ctx, const Value *v, Type type, const void *data) {
    const ChannelSizes *sizes = ctx;
    if (v->id < sizes->channels.n_values && sizes->largest[v->id])
        channels_look(sizes->channels.of[v->id], type, data, sizes->largest[v->id]);
}

/* ---- outliers ---- */

static int smaller_first(const void *x, const void *y) {
    float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

/* How many channels are apart from the others, GAP times as large as the next; 0 where none or many
 * are. Sizes that merely spread, as those behind a Relu do, have no gap. */
static size_t count_outliers(Arena *a, const float *largest, size_t n) {
    float *sorted = arena_copy(a, largest, n * sizeof *largest);
    qsort(sorted, n, sizeof *sorted, smaller_first);
    for (size_t over = 1; n >= CHANNELS_LEAST && over <= n / FEW; over++)
        if (sorted[n / 2] > 0 &&
            (double)sorted[n - over] > (double)GAP * (double)sorted[n - over - 1])
            return over;
    return 0;
}

Outliers outliers_find(ChannelSizes *sizes) {
    Outliers found = {0};
    if (!sizes)
        return found;
    const Channels *ch = &sizes->channels;
    found.groups = NEW_ARRAY(ch->m->arena, bool, ch->n);
    for (size_t k = 0; k < sizes->n_values; k++) {
        const Value *v = sizes->values[k];
        const ChannelSet *s = ch->of[v->id];
        size_t class, over = count_outliers(ch->m->arena, sizes->largest[v->id], s->n);
        for (size_t i = 0; over && i < s->n; i++)
            if (channels_class(ch, s->id[i], &class))
                found.groups[channels_group(ch, class)] = true;
        found.values += over > 0;
        found.n += over;
    }
    return found;
}
