#include "passes/inline.h"

#include "ir/provenance.h"
#include "passes/clone.h"
#include "passes/enclose.h"
#include "passes/quant_build.h"
#include "passes/upgrade.h"

enum {
    MAX_INLINED = 500 * 1000, /* nodes; calls of calls grow without bound */
    MAX_DEPTH = 200,          /* of calls within calls */
};

/* The function whose body is being inlined, and those around it. */
typedef struct Active {
    CallPath path; /* first */
    Str prefix;    /* of the names in it */
    int depth;
} Active;

typedef struct Inliner {
    Module *m;
    PassContext *c;
    const Inlining *what;
    Upgrade up;
    Clone clone;
    bool ok;
} Inliner;

static const Function *callee(const Inliner *in, const Node *n, const Active *at) {
    return in->what->callee(in->what->ctx, n, at ? &at->path : NULL);
}

/* Of the library: then values are named after the call's result, and numbers take its type. */
static bool is_composite(const Inliner *in, const Function *f) {
    return f->body->module != in->m;
}

/* ---- whether a call can be inlined (that it fits the function is a law of the verifier's) ---- */

/* A node that stays. Of other domains than ONNX's there is nothing to convert with. */
static bool import_domain(Inliner *in, const Node *n, const Active *at) {
    const Function *f = at->path.f;
    int64_t wants = node_opset(n), has = module_opset(in->m, n->domain);
    if (domain_is_onnx(n->domain) || wants == 0 || wants == has)
        return true;
    if (has == 0) {
        module_set_opset(in->m, n->domain, wants);
        return true;
    }
    return diag_error(in->c->d, n->loc,
                      "function %s uses version %lld of domain '%s', the model version %lld: it "
                      "cannot be inlined",
                      diag_name(in->c->d, f->name), (long long)wants,
                      diag_name(in->c->d, n->domain), (long long)has);
}

/* ---- one call ---- */

/* The call's name; without one "OUTER/FUNCTION", numbered. */
static Str prefix_of(const Inliner *in, const Node *call, const Function *f, const Active *at) {
    if (call->name.n || is_composite(in, f))
        return call->name;
    Buf b = buf_new(in->m->arena);
    if (at) {
        buf_str(&b, at->prefix);
        buf_byte(&b, '/');
    }
    buf_str(&b, call->op);
    return unique_name(in->clone.names, buf_as_str(&b));
}

/* The nodes of the copy make the call's results. What is no result of a node of the body, or is
 * asked for twice, is left to copy_results. */
static void claim_results(Inliner *in, const Function *f, const Node *call) {
    for (size_t i = call->n_out; i-- > 0;) /* the first of equal ones stands */
        if (call->out[i] && f->body->out[i]->kind == VALUE_NODE)
            clone_claim(&in->clone, in->m, f->body->out[i], call->out[i]);
}

/* The first float type among the operands. */
static ElemType elem_of(const Node *call) {
    for (size_t i = 0; i < call->n_in; i++) {
        const Value *x = call->in[i];
        if (x && x->type.kind == TYPE_TENSOR && elem_is_float(type_real_elem(x->type)))
            return type_real_elem(x->type);
    }
    return ELEM_FLOAT;
}

static Str first_result(const Node *call) {
    for (size_t i = 0; i < call->n_out; i++)
        if (call->out[i])
            return base_name(call->out[i]->name);
    return call->op;
}

/* The copy of a body before it moves into the caller's graph. As it is the function's still, its
 * nodes are at the function's opsets. */
static Graph *copy_body(Inliner *in, const Node *call, const Function *f, Str prefix) {
    Graph *copy = graph_new(in->m, prefix);
    Clone *c = &in->clone;
    copy->function = f;
    c->prefix = prefix;
    c->f = f;
    c->call = call;
    c->composite = is_composite(in, f);
    c->base = first_result(call);
    c->elem = elem_of(call);
    c->named = false;
    for (size_t i = 0; i < f->body->n_in; i++)
        clone_map(c, in->m, f->body->in[i], i < call->n_in ? call->in[i] : NULL);
    claim_results(in, f, call);
    clone_body(c, f->body, copy);
    if (c->nodes > MAX_INLINED)
        c->ok = diag_error(in->c->d, call->loc, "more than %d nodes once functions are inlined",
                           MAX_INLINED);
    return c->ok ? copy : NULL;
}

/* Results that are operands passed through, constants, or equal to a result before them. */
static bool copy_results(const Inliner *in, const Function *f, const Node *call, Graph *copy) {
    for (size_t i = 0; i < call->n_out; i++) {
        Value *from = clone_value(&in->clone, f->body->out[i]), *to = call->out[i];
        if (!to || from == to)
            continue;
        if (!from)
            return diag_error(in->c->d, call->loc,
                              "function %s yields its operand '%s', which the call leaves out",
                              diag_name(in->c->d, f->name),
                              diag_name(in->c->d, f->body->out[i]->name));
        Node *n = node_new(copy, STR_NONE, STR("Identity"), 1, 1);
        node_from(n, call, in->what->by);
        n->loc = call->loc;
        n->in[0] = from;
        node_take_result(n, 0, to);
        to->graph = copy;
        graph_append(copy, n);
    }
    return true;
}

/* Axes may have become an attribute. */
static bool is_read(const Graph *g, const Value *v) {
    for (const Node *n = g->first; n; n = n->next) {
        if (has_bodies(n))
            return true;
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i] == v)
                return true;
    }
    return false;
}

