/* Graphs and functions, line by line. */
#include "backend/qir/print.h"

#include <assert.h>

/* Types of node outputs count as stated in the model, unless the graph says `inferred`: it does
 * when that holds for most. Results and inputs always count as stated; exceptions say so. */
static bool mostly_inferred(const Printer *p, const Graph *g) {
    size_t inferred = 0, stated = 0;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++) {
        const Value *v = n->out[i];
        if (!v || v->type.kind == TYPE_NONE || p->results[v->id])
            continue;
        inferred += !v->declared;
        stated += v->declared;
    }
    return inferred > stated;
}

static void mark(const Printer *p, Loc at, size_t begin) {
    if (p->options.mark)
        p->options.mark(p->options.mark_ctx, at, begin, p->b.n);
}

static void print_value(Printer *p, const Value *v, bool inferred) {
    size_t begin = p->b.n;
    name_print(&p->b, '%', v->name);
    if (v->kind != VALUE_NODE)
        mark(p, v->loc, begin);
    if (v->type.kind != TYPE_NONE || v->type.denotation.s) {
        buf_text(&p->b, " : ");
        print_type_named(p, v->type);
    }
    bool expected = v->type.kind != TYPE_NONE && v->kind != VALUE_CONST &&
                    (v->kind == VALUE_INPUT || !inferred || p->results[v->id]);
    if (v->declared != expected || v->stated)
        buf_text(&p->b, v->declared ? " stated" : " inferred");
    if (v->stated) {
        buf_byte(&p->b, '(');
        type_print(&p->b, *v->stated);
        buf_byte(&p->b, ')');
    }
    print_string_clause(p, "doc", v->doc);
    print_meta_clause(p, v->meta);
    print_extra_clause(p, v->extra);
    if (v->kind != VALUE_CONST)
        print_from_clause(p, v->from);
}

static bool has_default(const Value *v) {
    return v->data || v->sparse;
}

static void print_signature(Printer *p, const Graph *g) {
    buf_text(&p->b, " (");
    for (size_t i = 0; i < g->n_in; i++) {
        if (i)
            buf_text(&p->b, ", ");
        print_value(p, g->in[i], false);
        if (has_default(g->in[i]))
            buf_text(&p->b, " = const");
    }
    buf_text(&p->b, ") -> (");
    for (size_t i = 0; i < g->n_out; i++) {
        if (i)
            buf_text(&p->b, ", ");
        name_print(&p->b, '%', g->out[i]->name);
    }
    buf_byte(&p->b, ')');
}

/* The type stands where it is an input, unless that leaves the shape open. */
static void print_default_name(Printer *p, const Value *v) {
    name_print(&p->b, '%', v->name);
    bool follows = v->data ? tensor_follows(v->data, v->type) : sparse_follows(v->sparse, v->type);
    if (follows)
        return;
    buf_text(&p->b, " : ");
    type_print(&p->b, v->data ? tensor_type(p->arena, v->data) : sparse_type(p->arena, v->sparse));
}

static void print_const(Printer *p, const Value *v) {
    print_indent(p);
    buf_text(&p->b, "const ");
    if (v->kind == VALUE_CONST)
        print_value(p, v, false);
    else
        print_default_name(p, v);
    buf_text(&p->b, " = ");
    if (v->sparse) {
        print_sparse_data(p, v->sparse, v->name);
        print_extra_clause(p, v->sparse->extra);
    } else {
        assert(v->data);
        print_tensor_data(p, v->data, v->name);
        print_tensor_clauses(p, v->data);
    }
    if (v->kind == VALUE_CONST)
        print_from_clause(p, v->from);
    buf_byte(&p->b, '\n');
    print_flush(p);
}

static void print_outputs(Printer *p, const Node *n, bool inferred) {
    if (!n->n_out)
        buf_text(&p->b, "()");
    for (size_t i = 0; i < n->n_out; i++) {
        if (i)
            buf_text(&p->b, ", ");
        if (n->out[i])
            print_value(p, n->out[i], inferred);
        else
            buf_byte(&p->b, '_');
    }
}

