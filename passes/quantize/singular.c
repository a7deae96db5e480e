/* See passes/quantize/singular.h. */
#include "passes/quantize/singular.h"

#include <math.h>

enum { BUDGET = 64 }; /* readers to look at for one value */

/* Times the smallest number: below 4 of 255 steps, other data may well round to 0. */
static const float SPAN = 64;

/* None of its numbers was 0, and some were near it. */
static bool comes_near_zero(const Value *v) {
    const Stat *s = v->stat;
    float least = INFINITY, most = 0;
    bool above = true, below = true;
    for (size_t i = 0; s && s->min && s->max && i < s->n; i++) {
        above = above && s->min[i] > 0;
        below = below && s->max[i] < 0;
        least = fminf(least, fminf(fabsf(s->min[i]), fabsf(s->max[i])));
        most = fmaxf(most, fmaxf(fabsf(s->min[i]), fabsf(s->max[i])));
    }
    return (above || below) && least < most / SPAN;
}

static bool passes_zero_on(const Node *n) {
    return n->n_out && n->out[0] && (n->def->quant.keeps_zero || n->def->quant.kind == QUANT_MOVE);
}

static const Node *reader_that_breaks(const Uses *uses, const Value *v, int *left) {
    const Use *use;
    size_t n = uses_of(uses, v, &use);
    for (size_t i = 0; i < n && (*left)-- > 0; i++) {
        const Node *to = use[i].node;
        if (!to || !to->def)
            continue;
        if (use[i].index < 32 && to->def->quant.singular >> use[i].index & 1)
            return to;
        const Node *behind = use[i].index == 0 && passes_zero_on(to)
                                 ? reader_that_breaks(uses, to->out[0], left)
                                 : NULL;
        if (behind)
            return behind;
    }
    return NULL;
}

const Node *zero_breaks(const Uses *uses, const Value *v) {
    int left = BUDGET;
    return comes_near_zero(v) ? reader_that_breaks(uses, v, &left) : NULL;
}
