/* -emit=dot: the graph for Graphviz. */
#include "compiler/report.h"

/* In a quoted label; names are anybody's. */
static void label(Buf *b, const char *text) {
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buf_byte(b, '\\');
        if (*text == '\n')
            buf_fmt(b, "\\n");
        else
            buf_byte(b, *text);
    }
}

static const char *colour(const char *kind) {
    return strcmp(kind, "integer") == 0 ? "#b7e1cd"
           : strcmp(kind, "float") == 0 ? "#f4c7c3"
                                        : "#dddddd";
}

typedef struct Dot {
    Buf b;
    const Job *j;
    Module *m;
    Uses *uses;
} Dot;

static void edge(Dot *d, const Value *v, const char *to, const Node *n) {
    if (!v || v->kind == VALUE_CONST)
        return;
    if (v->def)
        buf_fmt(&d->b, "  n%u -> ", v->def->id);
    else
        buf_fmt(&d->b, "  i%u -> ", v->id);
    if (n)
        buf_fmt(&d->b, "n%u", n->id);
    else
        buf_fmt(&d->b, "%s", to);
    buf_fmt(&d->b, " [label=\"");
    label(&d->b, type_text(d->m->arena, v->type));
    buf_fmt(&d->b, "\"];\n");
}

static void add_graph(Graph *g, void *ctx) {
    Dot *d = ctx;
    for (size_t i = 0; i < g->n_in; i++) {
        buf_fmt(&d->b, "  i%u [shape=ellipse, label=\"", g->in[i]->id);
        label(&d->b, diag_name(d->j->d, g->in[i]->name));
        buf_fmt(&d->b, "\"];\n");
    }
    FOR_NODES(n, g) {
        NodeReport r = report_node(d->j, n, d->uses);
        buf_fmt(&d->b, "  n%u [fillcolor=\"%s\", label=\"", n->id, colour(r.kind));
        label(&d->b, diag_name(d->j->d, n->op));
        if (n->name.n)
            buf_fmt(&d->b, "\\n");
        label(&d->b, n->name.n ? diag_name(d->j->d, n->name) : "");
        buf_fmt(&d->b, "\", tooltip=\"");
        label(&d->b, r.why ? r.why : r.kind);
        buf_fmt(&d->b, "\"];\n");
        for (size_t i = 0; i < n->n_in; i++)
            edge(d, n->in[i], NULL, n);
    }
    for (size_t i = 0; i < g->n_out && g == d->m->graph; i++) {
        Str to = arena_strf(d->m->arena, "o%zu", i);
        buf_fmt(&d->b, "  %s [shape=ellipse, label=\"", to.s);
        label(&d->b, diag_name(d->j->d, g->out[i]->name));
        buf_fmt(&d->b, "\"];\n");
        edge(d, g->out[i], to.s, NULL);
    }
}

Str dot_text(const Job *j, Module *m) {
    Dot d = {buf_new(m->arena), j, m, uses_new(m)};
    buf_fmt(&d.b, "// green: integer, red: float, grey: conversion\n"
                  "digraph model {\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n"
                  "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    module_each_graph(m, add_graph, &d);
    buf_fmt(&d.b, "}\n");
    return buf_as_str(&d.b);
}
