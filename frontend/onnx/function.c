/* FunctionProto; then whether functions call themselves, and how large the model gets when all
 * calls are inlined. */
#include "frontend/onnx/read.h"

/* ---- reading ---- */

static void read_function_inputs(Reader *r, Scope *s, const Onnx__FunctionProto *p, Infos *infos) {
    for (size_t i = 0; i < p->n_input; i++) {
        Loc at = reader_loc(r, "function input", pb_str(true, p->input[i]));
        Str name = read_name(r, at, true, p->input[i]);
        Value *v = graph_add_input(s->graph, name, TYPE_UNKNOWN);
        v->loc = at;
        if (name.n == 0)
            diag_error(r->diags, at, "an input has no name");
        else if (scope_define(r, s, v))
            take_info(r, infos, v);
    }
}

static void read_function_outputs(Reader *r, const Scope *s, const Onnx__FunctionProto *p) {
    for (size_t i = 0; i < p->n_output; i++) {
        Str name = pb_str(true, p->output[i]);
        Value *v = name.n ? scope_find(s, name) : NULL;
        if (v)
            graph_add_output(s->graph, v);
        else
            diag_error(r->diags, reader_loc(r, "function output", name),
                       "no node or input of the function defines it");
    }
}

static void read_formals(Reader *r, Function *f, const Onnx__FunctionProto *p) {
    f->n_attrs = p->n_attribute;
    f->attrs = NEW_ARRAY(r->arena, Str, f->n_attrs);
    for (size_t i = 0; i < f->n_attrs; i++)
        f->attrs[i] = read_name(r, f->loc, true, p->attribute[i]);
    f->n_defaults = p->n_attribute_proto;
    f->defaults = NEW_ARRAY(r->arena, Attr, f->n_defaults);
    for (size_t i = 0; i < f->n_defaults; i++)
        read_attr(r, f->loc, p->attribute_proto[i], NULL, NULL, &f->defaults[i]);
}

Function *read_function(Reader *r, const Onnx__FunctionProto *p) {
    Function *f = NEW(r->arena, Function);
    f->loc = reader_loc(r, "function", pb_str(p->has_name, p->name));
    f->name = read_name(r, f->loc, p->has_name, p->name);
    f->domain = read_name(r, f->loc, p->has_domain, p->domain);
    f->overload = read_name(r, f->loc, p->has_overload, p->overload);
    f->doc = pb_str(p->has_doc_string, p->doc_string);
    f->meta = read_meta(r, p->n_metadata_props, p->metadata_props);
    f->imports = read_imports(r, f->loc, p->n_opset_import, p->opset_import);
    f->n_imports = p->n_opset_import;
    if (f->name.n == 0)
        diag_error(r->diags, f->loc, "a function has no name");
    f->body = graph_new(r->module, STR_NONE);
    f->body->function = f;
    f->body->loc = f->loc;
    read_formals(r, f, p);
    const Place *around = enter_place(r, "function \"", f->name, "\"");
    Scope s = {NULL, f->body, map_new(r->arena)};
    Infos infos = read_infos(r, p->n_value_info, p->value_info, 0, NULL);
    read_function_inputs(r, &s, p, &infos);
    read_nodes(r, &s, p->n_node, p->node, &infos);
    read_function_outputs(r, &s, p);
    Buf extra = buf_new(r->arena), places = buf_new(r->arena);
    keep_infos(f->body, &infos, 12, &extra, &places);
    if (places.n)
        wire_put_bytes(&extra, EXTRA_PLACES, buf_as_str(&places));
    extra_unknown(&extra, &p->base);
    f->extra = extra_done(&extra);
    r->in = around;
    return f;
}

/* ---- calls ---- */

/* A function in the graph of calls. Index n_functions stands for the main graph. */
typedef struct Caller {
    size_t *calls; /* which functions it calls, once per node */
    size_t n, cap;
    size_t nodes; /* its own, those of subgraphs included; later with all calls inlined */
    enum { NEW_CALLER, ACTIVE, DONE } state;
    size_t next; /* the call to follow next */
} Caller;

typedef struct Calls {
    Reader *r;
    Map *functions; /* key -> Function** within module->functions */
    Caller *caller; /* the one being filled in */
    Buf key;
} Calls;

static void collect_calls(Calls *c, const Graph *g) {
    Module *m = c->r->module;
    for (const Node *n = g->first; n; n = n->next) {
        c->caller->nodes++;
        if (m->n_functions) {
            Str key = function_key(&c->key, n->domain, n->op, n->overload);
            Function **f = map_get(c->functions, key);
            if (f)
                ARENA_PUSH(m->arena, c->caller->calls, c->caller->n, c->caller->cap,
                           (size_t)(f - m->functions));
        }
        for (size_t i = 0; i < n->n_attrs; i++)
            if (n->attrs[i].kind == ATTR_GRAPH || n->attrs[i].kind == ATTR_GRAPHS)
                for (size_t k = 0; k < n->attrs[i].n; k++)
                    collect_calls(c, n->attrs[i].v.g[k]);
    }
}

/* Adds up nodes depth first, without recursion: a chain of functions may be long. */
static void inline_count(Reader *r, Caller *callers, size_t root) {
    Module *m = r->module;
    size_t depth = 0;
    size_t *stack = NEW_ARRAY(r->arena, size_t, m->n_functions + 2);
    stack[depth++] = root;
    callers[root].state = ACTIVE;
    while (depth) {
        Caller *c = &callers[stack[depth - 1]];
        if (c->next == c->n) {
            c->state = DONE;
            depth--;
            continue;
        }
        Caller *callee = &callers[c->calls[c->next]];
        if (callee->state == NEW_CALLER) {
            callee->state = ACTIVE;
            stack[depth++] = c->calls[c->next];
            continue;
        }
        if (callee->state == ACTIVE)
            diag_error(r->diags, m->functions[c->calls[c->next]]->loc, "the function calls itself");
        else if (c->nodes <= ONNX_MAX_NODES)
            c->nodes += callee->nodes;
        c->next++;
    }
}

void check_functions(Reader *r) {
    Module *m = r->module;
    Calls c = {r, map_new(r->arena), NULL, buf_new(r->arena)};
    Caller *callers = NEW_ARRAY(r->arena, Caller, m->n_functions + 1);
    for (size_t i = 0; i < m->n_functions; i++) {
        const Function *f = m->functions[i];
        Str key = arena_str(r->arena, function_key(&c.key, f->domain, f->name, f->overload));
        if (!map_get(c.functions, key))
            map_set(c.functions, key, &m->functions[i]);
        else
            diag_error(r->diags, f->loc, "the function is defined twice");
    }
    for (size_t i = 0; i <= m->n_functions; i++) {
        c.caller = &callers[i];
        const Graph *g = i < m->n_functions ? m->functions[i]->body : m->graph;
        if (g)
            collect_calls(&c, g);
    }
    for (size_t i = m->n_functions + 1; i-- > 0;)
        if (callers[i].state == NEW_CALLER)
            inline_count(r, callers, i);
    for (size_t i = 0; i <= m->n_functions; i++)
        if (callers[i].nodes > ONNX_MAX_NODES) {
            Loc at = i < m->n_functions ? m->functions[i]->loc : (Loc){.source = r->source};
            diag_error(r->diags, at, "more than %d nodes once functions are inlined",
                       ONNX_MAX_NODES);
        }
}
