/* Zeros that a Pad puts around the operand of Conv, AveragePool or MaxPool become padding of that
 * node: exporters that know only "valid" windows write such pairs, and runtimes have no integer
 * kernel for Pad between conversions. */
#include "passes/edit.h"

#include <math.h>

static const char PASS_NAME[] = "fold-pad";

typedef struct FoldPad {
    PassContext *c;
    Uses *uses;
} FoldPad;

/* What no element of `v` lies below. */
static float least_of(const FoldPad *f, const Value *v) {
    float lo = -INFINITY, hi;
    const Node *n = v->def;
    OpCtx c = n && n->def ? op_ctx(n, f->c->d) : (OpCtx){0};
    bool cut = n && n->def && n->def->quant.clamp && n->def->quant.clamp(&c, &lo, &hi);
    return cut ? lo : -INFINITY;
}

static bool take(const FoldPad *f, Node *n, Node *pad, const int64_t *before,
                 const int64_t *after) {
    Value *x = pad->in[0];
    if (!n || !n->def || !n->def->take_pads || n->in[0] != pad->out[0] ||
        !n->def->take_pads(n, before, after, least_of(f, x)))
        return false;
    n->in[0] = x;
    node_absorb(n, pad, PASS_NAME);
    op_resolve(n, f->c->d);
    return true;
}

static void fold(FoldPad *f, Node *pad) {
    int64_t before[MAX_RANK], after[MAX_RANK];
    OpCtx c = op_ctx(pad, f->c->d);
    if (!pad->out[0] || pad->out[0]->type.quant || !pad->def->zero_pads(&c, before, after))
        return;
    const Use *use;
    size_t n = uses_of(f->uses, pad->out[0], &use), taken = 0;
    for (size_t i = 0; i < n; i++)
        taken += take(f, use[i].node, pad, before, after);
    if (taken && taken == n)
        node_remove(pad);
}

static void fold_graph(Graph *g, void *ctx) {
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->def && n->def->zero_pads)
            fold(ctx, n);
    }
}

bool pass_fold_pad(Module *m, PassContext *c) {
    FoldPad f = {c, uses_new(m)};
    module_each_graph(m, fold_graph, &f);
    edit_sweep(m);
    return true;
}
