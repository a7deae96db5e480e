/* Graphs, functions and their bodies. */
#include "frontend/qir/reader.h"

Bind bind_of(Reader *r, Token name, Type *t, Clauses *c) {
    clauses_check(r, c, "dxmfs", "a value");
    return (Bind){.name = str_of(r, name), .at = range_of(name), .type = t, .clauses = c};
}

/* A type is copied to its value, and its memory used again: others point to what is within. */
Type bind_type(Reader *r, const Bind *b) {
    if (!b->type)
        return TYPE_UNKNOWN;
    r->spare_type = b->type;
    return *b->type;
}

/* Stated in the model, or inferred by us? Types of results always count as stated, those of other
 * node outputs unless the graph says `inferred`; a clause on the value overrides. */
static bool is_declared(const Reader *r, const Value *v, const Bind *b) {
    if (b->clauses && (b->clauses->stated || b->clauses->inferred))
        return b->clauses->stated;
    if (v->kind == VALUE_CONST || v->type.kind == TYPE_NONE)
        return false;
    return v->kind == VALUE_INPUT || !r->frame->inferred || map_get(r->frame->results, v->name);
}

/* A result may repeat the type of its value, or give it. */
static void take_result_type(Reader *r, Value *v) {
    const Bind *result = map_get(r->frame->results, v->name);
    if (!result || !result->type)
        return;
    if (v->type.kind == TYPE_NONE) {
        v->type = *result->type;
        return;
    }
    const char *here = type_text(r->arena, *result->type), *there = type_text(r->arena, v->type);
    if (strcmp(here, there) != 0) {
        error_at(r, result->at, "%%%s is %s as a result", shown(r, v->name), here);
        diag_note(r->diags, v->loc, "and %s where it is defined", there);
    }
}

void define_value(Reader *r, Value *v, const Bind *b) {
    Frame *f = r->frame;
    v->loc = loc_of(r, b->at);
    size_t before = flaws_so_far(r);
    const Clauses *c = b->clauses;
    if (c) {
        v->doc = c->doc;
        v->meta = c->meta;
        v->extra = c->extra;
        v->from = c->from.n ? c->from : v->from; /* a line in front may say it */
        v->stated = c->type;
    }
    take_result_type(r, v);
    v->declared = is_declared(r, v, b);
    check_fit(r, v);
    Value *old = map_get(f->names, v->name);
    if (!old) {
        map_set(f->names, v->name, v);
    } else {
        error_at(r, b->at, "%%%s is defined twice", shown(r, v->name));
        diag_note(r->diags, old->loc, "the first definition");
    }
    v->misread = flaws_so_far(r) > before;
}

/* ---- bodies ---- */

static void take_results(Reader *r, Frame *f, Span results) {
    f->results = map_new(r->arena);
    f->n_results = results.n;
    f->binds = arena_copy(r->arena, r->binds + results.begin, results.n * sizeof *r->binds);
    for (size_t i = 0; i < f->n_results; i++) {
        Bind *b = &f->binds[i];
        map_set(f->results, b->name, b);
        clauses_check(r, b->clauses, "",
                      "a result; what describes a value stands at its definition,");
    }
}

static void add_input(Reader *r, Graph *g, const Bind *b) {
    Frame *f = r->frame;
    Value *v = graph_add_input(g, b->name, bind_type(r, b));
    define_value(r, v, b);
    if (v->stated && !f->func && !f->outer)
        error_at(r, b->clauses->stated_at, "an input of the model is what it is stated as");
    if (!b->is_default)
        return;
    if (f->func)
        error_at(r, b->at, "inputs of functions have no default");
    else
        map_set(f->due, b->name, v);
}

static void open_frame(Reader *r, Graph *g, Function *func, Span params, Span results,
                       bool inferred) {
    Frame *f = NEW(r->arena, Frame);
    f->outer = r->frame;
    f->graph = g;
    f->func = func;
    f->inferred = inferred;
    f->broken = f->outer && f->outer->broken;
    f->names = map_new(r->arena);
    f->awaited = map_new(r->arena);
    f->due = map_new(r->arena);
    f->nesting = f->outer ? f->outer->nesting + 1 : 1;
    r->frame = f;
    if (f->nesting == MAX_NESTING + 1) {
        diag_error(r->diags, g->loc, "graphs are nested more than %d deep", MAX_NESTING);
        r->lexer.too_deep = true;
    }
    take_results(r, f, results);
    for (uint32_t i = 0; i < params.n; i++)
        add_input(r, g, &r->binds[params.begin + i]);
    if (params.n || results.n)
        r->n_binds = params.n ? params.begin : results.begin;
    f->flaws = flaws_so_far(r);
    f->marks = (Marks){(uint32_t)r->n_vals, (uint32_t)r->n_fields, (uint32_t)r->n_binds,
                       (uint32_t)r->n_ins,  (uint32_t)r->n_dims,   (uint32_t)r->n_origins};
}

