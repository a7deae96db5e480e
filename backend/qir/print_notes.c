/* What is noted about the values of a body: statistics, origins, how ONNX spelled them, metadata.
 */
#include "backend/qir/print.h"

/* ---- statistics ---- */

static void print_row(Printer *p, const Stat *s, const char *key, const float *row, bool *first) {
    if (!row)
        return;
    buf_text(&p->b, *first ? "" : ", ");
    buf_text(&p->b, key);
    buf_byte(&p->b, '=');
    *first = false;
    bool list = s->has_axis || s->n != 1;
    if (list)
        buf_byte(&p->b, '[');
    for (size_t i = 0; i < s->n; i++) {
        if (i)
            buf_text(&p->b, ", ");
        buf_f32(&p->b, row[i]);
    }
    if (list)
        buf_byte(&p->b, ']');
}

static bool says_anything(const Stat *s) {
    return s && (s->has_axis || s->min || s->max || s->avg || s->std || s->count || s->n_attrs);
}

void print_stat_fields(Printer *p, const Stat *s) {
    bool first = true;
    if (s->has_axis) {
        buf_fmt(&p->b, "axis=%d", s->axis);
        first = false;
    }
    print_row(p, s, "min", s->min, &first);
    print_row(p, s, "max", s->max, &first);
    print_row(p, s, "avg", s->avg, &first);
    print_row(p, s, "std", s->std, &first);
    if (s->count) {
        buf_text(&p->b, first ? "count=" : ", count=");
        buf_i64(&p->b, s->count);
        first = false;
    }
    p->in_line = true; /* the statement wraps as a whole */
    for (size_t i = 0; i < s->n_attrs; i++) {
        buf_text(&p->b, first && i == 0 ? "" : ", ");
        print_attr(p, &s->attrs[i]);
    }
    p->in_line = false;
}

static bool print_stat(Printer *p, const Value *v, bool blank_before) {
    if (!v || !says_anything(v->stat))
        return blank_before;
    if (blank_before)
        buf_byte(&p->b, '\n');
    size_t begin = print_place(p);
    print_indent(p);
    buf_text(&p->b, "stat ");
    name_print(&p->b, '%', v->name);
    buf_text(&p->b, " <");
    print_stat_fields(p, v->stat);
    buf_byte(&p->b, '>');
    end_wrapped(p, begin);
    return false;
}

static void print_stats(Printer *p, const Graph *g) {
    bool blank = g->first || g->n_consts;
    for (size_t i = 0; i < g->n_in; i++)
        blank = print_stat(p, g->in[i], blank);
    for (size_t i = 0; i < g->n_consts; i++)
        blank = print_stat(p, g->consts[i], blank);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        blank = print_stat(p, n->out[i], blank);
}

/* ---- how ONNX spelled quantizations ---- */

static bool print_spelling(Printer *p, const Value *v, bool blank) {
    for (const Node *n = v ? v->onnx : NULL; n; n = n->next) {
        buf_text(&p->b, blank ? "\n" : "");
        blank = false;
        size_t begin = print_place(p);
        print_indent(p);
        buf_text(&p->b, "onnx ");
        name_print(&p->b, '%', v->name);
        buf_text(&p->b, " = ");
        print_op(p, n->domain, n->op, n->overload);
        p->in_line = true; /* the statement wraps as a whole */
        print_attrs(p, n->attrs, n->n_attrs);
        p->in_line = false;
        print_string_clause(p, "name", n->name);
        print_string_clause(p, "doc", n->doc);
        print_meta_clause(p, n->meta);
        print_extra_clause(p, n->extra);
        print_from_clause(p, n->from);
        end_wrapped(p, begin);
    }
    return blank;
}

static void print_spellings(Printer *p, const Graph *g) {
    bool blank = true;
    if (g->initializers) {
        buf_text(&p->b, "\n");
        size_t begin = print_place(p);
        print_indent(p);
        buf_text(&p->b, "onnx const (");
        for (size_t i = 0; i < g->n_initializers; i++) {
            buf_text(&p->b, i ? ", " : "");
            buf_quoted(&p->b, g->initializers[i]);
        }
        buf_byte(&p->b, ')');
        end_wrapped(p, begin);
        blank = false;
    }
    for (size_t i = 0; i < g->n_in; i++)
        blank = print_spelling(p, g->in[i], blank);
    for (size_t i = 0; i < g->n_consts; i++)
        blank = print_spelling(p, g->consts[i], blank);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        blank = print_spelling(p, n->out[i], blank);
}

