/* !name lines of a text: which of a module's quantizations something still refers to. */
#include "passes/quant_build.h"

static void mark_quant(Map *used, const Quant *q) {
    if (!q)
        return;
    map_set_at(used, q, (void *)q);
    for (int i = 0; i < 2; i++) /* acc<!x, !w> */
        mark_quant(used, q->acc_quant[i]);
}

static void mark_value(Value *v, void *used) {
    mark_quant(used, v->type.quant);
}

/* value "logits" !logits: the text of the scheme stays, so its line does. */
static void mark_rules(Map *used, const Scheme *s) {
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < SCHEME_ROLES; k++)
            mark_quant(used, s->rules[i].set[k].line);
}

Map *quants_in_use(Module *m) {
    Map *used = map_new(m->arena);
    module_each_value(m, mark_value, used);
    mark_rules(used, &m->rules);
    return used;
}

void drop_unused_quants_among(Module *m, const Map *among) {
    Map *used = quants_in_use(m);
    size_t kept = 0;
    for (size_t i = 0; i < m->n_quants; i++)
        if (map_get_at(used, m->quants[i]) || (among && !map_get_at(among, m->quants[i])))
            m->quants[kept++] = m->quants[i];
    m->n_quants = kept;
}

void drop_unused_quants(Module *m) {
    drop_unused_quants_among(m, NULL);
}
