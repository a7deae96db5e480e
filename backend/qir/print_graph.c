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
    if (v->kind == VALUE_INPUT)
        print_short_meta(p, v->meta);
    else
        print_meta_clause(p, v->meta);
    print_extra_clause(p, v->extra);
    if (v->kind != VALUE_CONST && !p->options.plain)
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
    size_t begin = print_place(p);
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
        print_const_from(p, v);
    end_wrapped(p, begin);
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
    p->in_line = true;
    print_attrs(p, n->attrs, n->n_attrs);
    p->in_line = false;
    print_string_clause(p, "name", n->name);
    print_string_clause(p, "doc", n->doc);
    print_node_meta(p, n);
    print_extra_clause(p, n->extra);
    print_node_from(p, n);
    buf_byte(&p->b, '\n');
    print_flush(p);
}

/* ---- bodies ---- */

/* Constants whose names a result's type holds (acc<%x, %w>) stand in front of it. */
static Map *named_by_results(Printer *p, const Graph *g) {
    Map *named = NULL;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++) {
        const Quant *q = n->out[i] ? n->out[i]->type.quant : NULL;
        for (int k = 0; q && q->kind == QUANT_ACC && k < 2; k++)
            if (q->acc_value[k]) {
                named = named ? named : map_new(p->arena);
                map_set_at(named, q->acc_value[k], p);
            }
    }
    return named;
}

static const Map *names_in(Printer *p, const Graph *g) {
    Map *names = map_get_at(p->names_in, g);
    if (names)
        return names;
    names = map_new(p->arena);
    map_set_at(p->names_in, g, names);
    for (size_t i = 0; i < g->n_in; i++)
        map_set(names, g->in[i]->name, names);
    for (size_t i = 0; i < g->n_consts; i++)
        map_set(names, g->consts[i]->name, names);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            map_set(names, n->out[i]->name, names);
    return names;
}

/* And those that have the name of a value of a body around, which a use in front of them would mean
 * (ONNX forbids such names; files with them are read). */
static Map *named_outside(Printer *p, const Graph *g, Map *in_front) {
    for (const Node *n = g->owner; n && g->n_consts; n = n->graph->owner) {
        const Map *names = names_in(p, n->graph);
        for (size_t i = 0; i < g->n_consts; i++)
            if (map_get(names, g->consts[i]->name)) {
                in_front = in_front ? in_front : map_new(p->arena);
                map_set_at(in_front, g->consts[i], p);
            }
    }
    return in_front;
}

/* Its line has to come after a node's, as its type names a result of it. */
static bool waits_for_node(const Value *v) {
    const Quant *q = v->type.kind == TYPE_TENSOR ? v->type.quant : NULL;
    for (int i = 0; q && q->kind == QUANT_ACC && i < 2; i++) {
        const Value *x = q->acc_value[i];
        if (x && x->graph == v->graph && x->def)
            return true;
    }
    return false;
}

/* Constants stand in front of the nodes while all of them are short, and behind them in a section
 * of their own where one is not: numbers should not part the head from the operators. */
static bool has_data_section(const Printer *p, const Graph *g) {
    for (size_t i = 0; i < g->n_in; i++)
        if (has_default(g->in[i]) && !print_is_short(g->in[i], p->few))
            return true;
    for (size_t i = 0; i < g->n_consts; i++)
        if (!print_is_short(g->consts[i], p->few) || waits_for_node(g->consts[i]))
            return true;
    return false;
}

/* Those that stand in front, or those behind. */
static size_t print_constants(Printer *p, const Graph *g, const Map *in_front, bool all,
                              bool front) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_in + g->n_consts; i++) {
        const Value *v = i < g->n_in ? g->in[i] : g->consts[i - g->n_in];
        bool early = all || (in_front && map_get_at(in_front, v));
        if (!has_default(v) || early != front)
            continue;
        print_const(p, v);
        n++;
    }
    return n;
}

/* What the quant lines leave out stands in the main graph. */
static void print_data_section(Printer *p, const Graph *g, const Map *in_front, bool all) {
    bool params = g == p->module->graph && print_has_params(p);
    if (all && !params)
        return;
    buf_text(&p->b, g->first ? "\n" : "");
    print_indent(p);
    buf_text(&p->b, "data {\n");
    p->indent++;
    if (params)
        print_params(p);
    print_constants(p, g, in_front, all, false);
    p->indent--;
    print_indent(p);
    buf_text(&p->b, "}\n");
}

static void print_body(Printer *p, const Graph *g, const Function *f, bool inferred) {
    bool section = has_data_section(p, g);
    const Map *in_front = section ? named_outside(p, g, named_by_results(p, g)) : NULL;
    if (print_constants(p, g, in_front, !section, true) && g->first)
        buf_byte(&p->b, '\n');
    FOR_NODES(n, g)
    print_node(p, n, inferred);
    print_notes(p, g, f ? f->meta : g->meta);
    print_data_section(p, g, in_front, !section);
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
    bool in_line = p->in_line;
    p->in_line = false;
    p->indent++;
    for (size_t i = 0; f && i < f->n_imports; i++) {
        print_indent(p);
        print_import(p, f->imports[i]);
    }
    print_body(p, g, f, inferred);
    p->indent--;
    p->in_line = in_line;
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
    print_short_meta(p, g->meta);
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
    print_short_meta(p, f->meta);
    print_extra_clause(p, f->extra);
    print_braced(p, g, f, mostly_inferred(p, g));
    buf_text(&p->b, "\n\n");
}
