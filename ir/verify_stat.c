#include "ir/verify_stat.h"

#include <math.h>

static const char *fault(const Stat *s) {
    for (size_t i = 0; i < s->n; i++) {
        if ((s->min && isnan(s->min[i])) || (s->max && isnan(s->max[i])))
            return "a bound is NaN";
        if (s->min && s->max && s->min[i] > s->max[i])
            return "min is above max";
    }
    return NULL;
}

static void verify_stat(Value *v, void *ctx) {
    Diags *d = ctx;
    const char *why = v->stat ? fault(v->stat) : NULL;
    if (why)
        diag_warning(d, v->stat->loc, "the statistic of '%s' is not used: %s",
                     diag_name(d, v->name), why);
}

void verify_stats(Module *m, Diags *d) {
    module_each_value(m, verify_stat, d);
}
