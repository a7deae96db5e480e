/* Values between inputs and outputs: the worst of those that were measured, and what nodes state.
 */
#include "compiler/measured_parts.h"
#include "compiler/metadata.h"
#include "compiler/mixed_layers.h"
#include "passes/quantize/rules.h"

#include <math.h>

/* Into the list of the `most` worst ones, the worst first. */
static void insert(MeasuredValue *list, size_t *n, size_t most, MeasuredValue v) {
    size_t at = *n;
    while (at > 0 && v.sqnr < list[at - 1].sqnr)
        at--;
    if (at == most)
        return;
    *n += *n < most;
    memmove(&list[at + 1], &list[at], (*n - at - 1) * sizeof *list);
    list[at] = v;
}

void measured_worst(const Pairs *pairs, Module *m, Measured *out) {
    const Uses *uses = uses_new(m);
    for (uint32_t i = 0; i < pairs->n; i++) {
        const Pair *p = pairs->at[i];
        if (!p || !p->sums.count || p->sums.dd == 0 || is_cut_by_clamp(uses, p->is) ||
            (p->is->def && p->is->def->call))
            continue;
        MeasuredValue v = {p->is->name, error_sqnr(&p->sums)};
        if (!value_is_output(p->is))
            insert(out->worst, &out->n_worst, MEASURED_WORST, v);
        v.name = rule_name(p->is->def);
        if (layer_is(p->is->def))
            insert(out->layers, &out->n_layers, MEASURED_LAYERS, v);
    }
}

/* ---- what nodes state ---- */

static void state_none(Graph *g, void *ctx) {
    Module *m = ctx;
    FOR_NODES(n, g)
    metadata_set(m->arena, &n->meta, META_SQNR, STR_NONE);
}

void measured_state_none(Module *m) {
    module_each_graph(m, state_none, m);
}

static void put_sqnr(Buf *b, const ErrorSums *sums) {
    double sqnr = error_sqnr(sums);
    buf_text(b, b->n ? ", " : "");
    if (isinf(sqnr))
        buf_text(b, sqnr > 0 ? "equal" : "0 or not finite in one of both");
    else
        buf_fmt(b, "%.2f dB", sqnr);
}

/* What a node's result is judged by: itself, or the result of the Relu behind it, as what that cuts
 * off is lost on purpose, or of the conversion that took its name. */
static const Value *judged_by(const Pairs *pairs, const Uses *uses, const Value *y) {
    const Node *next = uses_only_node(uses, y);
    bool named = y->id < pairs->n && pairs->at[y->id];
    bool behind =
        is_cut_by_clamp(uses, y) || (!named && next && node_conversion(next) != CONVERT_NONE);
    return behind ? next->out[0] : y;
}

/* "38.52 dB", of several results one behind the other. */
void measured_state(const Pairs *pairs, Module *m) {
    const Uses *uses = uses_new(m);
    FOR_NODES(n, m->graph) {
        Buf b = buf_new(m->arena);
        for (size_t i = 0; i < n->n_out; i++) {
            const Value *y = n->out[i], *of = y ? judged_by(pairs, uses, y) : NULL;
            const Pair *p = of && of->id < pairs->n ? pairs->at[of->id] : NULL;
            if (!p || !p->sums.count)
                continue;
            put_sqnr(&b, &p->sums);
            if (of != y)
                buf_fmt(&b, " behind " STR_FMT, STR_ARG(of->def->op));
        }
        if (b.n)
            metadata_set(m->arena, &n->meta, META_SQNR, buf_as_str(&b));
    }
}