static void print_node(Printer *p, const Node *n, bool inferred) {
    print_indent(p);
    print_outputs(p, n, inferred);
    buf_text(&p->b, " = ");
    size_t begin = p->b.n;
    print_op(p, n->domain, n->op, n->overload);
    mark(p, n->loc, begin);
    buf_byte(&p->b, '(');
    for (size_t i = 0; i < n->n_in; i++) {
        if (i)
            buf_text(&p->b, ", ");
        if (n->in[i])
            name_print(&p->b, '%', n->in[i]->name);
        else
            buf_byte(&p->b, '_');
    }
    buf_byte(&p->b, ')');
    print_attrs(p, n->attrs, n->n_attrs);
    print_string_clause(p, "name", n->name);
    print_string_clause(p, "doc", n->doc);
    print_meta_clause(p, n->meta);
    print_extra_clause(p, n->extra);
    print_from_clause(p, n->from);
    buf_byte(&p->b, '\n');
    print_flush(p);
}

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
    for (size_t i = 0; i < s->n_attrs; i++) {
        buf_text(&p->b, first && i == 0 ? "" : ", ");
        print_attr(p, &s->attrs[i]);
    }
}

static bool print_stat(Printer *p, const Value *v, bool blank_before) {
    if (!v || !says_anything(v->stat))
        return blank_before;
    if (blank_before)
        buf_byte(&p->b, '\n');
    print_indent(p);
    buf_text(&p->b, "stat ");
    name_print(&p->b, '%', v->name);
    buf_text(&p->b, " <");
    print_stat_fields(p, v->stat);
    buf_text(&p->b, ">\n");
    print_flush(p);
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
        print_indent(p);
        buf_text(&p->b, "onnx ");
        name_print(&p->b, '%', v->name);
        buf_text(&p->b, " = ");
        print_op(p, n->domain, n->op, n->overload);
        print_attrs(p, n->attrs, n->n_attrs);
        print_string_clause(p, "name", n->name);
        print_string_clause(p, "doc", n->doc);
        print_meta_clause(p, n->meta);
        print_extra_clause(p, n->extra);
        print_from_clause(p, n->from);
        buf_byte(&p->b, '\n');
        print_flush(p);
    }
    return blank;
}

