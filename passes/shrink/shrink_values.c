/* Shrinks that leave the nodes as they are and take from what is written about them. */
#include "passes/shrink/shrink.h"

/* ---- notes ---- */

static void notes_of_value(Value *v, void *ctx) {
    Places *places = ctx;
    if ((v->doc.n || v->meta.n || v->extra.n || v->from.n) && place_take(places)) {
        v->doc = v->extra = STR_NONE;
        v->meta = (Meta){0};
        v->from = (Provenance){0};
    }
    if (v->stat && place_take(places))
        v->stat = NULL;
}

static void notes_of_graph(Graph *g, void *ctx) {
    Places *places = ctx;
    if ((g->doc.n || g->meta.n || g->extra.n) && place_take(places)) {
        g->doc = g->extra = STR_NONE;
        g->meta = (Meta){0};
    }
    FOR_NODES(n, g) {
        if ((n->doc.n || n->meta.n || n->extra.n || n->from.n) && place_take(places)) {
            n->doc = n->extra = STR_NONE;
            n->meta = (Meta){0};
            n->from = (Provenance){0};
        }
        if (n->name.n && place_take(places))
            n->name = STR_NONE;
    }
}

void shrink_notes(Module *m, Places *places) {
    if ((m->doc.n || m->meta.n || m->extra.n || m->domain.n || m->producer_name.n ||
         m->producer_version.n) &&
        place_take(places)) {
        m->doc = m->extra = m->domain = m->producer_name = m->producer_version = STR_NONE;
        m->meta = (Meta){0};
        m->has_model_version = false;
    }
    if (m->scheme.n && place_take(places))
        m->scheme = STR_NONE;
    if (m->n_quants && place_take(places))
        m->n_quants = 0; /* those in use are printed all the same */
    module_each_graph(m, notes_of_graph, places);
    module_each_value(m, notes_of_value, places);
}

/* ---- quantization ---- */

/* `float ~ q` becomes float; parameters for each channel or block become the first of them. */
static void plainer_quant(Value *v, void *ctx) {
    Places *places = ctx;
    const Quant *q = v->type.quant;
    if (v->type.kind != TYPE_TENSOR || !q)
        return;
    if (v->type.tilde && place_take(places)) {
        v->type.quant = NULL;
        v->type.tilde = false;
    } else if (q->kind == QUANT_PARAMS && q->n_axes && place_take(places)) {
        Arena *a = v->graph->module->arena;
        Quant *one = quant_copy(a, q);
        one->n_axes = 0;
        one->n_scale = 1;
        one->n_zp = q->n_zp ? 1 : 0;
        one->alias = STR_NONE;
        v->type.quant = one;
    }
}

void shrink_quants(Module *m, Places *places) {
    module_each_value(m, plainer_quant, places);
}

/* ---- attributes and operands ---- */

static void attributes_of_graph(Graph *g, void *ctx) {
    Places *places = ctx;
    FOR_NODES(n, g) {
        size_t kept = 0;
        for (size_t i = 0; i < n->n_attrs; i++) {
            if (attr_graphs(&n->attrs[i]) || !place_take(places))
                n->attrs[kept++] = n->attrs[i];
        }
        n->n_attrs = kept;
    }
}

void shrink_attributes(Module *m, Places *places) {
    module_each_graph(m, attributes_of_graph, places);
}

static void operands_of_graph(Graph *g, void *ctx) {
    Places *places = ctx;
    FOR_NODES(n, g) {
        for (size_t i = 1; i < n->n_in; i++)
            if (n->in[i] && place_take(places))
                n->in[i] = NULL;
        while (n->n_in > 1 && !n->in[n->n_in - 1])
            n->n_in--;
    }
}

void shrink_operands(Module *m, Places *places) {
    uint32_t *before = shrink_uses(m);
    module_each_graph(m, operands_of_graph, places);
    shrink_sweep(m, before, false);
}

/* ---- constants ---- */

void shrink_constants(Module *m, Places *places) {
    Graph *g = m->graph;
    UniqueNames *names = unique_names_new(m);
    size_t kept = 0;
    for (size_t i = 0; i < g->n_consts; i++) {
        if (place_take(places))
            shrink_make_input(m, g->consts[i], names);
        else
            g->consts[kept++] = g->consts[i];
    }
    g->n_consts = kept;
    g->extra = STR_NONE; /* it names initializers */
}

static bool has_numbers(const Tensor *t) {
    for (size_t i = 0; t && t->data && i < t->bytes; i++)
        if (t->data[i])
            return true;
    return false;
}

static void zeros_of_graph(Graph *g, void *ctx) {
    Places *places = ctx;
    Arena *a = g->module->arena;
    uint8_t *bytes;
    for (size_t i = 0; i < g->n_consts; i++) {
        const Tensor *t = g->consts[i]->data;
        if (has_numbers(t) && place_take(places))
            g->consts[i]->data = tensor_new(a, t->elem, t->rank, t->dims, &bytes);
    }
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_attrs; i++) {
        Attr *at = &n->attrs[i];
        if (!attr_holds(at, ATTR_TENSOR) || !has_numbers(at->v.t[0]) || !place_take(places))
            continue;
        Tensor **zero = NEW(a, Tensor *);
        *zero = tensor_new(a, at->v.t[0]->elem, at->v.t[0]->rank, at->v.t[0]->dims, &bytes);
        at->v.t = zero;
    }
}

void shrink_zeros(Module *m, Places *places) {
    module_each_graph(m, zeros_of_graph, places);
}
