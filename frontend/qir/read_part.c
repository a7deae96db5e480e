/* See frontend/qir/qir_parts.h. A part is read as the only line of a small file. */
#include "frontend/qir/qir_parts.h"
#include "frontend/qir/reader.h"

struct QirParts {
    Arena *arena;
    Diags *diags; /* nobody reads them */
    Reader *reader;
    void *parser;
};

QirParts *qir_parts_new(Arena *a, const char *dir, bool wide_zp) {
    QirParts *p = NEW(a, QirParts);
    p->arena = a;
    p->diags = diags_new(a, NULL, false);
    QirReadOptions options = {.in.dir = dir, .wide_zp = wide_zp};
    p->reader = reader_new(a, p->diags, "metadata", STR(""), &options);
    p->parser = arena_alloc(a, qir_parser_size());
    return p;
}

/* The module that the text states; NULL where anything is wrong. Stacks are kept, all else is new.
 */
static const Module *read_module(QirParts *p, Str text) {
    Reader *r = p->reader;
    int errors = diags_errors(p->diags);
    reader_reset(r, text);
    parse_with(r, p->parser);
    return diags_errors(p->diags) == errors && !r->frame ? r->module : NULL;
}

static const Graph *read_graph(QirParts *p, Str text) {
    const Module *m = read_module(p, text);
    return m ? m->graph : NULL;
}

/* What was printed has no line breaks. */
static bool is_one_line(Str text) {
    return text.n && !memchr(text.s, 0, text.n) && !memchr(text.s, '\n', text.n);
}

Stat *qir_part_stat(QirParts *p, Str text) {
    if (!is_one_line(text))
        return NULL;
    Str file = arena_strf(p->arena, "qir 1\ngraph (%%v) -> () {\nstat %%v <" STR_FMT ">\n}\n",
                          STR_ARG(text));
    const Graph *g = read_graph(p, file);
    return g && g->n_in == 1 ? g->in[0]->stat : NULL;
}

bool qir_part_from(QirParts *p, Str text, Provenance *from) {
    if (!is_one_line(text))
        return false;
    Str file =
        arena_strf(p->arena, "qir 1\ngraph () -> () {\n() = x() " STR_FMT "\n}\n", STR_ARG(text));
    const Graph *g = read_graph(p, file);
    if (!g || !g->first || g->first != g->last)
        return false;
    *from = g->first->from;
    return from->n > 0;
}

Quant *qir_part_quant(QirParts *p, Str text) {
    bool named = text.n && text.s[0] == '!';
    if (!is_one_line(text))
        return NULL;
    Str file = arena_strf(p->arena, "qir 1\nquant %s" STR_FMT "\ngraph () -> () {\n}\n",
                          named ? "" : "!q = ", STR_ARG(text));
    const Module *m = read_module(p, file);
    if (!m || m->n_quants != 1 || p->reader->due_params) /* data(N) */
        return NULL;
    Quant *q = (Quant *)m->quants[0]; /* made for this line alone */
    if (!named)
        q->alias = STR_NONE;
    return q;
}
