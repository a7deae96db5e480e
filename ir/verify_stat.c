#include "ir/verify_stat.h"

#include <math.h>

static const char *fault(const Stat *s) {
    for (size_t i = 0; i < s->n; i++) {
        if ((s->min && isnan(s->min[i])) || (s->max && isnan(s->max[i])))
            return "a bound is NaN";
        if (s->min && s->max && s->min[i] > s->max[i])
            return "min is above max";
    }
    return s->max && !s->min ? "there is no min" : s->min && !s->max ? "there is no max" : NULL;
}

const char *stat_why_no_range(const Stat *s) {
    const char *why = fault(s);
    if (!why && !s->min)
        return "there is no min and no max";
    for (size_t i = 0; !why && i < s->n; i++)
        if (isinf(s->min[i]) || isinf(s->max[i]))
            why = "a bound is infinite";
    return why;
}

static void tell(Diags *d, Severity how, const Value *v, const char *why) {
    if (why)
        diag(d, how, v->stat->loc, "the statistic of '%s' is not used: %s", diag_name(d, v->name),
             why);
}

/* A bound that is misspelt is told where it is read. */
static bool has_unknown(const Stat *s) {
    static const char *const known[] = {"hist", "method", "seen", "ends", "elements", "sums"};
    size_t n = 0;
    for (size_t i = 0; i < s->n_attrs; i++)
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            n += str_is(s->attrs[i].name, known[k]);
    return n < s->n_attrs;
}

static bool lacks_bound(const Stat *s) {
    return !s->min != !s->max;
}

static const char *warned_of(const Stat *s) {
    return lacks_bound(s) && has_unknown(s) ? NULL : fault(s);
}

void note_no_range(const Value *v, Diags *d) {
    if (!fault(v->stat))
        tell(d, DIAG_NOTE, v, stat_why_no_range(v->stat));
}

static void verify_stat(Value *v, void *ctx) {
    tell(ctx, DIAG_WARNING, v, v->stat ? warned_of(v->stat) : NULL);
}

void verify_stats(Module *m, Diags *d) {
    module_each_value(m, verify_stat, d);
}
