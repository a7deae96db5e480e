/* See exec/kept.h. */
#include "exec/kept.h"
#include "ir/ops/op.h"

/* Of values that are no outputs. */
enum { VALUE_SAMPLES = 4, MOST_OF_VALUE = 256, MOST_CLOSELY = 1024 };

KeptRun *kept_new(Module *m, size_t total) {
    KeptRun *k = NEW(m->arena, KeptRun);
    *k = (KeptRun){.arena = m->arena, .total = total, .n_values = m->n_values};
    k->n = total < KEPT_SAMPLES ? total : KEPT_SAMPLES;
    k->values = NEW_ARRAY(m->arena, KeptValue *, m->n_values);
    k->picks = picks_new(m);
    k->picked = NEW_ARRAY(m->arena, PickSum *, k->n + 1);
    k->n_outputs = m->graph->n_out;
    k->outputs = NEW_ARRAY(m->arena, KeptValue *, k->n_outputs);
    k->at = NEW_ARRAY(m->arena, size_t, KEPT_MOST);
    k->reals = NEW_ARRAY(m->arena, double, KEPT_MOST);
    return k;
}

/* Sample j of n is number floor((j + 1/2) total / n). */
int kept_place(const KeptRun *k, size_t i) {
    size_t j = k->total ? i * k->n / k->total : 0;
    return k->n && (2 * j + 1) * k->total / (2 * k->n) == i ? (int)j : -1;
}

size_t spread_place(uint64_t i, size_t n) {
    uint64_t turn = i * 0x9e3779b97f4a7c15u; /* 2^64 / phi */
    return (size_t)((turn >> 32) * (uint64_t)n >> 32);
}

size_t kept_element(const KeptValue *kept, int place, size_t i) {
    const KeptSample *s = &kept->samples[place];
    if (s->take == s->count)
        return i;
    return spread_place((uint64_t)place * s->take + i, s->count);
}

bool kept_fits(const KeptValue *kept, int place, Type now) {
    const KeptSample *s = &kept->samples[place];
    size_t count;
    return s->x && now.kind == TYPE_TENSOR && type_count(now, &count) && count == s->count;
}

void kept_load(const KeptValue *kept, int place, double *out) {
    const KeptSample *s = &kept->samples[place];
    for (size_t i = 0; i < s->take; i++)
        out[i] = (double)s->x[i];
}

void kept_pick(const KeptRun *k, const KeptValue *kept, int place, Type now, const void *data,
               double *out) {
    size_t take = kept->samples[place].take;
    for (size_t i = 0; i < take; i++)
        k->at[i] = kept_element(kept, place, i);
    type_reals_at(now, data, k->at, take, out);
}

/* What is not made of numbers, or larger than can be counted, is not kept. */
static void take(KeptRun *k, KeptValue **slot, int place, const Value *v, Type now,
                 const void *data, size_t most) {
    size_t count;
    if (now.kind != TYPE_TENSOR || now.elem == ELEM_STRING || !type_count(now, &count) ||
        count > UINT32_MAX)
        return;
    if (!*slot) {
        *slot = NEW(k->arena, KeptValue);
        **slot = (KeptValue){.name = v->name,
                             .elem = v->type.elem,
                             .samples = NEW_ARRAY(k->arena, KeptSample, k->n)};
    }
    KeptSample *s = &(*slot)->samples[place];
    s->count = count;
    s->take = count < most ? count : most;
    s->x = NEW_ARRAY(k->arena, float, s->take + 1);
    kept_pick(k, *slot, place, now, data, k->reals);
    for (size_t i = 0; i < s->take; i++)
        s->x[i] = (float)k->reals[i];
}

void kept_value(KeptRun *k, int place, const Value *v, Type now, const void *data) {
    size_t every = k->closely ? 1 : (k->n + VALUE_SAMPLES - 1) / VALUE_SAMPLES;
    size_t most = k->closely ? MOST_CLOSELY : MOST_OF_VALUE;
    picks_see(k->picks, v, now, data);
    if (v->graph != v->graph->module->graph || v->kind != VALUE_NODE || v->id >= k->n_values)
        return;
    if ((size_t)place % every == 0 && elem_is_float(v->type.elem))
        take(k, &k->values[v->id], place, v, now, data, most);
}

void kept_outputs(KeptRun *k, int place, const ModelRun *r) {
    k->picked[place] = arena_copy(k->arena, k->picks->sums, k->picks->n * sizeof *k->picks->sums);
    picks_start(k->picks);
    for (size_t i = 0; i < k->n_outputs; i++) {
        const Value *v = r->module->graph->out[i];
        Type now;
        const void *data = model_run_value(r, v, &now);
        if (data)
            take(k, &k->outputs[i], place, v, now, data, KEPT_MOST);
    }
}