static void print_spellings(Printer *p, const Graph *g) {
    bool blank = true;
    if (g->initializers) {
        buf_text(&p->b, "\n");
        print_indent(p);
        buf_text(&p->b, "onnx const (");
        for (size_t i = 0; i < g->n_initializers; i++) {
            buf_text(&p->b, i ? ", " : "");
            buf_quoted(&p->b, g->initializers[i]);
        }
        buf_text(&p->b, ")\n");
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

/* ---- bodies ---- */

/* A constant whose type names results of this graph's nodes (acc<%x, %w>): its line has to come
 * after theirs. */
typedef struct Late {
    const Value *value;
    int awaited; /* how many of the results are still to come */
} Late;

typedef struct Waiting { /* for one node */
    Late *late;
    struct Waiting *next;
} Waiting;

static const Node *awaited_node(const Value *v, int i) {
    const Quant *q = v->type.kind == TYPE_TENSOR ? v->type.quant : NULL;
    const Value *x = q && q->kind == QUANT_ACC ? q->acc_value[i] : NULL;
    return x && x->graph == v->graph ? x->def : NULL;
}

/* Prints the constants that wait for nothing. The others, by the nodes that they wait for: Waiting,
 * by address; NULL where there are none. */
static Map *print_constants(Printer *p, const Graph *g) {
    Map *waiting = NULL;
    for (size_t i = 0; i < g->n_consts; i++)
        if (!awaited_node(g->consts[i], 0) && !awaited_node(g->consts[i], 1))
            print_const(p, g->consts[i]);
        else
            waiting = waiting ? waiting : map_new(p->arena);
    for (size_t i = waiting ? g->n_consts : 0; i-- > 0;) { /* so the first is on top */
        Late *late = NEW(p->arena, Late);
        late->value = g->consts[i];
        for (int k = 0; k < 2; k++) {
            const Node *n = awaited_node(late->value, k);
            if (!n)
                continue;
            Waiting w = {late, map_get(waiting, (Str){(const char *)&n, sizeof n})};
            map_set(waiting, address_key(p, n), arena_copy(p->arena, &w, sizeof w));
            late->awaited++;
        }
    }
    return waiting;
}

static void print_late_constants(Printer *p, const Map *waiting, const Node *n) {
    for (const Waiting *w = map_get(waiting, (Str){(const char *)&n, sizeof n}); w; w = w->next)
        if (--w->late->awaited == 0)
            print_const(p, w->late->value);
}

static void print_body(Printer *p, const Graph *g, bool inferred) {
    bool consts = false;
    for (size_t i = 0; i < g->n_in; i++)
        if (has_default(g->in[i])) {
            print_const(p, g->in[i]);
            consts = true;
        }
    Map *waiting = print_constants(p, g);
    if (g->first && (consts || g->n_consts))
        buf_byte(&p->b, '\n');
    FOR_NODES(n, g) {
        print_node(p, n, inferred);
        if (waiting)
            print_late_constants(p, waiting, n);
    }
    print_stats(p, g);
    print_spellings(p, g);
}

static void mark_results(Printer *p, const Graph *g) {
    for (size_t i = 0; i < g->n_out; i++)
        if (g->out[i]->graph == g)
            p->results[g->out[i]->id] = true;
}

static void print_braced(Printer *p, const Graph *g, const Function *f, bool inferred) {
    if (inferred)
        buf_text(&p->b, " inferred");
    buf_text(&p->b, " {\n");
    p->indent++;
    for (size_t i = 0; f && i < f->n_imports; i++) {
        print_indent(p);
        print_import(p, f->imports[i]);
    }
    print_body(p, g, inferred);
    p->indent--;
    print_indent(p);
    buf_byte(&p->b, '}');
}

void print_graph(Printer *p, const Graph *g) {
    mark_results(p, g);
    buf_text(&p->b, "graph ");
    if (g->name.s)
        name_print(&p->b, '@', g->name);
    else
        buf_byte(&p->b, '_');
    print_signature(p, g);
    print_string_clause(p, "doc", g->doc);
    print_meta_clause(p, g->meta);
    print_extra_clause(p, g->extra);
    print_braced(p, g, NULL, mostly_inferred(p, g));
}

static void print_formals(Printer *p, const Function *f) {
    if (!f->n_attrs) {
        print_attrs(p, f->defaults, f->n_defaults);
        return;
    }
    Attr *all = NEW_ARRAY(p->arena, Attr, f->n_attrs + f->n_defaults);
    for (size_t i = 0; i < f->n_attrs; i++)
        all[i].name = f->attrs[i];
    if (f->n_defaults)
        memcpy(all + f->n_attrs, f->defaults, f->n_defaults * sizeof *all);
    print_attrs(p, all, f->n_attrs + f->n_defaults);
}

void print_function(Printer *p, const Function *f) {
    const Graph *g = f->body;
    mark_results(p, g);
    buf_text(&p->b, "func ");
    size_t begin = p->b.n;
    print_op(p, f->domain, f->name, f->overload);
    mark(p, f->loc, begin);
    print_formals(p, f);
    print_signature(p, g);
    print_string_clause(p, "doc", f->doc);
    print_meta_clause(p, f->meta);
    print_extra_clause(p, f->extra);
    print_braced(p, g, f, mostly_inferred(p, g));
    buf_text(&p->b, "\n\n");
}
