/* Replaces each call of a function of the model by the function's body.
 *
 * A body is copied for each call, attributes are what the call states, and names become
 * "CALL/NAME". A function may be written for another opset of the default domain than the model:
 * then everything is brought to the newest of them, each body from its own. Afterwards the model
 * has no functions, nor imports of domains that only they needed. */
#include "ir/provenance.h"
#include "passes/clone.h"
#include "passes/edit.h"
#include "passes/prepare/upgrade.h"

static const char BY[] = "inline-functions";

enum {
    MAX_INLINED = 500 * 1000, /* nodes; calls of calls grow without bound */
    MAX_DEPTH = 200,          /* of calls within calls */
};

/* The functions whose bodies are being inlined, innermost first. */
typedef struct Active {
    const Function *f;
    const struct Active *outer;
    Str prefix; /* of the names in it */
    int depth;
} Active;

typedef struct Inliner {
    Module *m;
    PassContext *c;
    Map *functions; /* key -> Function */
    Upgrade up;
    bool mixed; /* bodies and model are at different opsets */
    Clone clone;
    Buf key;
    bool ok;
} Inliner;

/* ---- which function a node calls ---- */

static const Function *callee(Inliner *in, const Node *n) {
    return map_get(in->functions, function_key(&in->key, n->domain, n->op, n->overload));
}

static void list_functions(Inliner *in) {
    const Module *m = in->m;
    for (size_t i = 0; i < m->n_functions; i++) {
        Function *f = m->functions[i];
        Str key = function_key(&in->key, f->domain, f->name, f->overload);
        map_set(in->functions, arena_str(m->arena, key), f);
    }
}

/* ---- whether a call can be inlined (that it fits the function is a law of the verifier's) ---- */

/* Of other domains than ONNX's there is nothing to convert with. */
static bool import_domain(Inliner *in, const Node *n, const Function *f) {
    int64_t wants = node_opset(n), has = module_opset(in->m, n->domain);
    if (domain_is_onnx(n->domain) || wants == 0 || wants == has || callee(in, n))
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
static Str prefix_of(const Inliner *in, const Node *call, const Active *at) {
    if (call->name.n)
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

/* The copy of a body before it moves into the caller's graph. As it is the function's still, its
 * nodes are at the function's opsets. */
static Graph *copy_body(Inliner *in, const Node *call, const Function *f, Str prefix) {
    Graph *copy = graph_new(in->m, prefix);
    Clone *c = &in->clone;
    copy->function = f;
    c->prefix = prefix;
    c->f = f;
    c->call = call;
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
        node_from(n, call, BY);
        n->loc = call->loc;
        n->in[0] = from;
        n->out[0] = to;
        to->def = n;
        to->index = 0;
        to->graph = copy;
        graph_append(copy, n);
    }
    return true;
}

/* Everything in `copy` moves to where the call stands. */
static void splice(Graph *copy, Node *call) {
    Graph *g = call->graph;
    for (size_t i = 0; i < copy->n_consts; i++) {
        copy->consts[i]->graph = g;
        ARENA_PUSH(g->module->arena, g->consts, g->n_consts, g->cap_consts, copy->consts[i]);
    }
    FOR_NODES(n, copy) {
        node_remove(n);
        node_insert_before(call, n);
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i])
                n->out[i]->graph = g;
    }
    node_remove(call);
}

static void inline_graph(Inliner *in, Graph *g, const Active *at);

static void inline_call(Inliner *in, Node *call, const Function *f, const Active *at) {
    if (at && at->depth >= MAX_DEPTH) {
        in->ok = diag_error(in->c->d, call->loc, "functions call each other more than %d deep",
                            MAX_DEPTH);
        return;
    }
    Str prefix = prefix_of(in, call, at);
    Graph *copy = copy_body(in, call, f, prefix);
    if (!copy || !copy_results(in, f, call, copy)) {
        in->ok = false;
        return;
    }
    FOR_NODES(n, copy)
    in->ok = import_domain(in, n, f) && in->ok;
    Active here = {f, at, prefix, at ? at->depth + 1 : 1};
    inline_graph(in, copy, &here);
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

static void inline_graph(Inliner *in, Graph *g, const Active *at) {
    for (Node *n = g->first, *next; n && in->ok; n = next) {
        next = n->next;
        const Function *f = callee(in, n);
        if (f) {
            inline_call(in, n, f, at);
            continue;
        }
        for (size_t i = 0; i < n->n_attrs; i++)
            for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++)
                inline_graph(in, n->attrs[i].v.g[k], at);
        if (in->mixed)
            convert(in, n);
    }
}

/* The newest opset of the default domain among the model and its functions. */
static int64_t newest_opset(const Inliner *in) {
    int64_t newest = module_opset(in->m, STR(""));
    for (size_t i = 0; i < in->m->n_functions; i++) {
        const Function *f = in->m->functions[i];
        for (size_t k = 0; k < f->n_imports; k++)
            if (domain_is_onnx(f->imports[k].domain) && f->imports[k].version > newest)
                newest = f->imports[k].version;
    }
    return newest;
}

static bool has_older(const Inliner *in, int64_t newest) {
    int64_t has = module_opset(in->m, STR(""));
    if (has && has < newest)
        return true;
    for (size_t i = 0; i < in->m->n_functions; i++) {
        const Function *f = in->m->functions[i];
        for (size_t k = 0; k < f->n_imports; k++)
            if (domain_is_onnx(f->imports[k].domain) && f->imports[k].version < newest)
                return true;
    }
    return false;
}

static void note_domain(Graph *g, void *ctx) {
    Map *used = ctx;
    FOR_NODES(n, g)
    map_set(used, domain_is_onnx(n->domain) ? STR("") : n->domain, n);
}

/* And imports of their domains, where no node is left that needs them. */
static void drop_functions(const Inliner *in) {
    Module *m = in->m;
    Map *used = map_new(m->arena), *own = map_new(m->arena);
    for (size_t i = 0; i < m->n_functions; i++)
        map_set(own, m->functions[i]->domain, m->functions[i]);
    m->n_functions = 0;
    module_each_graph(m, note_domain, used);
    size_t kept = 0;
    for (size_t i = 0; i < m->n_imports; i++) {
        Str d = m->imports[i].domain;
        if (domain_is_onnx(d) || !map_get(own, d) || map_get(used, d))
            m->imports[kept++] = m->imports[i];
    }
    m->n_imports = kept;
}

bool pass_inline_functions(Module *m, PassContext *c) {
    if (m->n_functions == 0)
        return true;
    uint32_t first = m->n_nodes;
    Inliner in = {.m = m, .c = c, .functions = map_new(m->arena), .ok = true};
    in.key = buf_new(m->arena);
    int64_t newest = newest_opset(&in);
    in.mixed = has_older(&in, newest);
    in.up = upgrade_begin(m, c, newest);
    in.clone = (Clone){.names = in.up.names, .by = BY, .ok = true};
    list_functions(&in);
    inline_graph(&in, m->graph, NULL);
    if (!in.ok)
        return false;
    if (in.mixed || module_opset(m, STR("")) < newest)
        upgrade_end(&in.up, m);
    edit_drop_dead(m, first); /* results that a call does not ask for */
    drop_functions(&in);
    module_forget_infos(m);
    return true;
}
