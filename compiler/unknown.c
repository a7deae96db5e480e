/* See unknown.h. */
#include "compiler/unknown.h"

#include "ir/onnx_names.h"
#include "ir/onnx_schema.h"
#include "ir/ops/op.h"
#include "passes/operator_names.h"

typedef struct UnknownOps {
    Diags *d;
    const Module *m;
    Map *functions; /* function_key -> Function */
    Map *domains;   /* of the functions */
    Map *seen;
    Buf key;
    Library *library;
    const TextList *keep;
    bool refused; /* operators that ONNX lacks are an error that is still to come */
    bool kept;    /* one is named by `keep` */
    bool ok;
} UnknownOps;

static UnknownOps unknown_ops(const Module *m, Diags *d) {
    Arena *a = m->arena;
    UnknownOps u = {d,    m,    map_new(a), map_new(a), map_new(a), buf_new(a),
                    NULL, NULL, false,      false,      true};
    for (size_t i = 0; i < m->n_functions; i++) {
        Function *f = m->functions[i];
        Str key = function_key(&u.key, f->domain, f->name, f->overload);
        map_set(u.functions, arena_str(a, key), f);
        map_set(u.domains, f->domain, f);
    }
    return u;
}

/* Whether it is the first of its name, which no function of the model has. */
static bool is_first(UnknownOps *u, const Node *n) {
    Str key = function_key(&u->key, n->domain, n->op, n->overload);
    if (map_get(u->functions, key) || map_get(u->seen, key))
        return false;
    map_set(u->seen, arena_str(u->m->arena, key), (void *)n);
    return true;
}

/* onnxruntime has more operators than qxc knows: only what is close to a known one is a slip. */
static void near_operator(const UnknownOps *u, const Node *n) {
    OperatorNames all = {0};
    Str has;
    if (operator_is_named(NULL, n->op, n->domain, &has) && domain_equal(has, n->domain))
        return;
    for (Str name; operator_names_next(&all, &name);)
        if (domain_equal(all.domain, n->domain) &&
            (str_same_letters(n->op, name) || (n->op.n > 3 && str_distance(n->op, name, 1) <= 1))) {
            diag_warning(u->d, n->loc, "qxc knows no operator %s::%s", diag_name(u->d, n->domain),
                         diag_name(u->d, n->op));
            diag_note(u->d, n->loc, "did you mean '" STR_FMT "'?", STR_ARG(name));
            return;
        }
}

/* Integers that mean no or yes. ONNX allows others, and runtimes differ in what they take them for:
 * keepdims=2 keeps none in onnxruntime, transB=2 transposes. */
static void warn_flags(const UnknownOps *u, const Node *n) {
    const OpDef *op = n->n_attrs ? op_find(n->domain, n->op) : NULL;
    for (const AttrSpec *spec = op ? op->attrs : NULL; spec && spec->name; spec++) {
        const Attr *a = spec->flag ? node_attr(n, spec->name) : NULL;
        if (a && !attr_is_ref(a) && a->kind == ATTR_INT && a->v.i[0] != 0 && a->v.i[0] != 1)
            diag_warning(u->d, node_attr_loc(n, spec->name, u->d),
                         "%s is %lld, neither 0 nor 1: runtimes differ in what that means",
                         spec->name, (long long)a->v.i[0]);
    }
}

/* Quotients are computed in float, which rounds some of them to another neighbour than a narrower
 * type does. */
static void warn_precision(const UnknownOps *u, const Node *n) {
    int64_t precision = node_is(n, "QuantizeLinear") ? node_int(n, "precision", 0) : 0;
    if (precision == ELEM_FLOAT16 || precision == ELEM_BFLOAT16)
        diag_warning(u->d, node_attr_loc(n, "precision", u->d),
                     "precision is %s, but quotients are computed in float: some numbers are "
                     "rounded to another neighbour",
                     elem_name((ElemType)precision));
}

typedef struct FunctionsOf {
    const Module *m;
    Str domain;
    size_t i;
} FunctionsOf;

static bool next_function(void *ctx, Str *name) {
    FunctionsOf *at = ctx;
    while (at->i < at->m->n_functions) {
        const Function *f = at->m->functions[at->i++];
        *name = f->name;
        if (domain_equal(f->domain, at->domain))
            return true;
    }
    return false;
}

static void unknown_function(const UnknownOps *u, const Node *n) {
    const Module *m = u->m;
    diag_warning(u->d, n->loc, "the model has functions of domain '%s', but none that is %s%s%s",
                 diag_name(u->d, n->domain), diag_name(u->d, n->op), n->overload.n ? "::" : "",
                 diag_name(u->d, n->overload));
    diag_did_you_mean_next(u->d, n->loc, n->op, next_function, &(FunctionsOf){m, n->domain, 0});
}

static void unknown_operator(const UnknownOps *u, const Node *n) {
    if (u->refused)
        return;
    diag_warning(u->d, n->loc, "ONNX has no operator %s", diag_name(u->d, n->op));
    node_did_you_mean(u->library, u->d, n);
}

/* Of domains that are neither ONNX's nor the functions' anything may be meant. */
static void look_at_names(Graph *g, void *ctx) {
    UnknownOps *u = ctx;
    FOR_NODES(n, g) {
        bool onnx = domain_is_onnx(n->domain);
        int newest = onnx ? 0 : onnx_schema_newest(n->domain);
        warn_flags(u, n);
        warn_precision(u, n);
        if (n->def || !(onnx || newest || map_get(u->domains, n->domain)) || !is_first(u, n))
            continue;
        if (onnx && !onnx_has_operator(n->op))
            unknown_operator(u, n);
        else if (newest && !onnx_schema_find(n->domain, n->op, newest))
            near_operator(u, n);
        else if (!onnx && !newest)
            unknown_function(u, n);
    }
}

void warn_of_strange_nodes(const Module *m, bool refused, Diags *d) {
    UnknownOps u = unknown_ops(m, d);
    u.refused = refused;
    module_each_graph((Module *)m, look_at_names, &u);
}

/* ---- where they would have to be something ---- */

static bool is_kept(const TextList *keep, Str op) {
    for (size_t i = 0; i < keep->n; i++)
        if (str_glob(keep->items[i], op))
            return true;
    return false;
}

static void refuse_unknown(Graph *g, void *ctx) {
    UnknownOps *u = ctx;
    FOR_NODES(n, g) {
        if (n->def || !domain_is_onnx(n->domain) || onnx_has_operator(n->op) || !is_first(u, n) ||
            library_find(u->library, n->domain, n->op))
            continue;
        if (is_kept(u->keep, n->op)) {
            u->kept = true;
            continue;
        }
        u->ok = diag_error(u->d, n->loc,
                           "ONNX has no operator %s, so that it can neither run nor be lowered",
                           diag_name(u->d, n->op));
        node_did_you_mean(u->library, u->d, n);
        diag_note(u->d, n->loc, "-keep=%s leaves it as it is, for a runtime that has it",
                  diag_name(u->d, n->op));
    }
}

bool module_operators_known(Module *m, Library *library, const TextList *keep, bool *kept,
                            Diags *d) {
    UnknownOps u = unknown_ops(m, d);
    u.library = library;
    u.keep = keep;
    module_each_graph(m, refuse_unknown, &u);
    *kept = u.kept;
    return u.ok;
}
