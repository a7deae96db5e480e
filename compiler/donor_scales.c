/* -scales-from: see compiler/donor.h. */
#include "compiler/donor_match.h"

typedef struct Take {
    Donor d;
    Scheme *out;
    size_t there, missing; /* values with statistics or quantizations, and those not in m */
} Take;

static void take_stat(Value *v, void *ctx) {
    Take *t = ctx;
    if (!v->stat || v->kind == VALUE_CONST)
        return;
    t->there++;
    Value *here = map_get(t->d.here, v->name);
    if (here && !here->stat)
        here->stat = v->stat;
    t->missing += !here;
}

static void count_quant(Value *v, void *ctx) {
    Take *t = ctx;
    if (!donor_has_params(v) || v->kind == VALUE_CONST)
        return;
    t->there++;
    t->missing += !t->d.known[v->id];
}

static void add_rule(Take *t, Str name, SchemeSetting what, bool may_miss) {
    Arena *a = t->d.m->arena;
    SchemeRule r = scheme_rule(SCHEME_VALUE, scheme_glob_of(a, name).s, LOC_NONE);
    r.flag = t->d.from->path;
    r.may_miss = may_miss;
    r.set[SCHEME_ITSELF] = what;
    r.set[SCHEME_ITSELF].said = true;
    scheme_add(t->out, a, r);
}

static const Fact *fact_behind_clamp(const Take *t, const Value *v) {
    const Node *n = uses_only_node(t->d.uses, v);
    return n && n->def && n->def->quant.kind == QUANT_CLAMP && n->n_out && n->out[0]
               ? map_get(t->d.facts, n->out[0]->name)
               : NULL;
}

/* Folding may take the value away. Without data nothing is known of a product that the other model
 * does not round, or rounds behind the Relu alone: it can be of integers all the same. */
static void settle_product(Value *v, void *ctx) {
    Take *t = ctx;
    if (!donor_is_product(v) || v->stat || map_get(t->d.facts, v->name))
        return;
    const Fact *f = fact_behind_clamp(t, v);
    add_rule(t, v->name,
             f ? (SchemeSetting){.storage = f->q->storage, .fixed = quant_copy(t->d.m->arena, f->q)}
               : (SchemeSetting){.is_float = true},
             true);
}

bool donor_scales(const Job *j, Module *m, Module *from, Scheme *out) {
    if (!job_raise(j, from))
        return false;
    Take t = {donor_look(j, m, from), out, 0, 0};
    size_t found = 0;
    for (size_t i = 0; i < map_size(t.d.facts); i++) {
        const Fact *f = map_value(t.d.facts, i);
        Value *v = map_get(t.d.here, f->name);
        if (!v || donor_is_bias(f->stated) || !donor_fits(&t.d, v, f->q))
            continue;
        Quant *q = quant_copy(m->arena, f->q);
        add_rule(&t, f->name, (SchemeSetting){.storage = q->storage, .fixed = q}, false);
        found++;
    }
    bool quants = map_size(t.d.facts) > 0;
    module_each_value(from, quants ? count_quant : take_stat, &t);
    if (found && !options_have_data(j->o))
        module_each_value(m, settle_product, &t);
    if (t.missing)
        diag_warning(j->d, LOC_NONE,
                     "-scales-from: %zu of %zu values %s in %s are not in this model", t.missing,
                     t.there, quants ? "that are quantized" : "with statistics", donor_path(&t.d));
    if (!found && t.missing == t.there)
        return diag_error(j->d, LOC_NONE,
                          "-scales-from: %s has no quantization and no statistics "
                          "of a value of this model",
                          donor_path(&t.d));
    return t.d.ok;
}
