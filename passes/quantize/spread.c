#include "passes/quantize/spread.h"

#include "passes/edit.h"
#include "passes/quantize/open.h"
#include "passes/quantize/sharing.h"

#include <math.h>

/* What the operator that makes it leaves of a range: a Relu or Clip cuts, and movers and pools hand
 * on what their operand has. */
static void bound(const PassContext *c, const Value *v, float *lo, float *hi) {
    const Node *n = v->def;
    float min, max;
    *lo = -INFINITY;
    *hi = INFINITY;
    if (!n || !n->def || !is_follower(n) || !n->n_in || !n->in[0])
        return;
    const QuantRule *q = &n->def->quant;
    OpCtx ctx = op_ctx(n, c->d);
    if (q->clamp && q->clamp(&ctx, &min, &max)) {
        *lo = min;
        *hi = max;
    }
    if (!q->move.fill && !q->move.fills_anew && edit_range(n->in[0], &min, &max)) {
        *lo = fmaxf(*lo, min);
        *hi = fminf(*hi, max);
    }
}

static void assume(const PassContext *c, Value *v) {
    const Stat *s = v->stat;
    if (!s || s->min || s->max || !s->avg || !s->std || v->kind == VALUE_CONST)
        return;
    Arena *a = v->graph->module->arena;
    float *min = NEW_ARRAY(a, float, s->n), *max = NEW_ARRAY(a, float, s->n), lo, hi;
    bound(c, v, &lo, &hi);
    for (size_t i = 0; i < s->n; i++) {
        min[i] = fmaxf(s->avg[i] - (float)SPREAD_TIMES * s->std[i], lo);
        max[i] = fmaxf(fminf(s->avg[i] + (float)SPREAD_TIMES * s->std[i], hi), min[i]);
    }
    Stat *now = arena_copy(a, s, sizeof *s);
    now->min = min;
    now->max = max;
    now->assumed = true;
    v->stat = now;
}

static void assume_graph(Graph *g, void *ctx) {
    for (size_t i = 0; i < g->n_in; i++)
        assume(ctx, g->in[i]);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            assume(ctx, n->out[i]);
}

void spread_assume(Module *m, const PassContext *c) {
    module_each_graph(m, assume_graph, (PassContext *)c);
}

typedef struct Forget {
    const PassContext *c;
    const Value *first;
    size_t n;
} Forget;

static void forget(Value *v, void *ctx) {
    Forget *f = ctx;
    if (!v->stat || !v->stat->assumed)
        return;
    v->stat->min = v->stat->max = NULL;
    v->stat->assumed = false;
    if (!v->type.quant || !was_decided(f->c, v))
        return;
    f->first = f->first ? f->first : v;
    f->n++;
}

void spread_forget(Module *m, const PassContext *c) {
    Forget f = {.c = c};
    module_each_value(m, forget, &f);
    if (f.n)
        diag(
            c->d, DIAG_REMARK, f.first->loc,
            "'%s'%s statistics without min and max: the range is taken as avg - %d std to avg + %d "
            "std",
            diag_name(c->d, f.first->name),
            f.n == 1 ? " has" : arena_others(m->arena, " and ", f.n - 1, " have"), SPREAD_TIMES,
            SPREAD_TIMES);
}