/* What the function states of a result is a law for the operands of the call, and says what nobody
 * could infer. */
static bool hold_result(const Inliner *in, const Function *f, const Node *call, Type stated,
                        Type *has) {
    if (stated.kind != TYPE_TENSOR || stated.rank < 0 || has->rank < 0)
        return true;
    bool fits = has->rank == stated.rank;
    Dim *dims = arena_copy(in->m->arena, has->dims, (size_t)has->rank * sizeof *dims);
    for (int i = 0; fits && i < has->rank; i++) {
        const Dim *d = function_length(f, call, stated.dims[i].param);
        int64_t want = d ? d->value : stated.dims[i].value;
        if (want >= 0 && dims[i].value < 0)
            dims[i] = dim_of(want);
        fits = want < 0 || dims[i].value == want;
    }
    if (!fits)
        return diag_error(in->c->d, call->loc, "the operands of %s make %s, which must be %s",
                          diag_name(in->c->d, f->name), type_text(in->m->arena, *has),
                          type_text(in->m->arena, stated));
    has->dims = dims;
    return true;
}

/* `out`: the results of the call, which have other nodes by now. */
static bool hold_results(const Inliner *in, const Function *f, const Node *call, Value **out) {
    bool ok = true;
    for (size_t i = 0; i < call->n_out && is_composite(in, f); i++)
        if (out[i])
            ok = hold_result(in, f, call, f->body->out[i]->type, &out[i]->type) && ok;
    return ok;
}

/* Everything in `copy` moves to where the call stands. */
static void splice(Graph *copy, Node *call) {
    Graph *g = call->graph;
    for (size_t i = 0; i < copy->n_consts; i++) {
        if (!is_read(copy, copy->consts[i]))
            continue;
        copy->consts[i]->graph = g;
        ARENA_PUSH(g->module->arena, g->consts, g->n_consts, g->cap_consts, copy->consts[i]);
    }
    FOR_NODES(n, copy) {
        node_remove(n);
        node_insert_before(call, n);
    }
    node_remove(call);
}

static void enclose(const Inliner *in, Node *call, const Function *f, const Active *at) {
    const Inlining *what = in->what;
    bool own = is_composite(in, f) && !(at && is_composite(in, at->path.f));
    if (own && what->encloses && what->encloses(what->ctx, f))
        enclose_call(call, in->clone.names, what->by);
    else if (own)
        name_call(call);
}

static void inline_graph(Inliner *in, Graph *g, const Active *at);

static void inline_call(Inliner *in, Node *call, const Function *f, const Active *at) {
    if (at && at->depth >= MAX_DEPTH) {
        in->ok = diag_error(in->c->d, call->loc, "functions call each other more than %d deep",
                            MAX_DEPTH);
        return;
    }
    Str prefix = prefix_of(in, call, f, at);
    enclose(in, call, f, at);
    Value **out = arena_copy(in->m->arena, call->out, call->n_out * sizeof(Value *));
    Graph *copy = copy_body(in, call, f, prefix);
    if (!copy || !copy_results(in, f, call, copy)) {
        in->ok = false;
        return;
    }
    Active here = {{f, at ? &at->path : NULL}, prefix, at ? at->depth + 1 : 1};
    inline_graph(in, copy, &here);
    in->ok = in->ok && hold_results(in, f, call, out);
    splice(copy, call);
}

/* ---- the whole module ---- */

/* At the opset of the body that it stands in: its types are needed to convert it. */
static void convert(Inliner *in, Node *n) {
    if (!op_resolve(n, in->c->d) || !node_infer(n, in->c->d)) {
        in->ok = false;
        return;
    }
    upgrade_node(&in->up, n);
    in->ok = in->ok && in->up.ok;
}

/* What reads the results of a call gets its types, which later calls are chosen by. */
static bool lacks_type(const Node *n) {
    bool lacks = false, body = false;
    for (size_t i = 0; i < n->n_out; i++)
        lacks = lacks || (n->out[i] && n->out[i]->type.rank < 0);
    for (size_t i = 0; i < n->n_attrs; i++)
        body = body || attr_graphs(&n->attrs[i]) > 0;
    return lacks && !body;
}

static void inline_graph(Inliner *in, Graph *g, const Active *at) {
    for (Node *n = g->first, *next; n && in->ok; n = next) {
        next = n->next;
        const Function *f = callee(in, n, at);
        if (f) {
            inline_call(in, n, f, at);
            continue;
        }
        in->ok = (!at || import_domain(in, n, at)) && in->ok;
        for (size_t i = 0; i < n->n_attrs; i++)
            for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++)
                inline_graph(in, n->attrs[i].v.g[k], at);
        if (in->what->mixed || (at && is_composite(in, at->path.f)))
            convert(in, n);
        else if (!at && lacks_type(n))
            in->ok = node_infer(n, in->c->d) && in->ok;
    }
}

bool inline_calls(Module *m, PassContext *c, const Inlining *what) {
    Inliner in = {.m = m, .c = c, .what = what, .ok = true};
    in.up = upgrade_begin(m, c, what->opset);
    in.clone = (Clone){.names = in.up.names, .by = what->by, .ok = true};
    inline_graph(&in, m->graph, NULL);
    if (in.ok && (what->mixed || module_opset(m, STR("")) < what->opset))
        upgrade_end(&in.up, m);
    return in.ok;
}
