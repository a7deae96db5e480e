/* See passes/quantize/placement.h: first products whose integers nobody reads.
 *
 * Some runtimes make integers of a product only where a QuantizeLinear stands behind it. Where all
 * that reads the result is float, as the residual sums behind the first convolution of a vision
 * transformer are, that quantizer rounds what all layers build on: it costs 2 to 3 dB there, and a
 * product that is a small part of the work spares no time. Further down, where integers come out of
 * other products, a float one would cost conversions of layout. */
#include "exec/fixed_shapes.h"
#include "passes/marks.h"
#include "passes/quantize/open.h"
#include "passes/quantize/placement.h"

#include <math.h>

/* The share of all multiplications that such products may have together. In float they take some
 * four times as long. */
static const double SMALL = 0.02;

typedef struct Lone {
    Decide *d;
    bool *behind; /* by value id: it depends on a product */
    size_t n;     /* of them, small or not */
    bool *used;   /* by value id: something that does not just move it reads it in integers */
    double *work; /* by node id: of products, */
    double all;   /* of all of them, integer or not: what is small stays so as others are spared, */
    double left;  /* and of those that were left float here */
} Lone;

/* Multiplications, within shapes_fix: each element of the result is a sum over what the weight has
 * for its channel. Those of ConvTranspose, whose windows have holes, and of stacked matrices are
 * fewer. NaN where a length is open all the same. */
static double work_of(const Node *n, Diags *d) {
    const QuantRule *r = &n->def->quant;
    const Type w = n->in[r->mac.weight]->type, y = n->out[0]->type;
    OpCtx c = op_ctx(n, d);
    int axis = quant_weight_axis(r, &c);
    double work = 1;
    for (int i = 0; i < y.rank; i++)
        work *= y.dims[i].value >= 0 ? (double)y.dims[i].value : NAN;
    for (int i = 0; i < w.rank; i++)
        work *= i == axis ? 1 : w.dims[i].value >= 0 ? (double)w.dims[i].value : NAN;
    return work;
}

static void add_work(Graph *g, void *ctx) {
    Lone *l = ctx;
    FOR_NODES(n, g) {
        if (is_mac(n))
            l->all += l->work[n->id] = work_of(n, l->d->c->d);
    }
}

/* What has bodies is taken for one. */
static void find_behind(Graph *g, void *ctx) {
    Lone *l = ctx;
    FOR_NODES(n, g) {
        if (is_mac(n) || has_bodies(n) || any_marked(n->in, n->n_in, l->behind))
            mark_all(n->out, n->n_out, l->behind);
    }
}

static bool is_mover(const Decide *d, const Node *n) {
    return n->def && d->integer[n->id] && is_follower(n);
}

static void use_operands(const Node *n, bool *used) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(&n->def->quant, i))
            used[n->in[i]->id] = true;
}

static void find_used(Graph *g, void *ctx) {
    Lone *l = ctx;
    FOR_NODES(n, g) {
        if (l->d->integer[n->id] && (!is_follower(n) || g->owner))
            use_operands(n, l->used);
    }
}

/* Up the graph: what moves a value uses it where its own result is used. */
static void find_moved(Graph *g, void *ctx) {
    Lone *l = ctx;
    for (Node *n = g->last; n; n = n->prev)
        if (is_mover(l->d, n) && any_marked(n->out, n->n_out, l->used))
            use_operands(n, l->used);
}

static bool is_read_in_integers(const Decide *d, const Value *v) {
    const Use *use;
    size_t n = uses_of(d->uses, v, &use);
    for (size_t i = 0; i < n; i++)
        if (use[i].node && use[i].node->def && d->integer[use[i].node->id] &&
            quant_rule_is_data(&use[i].node->def->quant, use[i].index))
            return true;
    return false;
}

/* The same before it, of what was quantized for its sake alone. */
static void leave_before(Decide *d, const Value *v) {
    while (!is_read_in_integers(d, v)) {
        d->wanted[v->id] = false;
        if (!v->def || !is_mover(d, v->def))
            return;
        d->integer[v->def->id] = false;
        v = v->def->in[0];
    }
}

static bool is_lone(const Lone *l, const Node *n) {
    return l->d->integer[n->id] && !n->graph->owner && wants_result_alone(l->d, n) &&
           !l->used[n->out[0]->id] && !n->in[0]->type.quant && !l->behind[n->in[0]->id];
}

static void count_lone(Graph *g, void *ctx) {
    Lone *l = ctx;
    FOR_NODES(n, g) l->n += is_lone(l, n);
}

static void leave_lone(Graph *g, void *ctx) {
    Lone *l = ctx;
    Decide *d = l->d;
    FOR_NODES(n, g) {
        double left = l->left + l->work[n->id];
        if (!is_lone(l, n) || !(left <= SMALL * l->all)) /* either may be NaN */
            continue;
        l->left = left;
        d->integer[n->id] = false;
        d->wanted[n->out[0]->id] = false;
        leave_before(d, n->in[0]);
        pass_remark(d->c, n,
                    "nothing reads its result in integers (-placement=products makes it integer)");
    }
}

/* Down the graph: what moves them moves floats. */
static void leave_moved(Graph *g, void *ctx) {
    Decide *d = ctx;
    FOR_NODES(n, g) {
        if (!is_mover(d, n) || d->wanted[n->in[0]->id] || n->in[0]->type.quant)
            continue;
        d->integer[n->id] = false;
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i])
                d->wanted[n->out[i]->id] = false;
    }
}

void leave_lone_products(Decide *d) {
    Module *m = d->m;
    Lone l = {.d = d,
              .behind = NEW_ARRAY(m->arena, bool, d->n_values),
              .used = NEW_ARRAY(m->arena, bool, d->n_values),
              .work = NEW_ARRAY(m->arena, double, m->n_nodes)};
    module_each_graph(m, find_behind, &l);
    module_each_graph(m, find_used, &l);
    module_each_graph(m, find_moved, &l);
    module_each_graph(m, count_lone, &l);
    DataPaths data = pass_data(d->c);
    FixedShapes *shapes = l.n ? shapes_fix(m, &data, m->mute) : NULL;
    if (!shapes)
        return;
    module_each_graph(m, add_work, &l);
    shapes_undo(m, shapes);
    module_each_graph(m, leave_lone, &l);
    module_each_graph(m, leave_moved, d);
}
