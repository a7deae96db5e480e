/* See passes/quantize/placement.h: what stands between integers. Two rules: a node joins where all
 * that it reads is there in integers and what it yields is read so, or is less; and a value gets a
 * quantizer of its own where that spares several other conversions. */
#include "passes/edit.h"
#include "passes/quantize/placement.h"

/* Whether all that it reads is there in integers, be it that it is one of a chain of such nodes. */
static bool comes_in_integers(const Decide *d, const Node *n, const bool *comes) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(&n->def->quant, i) && n->in[i]->kind != VALUE_CONST &&
            !d->wanted[n->in[i]->id] && !comes[n->in[i]->id])
            return false;
    return true;
}

static bool can_join(const Decide *d, const Node *n) {
    return d->between[n->id] ||
           (n->def && is_follower(n) && !d->integer[n->id] && !why_float(d, n));
}

/* Fewer numbers come out than go in, so that they are better converted behind it. */
static bool gives_fewer(const Node *n) {
    const Type x = n->in[0]->type, y = n->out[0]->type;
    bool any = false, all = x.rank == y.rank;
    for (int i = 0; all && i < x.rank; i++) {
        bool less = y.dims[i].value >= 0 && y.dims[i].value < x.dims[i].value;
        any = any || less;
        all = less || dim_equal(x.dims[i], y.dims[i]);
    }
    return any && all;
}

static bool gives_integers(const Decide *d, const Node *n, const bool *read) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && (d->wanted[n->out[i]->id] || read[n->out[i]->id]))
            return true;
    return d->between[n->id] && n->in[0] && n->out[0] && gives_fewer(n);
}

static void find_coming(const Decide *d, Graph *g, bool *comes) {
    FOR_NODES(n, g) {
        bool all = can_join(d, n) && comes_in_integers(d, n, comes);
        for (size_t i = 0; all && i < n->n_out; i++)
            if (n->out[i])
                comes[n->out[i]->id] = true;
    }
}

/* The conversions of a node in float that integers would spare, were `v` among them: before another
 * operand and behind the result. 0: it would be float all the same. */
static size_t conversions_spared(const Decide *d, const Node *n, const Value *v,
                                 const bool *comes) {
    if (!n || !d->between[n->id] || n->n_out != 1 || !n->out[0] || !d->wanted[n->out[0]->id] ||
        !comes_in_integers(d, n, comes))
        return 0;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i] != v && n->in[i]->kind != VALUE_CONST &&
            quant_rule_is_data(&n->def->quant, i))
            return 2;
    return 1;
}

/* Whether one quantizer, on `v`, spares several conversions: all that reads it would be integer. */
static bool spares_several(const Decide *d, const Value *v, bool *comes) {
    const Use *use;
    size_t n = uses_of(d->uses, v, &use), spared = 0;
    bool all = n > 0;
    comes[v->id] = true;
    for (size_t i = 0; all && i < n; i++) {
        size_t here = conversions_spared(d, use[i].node, v, comes);
        all = here > 0;
        spared += i && use[i].node == use[i - 1].node ? 0 : here;
    }
    comes[v->id] = all && spared > 1;
    return comes[v->id];
}

static void want_sparing(const Decide *d, Graph *g, bool *comes) {
    FOR_NODES(n, g) {
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i] && type_real_elem(n->out[i]->type) == ELEM_FLOAT &&
                !d->wanted[n->out[i]->id] && !comes[n->out[i]->id] &&
                spares_several(d, n->out[i], comes))
                d->wanted[n->out[i]->id] = true;
    }
}

/* Down the graph for what comes in integers, up again for what is read so. */
void join_between(Graph *g, void *ctx) {
    Decide *d = ctx;
    bool *comes = NEW_ARRAY(d->m->arena, bool, d->n_values);
    bool *read = NEW_ARRAY(d->m->arena, bool, d->n_values);
    find_coming(d, g, comes);
    want_sparing(d, g, comes);
    find_coming(d, g, comes);
    for (Node *n = g->last; n; n = n->prev) {
        if (!can_join(d, n) || !comes_in_integers(d, n, comes) || !gives_integers(d, n, read))
            continue;
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i] && quant_rule_is_data(&n->def->quant, i))
                read[n->in[i]->id] = true;
        d->integer[n->id] = d->between[n->id];
    }
}