/* ---- what nodes and constants were made from ---- */

const Value *node_key(const Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            return n->out[i];
    return NULL;
}

/* Whether what was printed from `begin` on is longer; it is gone then. */
static bool was_longer(Printer *p, size_t begin, size_t than) {
    bool is = p->b.n - begin > than;
    p->b.n = begin;
    return is;
}

static bool is_long(Printer *p, Provenance from) {
    size_t begin = p->b.n;
    print_from_clause(p, from);
    return was_longer(p, begin, LONG_FROM);
}

/* A line of its own names a result. */
static bool node_from_is_aside(Printer *p, const Node *n) {
    return node_key(n) && is_long(p, n->from);
}

static bool const_from_is_aside(Printer *p, const Value *v) {
    return v->from.n && (!print_is_short(v, FEWER) || is_long(p, v->from));
}

void print_node_from(Printer *p, const Node *n) {
    if (!p->options.plain && !node_from_is_aside(p, n))
        print_from_clause(p, n->from);
}

void print_const_from(Printer *p, const Value *v) {
    if (!p->options.plain && !const_from_is_aside(p, v))
        print_from_clause(p, v->from);
}

static bool print_from_line(Printer *p, const Value *v, Provenance from, bool blank) {
    buf_text(&p->b, blank ? "\n" : "");
    size_t begin = print_place(p);
    print_indent(p);
    buf_text(&p->b, "from ");
    name_print(&p->b, '%', v->name);
    buf_byte(&p->b, ' ');
    print_origins(p, from);
    end_wrapped(p, begin);
    return false;
}

static void print_origins_aside(Printer *p, const Graph *g) {
    bool blank = true;
    FOR_NODES(n, g)
    if (node_from_is_aside(p, n))
        blank = print_from_line(p, node_key(n), n->from, blank);
    for (size_t i = 0; i < g->n_consts; i++)
        if (const_from_is_aside(p, g->consts[i]))
            blank = print_from_line(p, g->consts[i], g->consts[i]->from, blank);
}

/* ---- long metadata ---- */

static bool meta_is_aside(Printer *p, Meta meta) {
    size_t begin = p->b.n;
    print_meta_clause(p, meta);
    return was_longer(p, begin, LONG_META);
}

void print_short_meta(Printer *p, Meta meta) {
    if (!meta_is_aside(p, meta))
        print_meta_clause(p, meta);
}

void print_node_meta(Printer *p, const Node *n) {
    if (node_key(n))
        print_short_meta(p, n->meta);
    else
        print_meta_clause(p, n->meta);
}

/* Of the graph where there is no value. */
static bool print_meta_line(Printer *p, const Value *v, Meta meta, bool blank) {
    if (!meta_is_aside(p, meta))
        return blank;
    buf_text(&p->b, blank ? "\n" : "");
    size_t begin = print_place(p);
    print_indent(p);
    buf_text(&p->b, "meta ");
    if (v) {
        name_print(&p->b, '%', v->name);
        buf_byte(&p->b, ' ');
    }
    print_meta_fields(p, meta);
    end_wrapped(p, begin);
    return false;
}

static void print_meta_aside(Printer *p, const Graph *g, Meta own) {
    bool blank = print_meta_line(p, NULL, own, true);
    for (size_t i = 0; i < g->n_in; i++)
        blank = print_meta_line(p, g->in[i], g->in[i]->meta, blank);
    FOR_NODES(n, g)
    if (node_key(n))
        blank = print_meta_line(p, node_key(n), n->meta, blank);
}

void print_notes(Printer *p, const Graph *g, Meta own) {
    if (p->options.plain)
        return;
    print_stats(p, g);
    print_origins_aside(p, g);
    print_spellings(p, g);
    print_meta_aside(p, g, own);
}
