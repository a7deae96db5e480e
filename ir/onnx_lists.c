/* See ir/onnx_lists.h. */
#include "ir/onnx_lists.h"

static bool belongs(const Value *v, OnnxList which) {
    switch (which) {
    case LIST_INITIALIZERS: return v->data != NULL;
    case LIST_SPARSE_INITIALIZERS: return v->sparse != NULL;
    case LIST_VALUE_INFOS: {
        const Function *f = v->graph->function;
        return v->kind != VALUE_INPUT || (f && f->body == v->graph);
    }
    }
    return false;
}

static void add(Arena *a, ValueList *l, OnnxList which, Value *v) {
    if (v && belongs(v, which))
        ARENA_PUSH(a, l->items, l->n, l->cap, v);
}

ValueList onnx_list(Arena *a, const Graph *g, OnnxList which) {
    ValueList l = {0};
    for (size_t i = 0; i < g->n_in; i++)
        add(a, &l, which, g->in[i]);
    for (size_t i = 0; i < g->n_consts; i++)
        add(a, &l, which, g->consts[i]);
    for (const Node *n = g->first; n && which == LIST_VALUE_INFOS; n = n->next)
        for (size_t i = 0; i < n->n_out; i++)
            add(a, &l, which, n->out[i]);
    return l;
}
