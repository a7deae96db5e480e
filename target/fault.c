#include "target/target.h"

static const Predicate predicates[] = {
#define PREDICATE(name, at, means) {#name, at, predicate_##name, means},
#include "target/predicates.def"
#undef PREDICATE
};

size_t predicate_count(void) {
    return sizeof predicates / sizeof *predicates;
}

const Predicate *predicate_at(size_t i) {
    return &predicates[i];
}

const Predicate *predicate_find(Str name) {
    for (size_t i = 0; i < predicate_count(); i++)
        if (str_is(name, predicates[i].name))
            return &predicates[i];
    return NULL;
}

FaultSite fault_site(const Node *n, const Uses *uses) {
    return (FaultSite){n, op_ctx(n, NULL), uses, module_opset(n->graph->module, STR("")), 0};
}

bool fault_holds(const TargetFault *f, const FaultSite *s) {
    if (f->op.s && !(str_eq(f->op, s->n->op) && domain_equal(f->domain, s->n->domain)))
        return false;
    for (size_t i = 0; i < f->n_when; i++)
        if (f->when[i]->holds(s) == f->negated[i])
            return false;
    return true;
}

const TargetFault *target_fault(const TargetPage *t, FaultRemedy then, FaultPlace at,
                                const FaultSite *s) {
    for (size_t i = 0; i < t->n_faults; i++)
        if (t->faults[i].then & then && t->faults[i].at == at && fault_holds(&t->faults[i], s))
            return &t->faults[i];
    return NULL;
}

const char *fault_words(const TargetFault *f, const TargetPage *t, const Node *n) {
    return f->says ? f->says : node_strf(n, "%s gets it wrong", t->runtime);
}
