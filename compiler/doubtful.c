#include "compiler/doubtful.h"
#include "passes/quantize/choice.h"

#include <math.h>

void warn_of_zero_inputs(const Module *m, Diags *d) {
    for (size_t i = 0; i < m->graph->n_in; i++) {
        const Value *v = m->graph->in[i];
        bool zero = v->stat && v->stat->n && v->stat->min && v->stat->max;
        for (size_t k = 0; zero && k < v->stat->n; k++)
            zero = v->stat->min[k] == 0 && v->stat->max[k] == 0;
        if (zero)
            diag_warning(d, LOC_NONE,
                         "input '%s' is 0 in all of the calibration data: its scale says nothing",
                         diag_name(d, v->name));
    }
}

static bool has_range(const Stat *s) {
    return s && s->n == 1 && s->min && s->max && isfinite(*s->min) && isfinite(*s->max);
}

static Expected expected(const PassContext *c, const Uses *uses, const Value *v) {
    if (has_range(v->stat))
        return (Expected){"the model's own statistics", *v->stat->min, *v->stat->max};
    const Quant *q = choice_of_value(c, uses, v).fixed;
    if (!q || !quant_is_per_tensor(q) || q->kind != QUANT_PARAMS)
        return (Expected){0};
    double s = quant_scale(q, 0), zp = (double)quant_zp(q, 0);
    return (Expected){"the grid that a rule gives it", s * ((double)quant_lo(q) - zp),
                      s * ((double)quant_hi(q) - zp)};
}

const Expected *expected_inputs(Module *m, const PassContext *c) {
    const Uses *uses = uses_new(m);
    Expected *of = NEW_ARRAY(m->arena, Expected, m->graph->n_in);
    for (size_t i = 0; i < m->graph->n_in; i++)
        of[i] = expected(c, uses, m->graph->in[i]);
    return of;
}

void warn_of_far_inputs(const Module *m, const Expected *before, Diags *d) {
    const double times = 10;
    for (size_t i = 0; i < m->graph->n_in; i++) {
        const Expected *was = &before[i];
        const Stat *is = m->graph->in[i]->stat;
        if (!was->by || !has_range(is))
            continue;
        double old = was->max - was->min, new = (double)*is->max - (double)*is->min;
        if (old > 0 && new > 0 && (new > old *times || old > new *times))
            diag_warning(d, LOC_NONE,
                         "input '%s' is %g to %g in the calibration data, by %s %g to %g: is the "
                         "data prepared as the model wants it?",
                         diag_name(d, m->graph->in[i]->name), (double)*is->min, (double)*is->max,
                         was->by, was->min, was->max);
    }
}

Trained trained_norm(const Module *m) {
    enum { GAMMA = 1, BETA = 2 };
    FOR_NODES(n, m->graph) {
        if (!node_is(n, "BatchNormalization") || !node_input(n, BETA) || !n->out[0])
            continue;
        const Tensor *gamma = value_data(n->in[GAMMA]), *beta = value_data(n->in[BETA]);
        if (!gamma || !beta || !gamma->data || !beta->data || gamma->count != beta->count)
            break;
        double sum = 0;
        for (size_t i = 0; i < gamma->count; i++) {
            double g = tensor_float(gamma, i), b = tensor_float(beta, i);
            sum += g * g + b * b;
        }
        double square = gamma->count ? sum / (double)gamma->count : 0;
        return (Trained){n->out[0]->name, isfinite(square) ? square : 0};
    }
    return (Trained){STR_NONE, 0};
}

void warn_of_far_norm(const Module *m, const Trained *t, Diags *d) {
    const double times = 10;
    FOR_NODES(n, m->graph) {
        const Value *v = t->square > 0 && n->n_out ? n->out[0] : NULL;
        const Stat *s = v && str_eq(v->name, t->value) ? v->stat : NULL;
        if (!s || s->n != 1 || !s->avg || !s->std)
            continue;
        double square = (double)*s->avg * (double)*s->avg + (double)*s->std * (double)*s->std;
        if (square > times * times * t->square)
            diag_warning(d, v->loc,
                         "'%s', the first BatchNormalization, gives numbers around %.3g on the "
                         "calibration data, as it was trained around %.3g: is the data prepared as "
                         "the model wants it?",
                         diag_name(d, v->name), sqrt(square), sqrt(t->square));
    }
}
