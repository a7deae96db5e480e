/* See compiler/left_out.h. */
#include "compiler/left_out.h"

WhyLeftOut column_left_out(const Column *c, const Arrangement *as) {
    return c->varies                                        ? VARIES
           : c->n < as->seen.n || c->elem == ELEM_UNDEFINED ? LACKS_SAMPLES
           : column_counts_samples(c, as)                   ? COUNTS_SAMPLES
                                                            : NOT_LEFT_OUT;
}

/* Of functions it is what calls them that counts. */
static bool is_of_function(const Graph *g) {
    while (g->owner)
        g = g->owner->graph;
    return g != g->module->graph;
}

static void note_results(Graph *g, void *ctx) {
    if (is_of_function(g))
        return;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && n->out[i]->name.n)
            map_set(ctx, n->out[i]->name, n->out[i]);
}

ValuesLeftOut values_of_file(Module *m, bool all) {
    ValuesLeftOut l = {.arena = m->arena, .own = all ? map_new(m->arena) : NULL};
    if (all)
        module_each_graph(m, note_results, l.own);
    return l;
}

void values_leave_out(ValuesLeftOut *l, Str name, WhyLeftOut why) {
    if (l->n[why]++ == 0)
        l->first[why] = name;
}

static const char *const reasons[N_WHYS_LEFT_OUT] = {
    [LACKS_SAMPLES] = "not every sample computes them (without -o they are printed where they are)",
    [COUNTS_SAMPLES] = "they follow from how many samples run together, and samples run one by one "
                       "(-batch=none: together)",
    [VARIES] = "samples have them in other shapes (without -o they are printed as they are)",
    [NOT_THERE] = "the run does not have them (computed ahead, in a body, or in another form)"};

void values_tell_left_out(ValuesLeftOut *l, const Column *cols, size_t n, Diags *d) {
    Map *there = map_new(l->arena);
    for (size_t i = 0; i < n; i++)
        map_set(there, cols[i].name, (void *)&cols[i]);
    for (size_t i = 0; l->own && i < map_size(l->own); i++)
        if (!map_get(there, map_key(l->own, i)))
            values_leave_out(l, map_key(l->own, i), NOT_THERE);
    for (WhyLeftOut why = 0; why < N_WHYS_LEFT_OUT; why++)
        if (l->n[why])
            diag(d, DIAG_REMARK, LOC_NONE, "values not reported, as %s: '%s'%s", reasons[why],
                 diag_name(d, l->first[why]), arena_others(l->arena, " and ", l->n[why] - 1, ""));
}
