/* Replaces calls of functions by their bodies: of the model's own functions, of those that -define
 * gives, and of the library's where an operator cannot run by itself.
 *
 * A function may be written for another opset of the default domain than the model: then everything
 * is brought to the newest of them. Afterwards the model has no functions, nor imports of domains
 * that only they needed. */
#include "passes/edit.h"
#include "passes/inline.h"
#include "passes/library.h"

typedef struct Callees {
    Module *m;
    Diags *d;
    Chooser chooser;
    const TargetPage *target;
    Map *own; /* function_key -> Function of the model */
    Buf key;
    Map *domains; /* of the library's functions that are called */
    int64_t newest;
    bool lacks; /* a part of what an operator is made of: that was said */
} Callees;

static bool can_run(const void *ctx, Str domain, Str op) {
    const OpDef *def = op_find(domain, op);
    (void)ctx;
    return def && def->bind;
}

/* What qxc has no kernel for and ONNX's runtimes may have none for either. */
static const Function *of_library(const Callees *c, const Node *n, const CallPath *path) {
    bool asked = c->chooser.library && !operator_runs(n->domain, n->op);
    return asked ? library_choose(&c->chooser, n, path) : NULL;
}

static const Function *callee(void *ctx, const Node *n, const CallPath *path) {
    Callees *c = ctx;
    Str key = function_key(&c->key, n->domain, n->op, n->overload);
    const Function *f = map_get(c->own, key);
    return f ? f : of_library(c, n, path);
}

/* What the target has as it is, where it stays float. */
static bool encloses(void *ctx, const Function *f) {
    const Callees *c = ctx;
    return function_stays_whole(f) && target_has_domain(c->target, f->domain);
}

/* The model says what its calls mean before anybody else does. */
static void tell_own_unused(const Callees *c, const Function *f) {
    const Overloads *of = library_find(c->chooser.library, f->domain, f->name);
    if (!of || !library_is_own(of->items[0]))
        return;
    Diags *d = c->d;
    diag_warning(d, f->loc, "the model has a function %s itself, which goes before that of -define",
                 diag_name(d, f->name));
    diag_note(d, of->items[0]->loc, "that of -define");
}

static void list_functions(Callees *c) {
    for (size_t i = 0; i < c->m->n_functions; i++) {
        Function *f = c->m->functions[i];
        tell_own_unused(c, f);
        Str key = function_key(&c->key, f->domain, f->name, f->overload);
        map_set(c->own, arena_str(c->m->arena, key), f);
    }
}

/* Calls of the library's, and the newest opset among people's own that are called. */
static void look(Graph *g, void *ctx) {
    Callees *c = ctx;
    FOR_NODES(n, g) {
        const Function *f = n->graph->function ? NULL : of_library(c, n, NULL);
        if (!f)
            continue;
        map_set(c->domains, f->domain, (void *)f);
        if (library_is_own(f) && function_opset(f) > c->newest)
            c->newest = function_opset(f);
    }
}

/* Of what is left, calls in bodies among them. */
static void tell_unfit(Graph *g, void *ctx) {
    Callees *c = ctx;
    FOR_NODES(n, g) {
        if (operator_runs(n->domain, n->op) || callee(c, n, NULL))
            continue;
        if (!c->lacks && library_lacks_part(&c->chooser, n, c->d))
            c->lacks = true; /* others are mostly of the same call */
        if (!c->lacks)
            library_tell_unfit(&c->chooser, n, c->d);
    }
}

/* Whether the model or a function of its own is at an older opset. */
static bool has_older(const Callees *c) {
    int64_t has = module_opset(c->m, STR(""));
    bool older = has && has < c->newest;
    for (size_t i = 0; i < c->m->n_functions; i++) {
        int64_t opset = function_opset(c->m->functions[i]);
        older = older || (opset && opset < c->newest);
    }
    return older;
}

/* A call that is enclosed may come back. */
static void note_domain(Graph *g, void *ctx) {
    Map *used = ctx;
    FOR_NODES(n, g) {
        Str d = n->call ? n->call->domain : n->domain;
        map_set(used, domain_is_onnx(d) ? STR("") : d, n);
    }
}

/* And imports of their domains, where no node is left that needs them. */
static void drop_functions(const Callees *c) {
    Module *m = c->m;
    Map *used = map_new(m->arena), *own = c->domains;
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
    Callees callees = {.m = m,
                       .d = c->d,
                       .target = c->target,
                       .own = map_new(m->arena),
                       .key = buf_new(m->arena),
                       .domains = map_new(m->arena)};
    callees.newest = module_opset(m, STR(""));
    for (size_t i = 0; i < m->n_functions; i++)
        if (function_opset(m->functions[i]) > callees.newest)
            callees.newest = function_opset(m->functions[i]);
    callees.chooser = (Chooser){c->library, ONNX_MAX_OPSET, can_run, NULL};
    list_functions(&callees);
    module_each_graph(m, look, &callees);
    callees.chooser.opset = callees.newest;
    bool any = m->n_functions || map_size(callees.domains);
    uint32_t first = m->n_nodes;
    Inlining what = {"inline-functions", callee,         c->keeps_calls ? encloses : NULL,
                     &callees,           callees.newest, has_older(&callees)};
    if (any && !inline_calls(m, c, &what))
        return false;
    if (any)
        edit_drop_dead(m, first); /* results that a call does not ask for */
    if (c->library)
        module_each_graph(m, tell_unfit, &callees);
    if (!any || callees.lacks)
        return !callees.lacks;
    drop_functions(&callees);
    module_forget_infos(m);
    return true;
}