Str usual_name(const Reader *r) {
    return r->frame ? STR("body") : STR("main");
}

Graph *open_graph(Reader *r, Str name, Span params, Span results, Clauses *c, Range at) {
    Graph *g = graph_new(r->module, name);
    g->loc = loc_of(r, at);
    clauses_check(r, c, "dxms", "a graph");
    if (c) {
        g->doc = c->doc;
        g->meta = c->meta;
        g->extra = c->extra;
    }
    open_frame(r, g, NULL, params, results, c && c->inferred);
    return g;
}

void open_broken(Reader *r, Range at) {
    Graph *g = graph_new(r->module, STR_NONE);
    g->loc = loc_of(r, at);
    forget_statement(r);
    open_frame(r, g, NULL, (Span){0}, (Span){0}, true);
    r->frame->broken = true;
}

static void connect_results(Reader *r, Frame *f) {
    for (size_t i = 0; i < f->n_results; i++) {
        Value *v = find_value(r, f->binds[i].name, f->binds[i].at);
        if (v)
            graph_add_output(f->graph, v);
        else if (f->func) /* calls would miss it */
            r->unsound = true;
    }
}

static void check_defaults(Reader *r, Frame *f) {
    for (size_t i = 0; i < map_size(f->due); i++) {
        const Value *v = map_value(f->due, i);
        bool given = v->data || v->sparse || v->misread;
        if (!given && !is_broken(r, '%', v->name))
            diag_error(r->diags, v->loc,
                       "the default of %%%s is missing: a line 'const %%%s = ...'",
                       shown(r, v->name), shown(r, v->name));
    }
}

static void close_frame(Reader *r) {
    Frame *f = r->frame;
    connect_results(r, f);
    check_defaults(r, f);
    report_missing(r, f);
    r->frame = f->outer;
}

Graph *close_graph(Reader *r) {
    Graph *g = r->frame->graph;
    close_frame(r);
    return g;
}

/* After an end of the text amidst bodies: what they lack is still reported. */
void finish_frames(Reader *r) {
    while (r->frame) {
        report_missing(r, r->frame);
        r->frame = r->frame->outer;
    }
}

/* ---- functions ---- */

static void adopt_graphs(const Function *fn, const Attr *a) {
    for (size_t k = 0; k < attr_graphs(a); k++)
        a->v.g[k]->function = fn;
}

static void read_formals(Reader *r, Function *fn, Span formals) {
    Field *f = take_fields(r, formals);
    fn->attrs = NEW_ARRAY(r->arena, Str, formals.n);
    fn->defaults = NEW_ARRAY(r->arena, Attr, formals.n);
    for (uint32_t i = 0; i < formals.n; i++) {
        Attr *a = &fn->defaults[fn->n_defaults];
        if (f[i].has_val && read_attribute(r, &f[i], a))
            adopt_graphs(fn, &fn->defaults[fn->n_defaults++]);
        else /* a default with a fault is none, but the body may name it */
            fn->attrs[fn->n_attrs++] = f[i].key;
    }
    check_unique(r, f, formals.n, "attribute");
}

static Map *formals_of(Reader *r, Function *fn) {
    Map *names = map_new(r->arena);
    for (size_t i = 0; i < fn->n_attrs; i++)
        map_set(names, fn->attrs[i], fn);
    for (size_t i = 0; i < fn->n_defaults; i++)
        map_set(names, fn->defaults[i].name, fn);
    return names;
}

void open_function(Reader *r, OpName name, const Span *formals, Span params, Span results,
                   Clauses *c) {
    Module *m = r->module;
    Function *fn = NEW(r->arena, Function);
    size_t before = flaws_so_far(r);
    fn->loc = loc_of(r, name.at);
    op_name_parts(r, name, &fn->domain, &fn->name, &fn->overload);
    clauses_check(r, c, "dxms", "a function");
    if (c) {
        fn->doc = c->doc;
        fn->meta = c->meta;
        fn->extra = c->extra;
    }
    if (formals)
        read_formals(r, fn, *formals);
    r->unsound = r->unsound || flaws_so_far(r) > before;
    fn->body = graph_new(m, STR_NONE);
    fn->body->function = fn;
    fn->body->loc = fn->loc;
    ARENA_PUSH(r->arena, m->functions, m->n_functions, m->cap_functions, fn);
    open_frame(r, fn->body, fn, params, results, c && c->inferred);
    r->frame->formals = formals_of(r, fn);
}

void close_function(Reader *r) {
    close_frame(r);
}
