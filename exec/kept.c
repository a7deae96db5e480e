/* See exec/kept.h. */
#include "exec/kept.h"

/* Of values that are no outputs. */
enum { VALUE_SAMPLES = 4, MOST_OF_VALUE = 256, MOST_CLOSELY = 1024 };

KeptRun *kept_new(const Module *m, size_t total) {
    KeptRun *k = NEW(m->arena, KeptRun);
    *k = (KeptRun){.arena = m->arena, .total = total, .n_values = m->n_values};
    k->n = total < KEPT_SAMPLES ? total : KEPT_SAMPLES;
    k->values = NEW_ARRAY(m->arena, KeptValue *, m->n_values);
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
    if (kept->take == kept->count)
        return i;
    return spread_place((uint64_t)place * kept->take + i, kept->count);
}

void kept_pick(const KeptRun *k, const KeptValue *kept, int place, const Value *v, const void *data,
               double *out) {
    for (size_t i = 0; i < kept->take; i++)
        k->at[i] = kept_element(kept, place, i);
    value_reals_at(v, data, k->at, kept->take, out);
}

/* What is not made of numbers, or larger than can be counted, is not kept. */
static KeptValue *new_value(KeptRun *k, const Value *v, size_t most) {
    size_t count;
    if (v->type.kind != TYPE_TENSOR || v->type.elem == ELEM_STRING ||
        !type_count(v->type, &count) || count > UINT32_MAX)
        return NULL;
    KeptValue *new = NEW(k->arena, KeptValue);
    *new = (KeptValue){.name = v->name, .count = count, .take = count < most ? count : most};
    new->x = NEW_ARRAY(k->arena, float, k->n *new->take);
    return new;
}

static void take(KeptRun *k, KeptValue *to, int place, const Value *v, const void *data) {
    kept_pick(k, to, place, v, data, k->reals);
    for (size_t i = 0; i < to->take; i++)
        to->x[(size_t)place * to->take + i] = (float)k->reals[i];
    to->there[place] = true;
}

void kept_value(KeptRun *k, int place, const Value *v, const void *data) {
    size_t every = k->closely ? 1 : (k->n + VALUE_SAMPLES - 1) / VALUE_SAMPLES;
    if ((size_t)place % every)
        return;
    if (v->graph != v->graph->module->graph || v->kind != VALUE_NODE || v->id >= k->n_values ||
        !elem_is_float(v->type.elem))
        return;
    KeptValue **slot = &k->values[v->id];
    if (!*slot)
        *slot = new_value(k, v, k->closely ? MOST_CLOSELY : MOST_OF_VALUE);
    if (*slot)
        take(k, *slot, place, v, data);
}

static void keep_output(KeptRun *k, int place, size_t i, const Value *v, const void *data) {
    if (data && !k->outputs[i])
        k->outputs[i] = new_value(k, v, KEPT_MOST);
    if (data && k->outputs[i])
        take(k, k->outputs[i], place, v, data);
}

void kept_outputs(KeptRun *k, int place, const Module *m, const Runner *r) {
    for (size_t i = 0; i < k->n_outputs; i++)
        keep_output(k, place, i, m->graph->out[i], runner_value(r, m->graph->out[i]));
}

void kept_evaluated(KeptRun *k, int place, const Module *m, Evaluator *e) {
    for (size_t i = 0; i < k->n_outputs; i++) {
        const Value *v = m->graph->out[i];
        keep_output(k, place, i, v, evaluator_elements(e, v));
    }
}
