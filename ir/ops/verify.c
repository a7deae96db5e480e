/* The verifier's driver: structure, then each node against ONNX's schema, its operator's laws and
 * the laws of quantization. */
#include "ir/ops/qop.h"
#include "ir/verify_quant.h"
#include "ir/verify_sparse.h"

typedef struct Verify {
    Diags *d;
    Map *implied; /* domains that are not imported, as far as said; what else is said once */
    unsigned flags;
    bool quants; /* the quantizations by themselves are right */
    bool ok;
} Verify;

/* ---- number and types of operands ---- */

static bool check_count(const Node *n, const OnnxSchema *s, bool output, Diags *d) {
    int least = onnx_schema_min(s, output), most = onnx_schema_max(s, output);
    size_t n_have = output ? n->n_out : n->n_in;
    const char *what = output ? "results" : "operands";
    if (n_have > (size_t)most)
        return diag_error(d, n->loc, "%s has %zu %s, at most %d at opset %d", diag_name(d, n->op),
                          n_have, what, most, (int)node_opset(n));
    if (n_have < (size_t)least)
        return diag_error(d, n->loc, "%s has %zu %s, needs %d", diag_name(d, n->op), n_have, what,
                          least);
    for (int i = 0; i < (int)n_have; i++) {
        const SchemaParam *p = onnx_schema_param(s, output, i);
        if (!(output ? n->out[i] : n->in[i]) && p->option != SCHEMA_OPTIONAL)
            return diag_error(d, n->loc, "%s needs its %s %d (%s)", diag_name(d, n->op),
                              output ? "result" : "operand", i, p->name);
    }
    return true;
}

/* Also of a node whose attributes are wrong, which has no row any more. */
static bool is_own_form(const Node *n) {
    const OpDef *op = n->def ? n->def : op_find(n->domain, n->op);
    return op && op->own_form && op->own_form(n);
}

bool node_count_operands(const Node *n, Diags *d) {
    const OnnxSchema *s = is_own_form(n) ? NULL : node_schema(n);
    return !s || (check_count(n, s, false, d) && check_count(n, s, true, d));
}

/* Each type variable stands for one type: which, and the value that first said so. */
typedef struct Binding {
    const char *var;
    const Value *first;
    ElemType elem;
} Binding;

enum { MAX_VARS = 16 };

static Loc value_loc(const Node *n, bool output, size_t i, Diags *d) {
    return output ? node_out_loc(n, i, d) : node_in_loc(n, i, d);
}

static bool check_var(const Node *n, const SchemaParam *p, bool output, size_t at, Binding *vars,
                      size_t *n_vars, Diags *d) {
    const Value *v = output ? n->out[at] : n->in[at];
    if (!*p->type_var || (p->option == SCHEMA_VARIADIC && !p->homogeneous))
        return true;
    ElemType e = type_real_elem(v->type);
    for (size_t i = 0; i < *n_vars; i++)
        if (!strcmp(vars[i].var, p->type_var)) {
            if (vars[i].elem == e)
                return true;
            return diag_error(d, value_loc(n, output, at, d),
                              "%s: '%s' is %s, but '%s' is %s (both must be of one type)",
                              diag_name(d, n->op), diag_name(d, v->name), elem_name(e),
                              diag_name(d, vars[i].first->name), elem_name(vars[i].elem));
        }
    if (*n_vars < MAX_VARS)
        vars[(*n_vars)++] = (Binding){p->type_var, v, e};
    return true;
}

/* Integers that were made of floats, read by what computes on floats alone. */
static void advise_floats(const Node *n, const OnnxSchema *s, size_t i, Diags *d) {
    const Value *v = n->in[i];
    if (v->def && !v->type.quant && elem_is_int(v->type.elem) && elem_bits(v->type.elem) <= 16 &&
        onnx_schema_allows(s, false, (int)i, ELEM_FLOAT))
        diag_note(d, n->loc,
                  "%s computes on floats: a DequantizeLinear before it gives it these (of Aidge's "
                  "networks the fake-quantized, expanded export does)",
                  diag_name(d, n->op));
}

/* Beyond ONNX: QOperators on integers of 4 bits, as Aidge writes them. */
static ElemType widened(const Node *n, ElemType e) {
    bool narrow = (e == ELEM_INT4 || e == ELEM_UINT4) && qop_of(n);
    return !narrow ? e : e == ELEM_INT4 ? ELEM_INT8 : ELEM_UINT8;
}

static bool check_types(const Node *n, const OnnxSchema *s, bool beyond, bool output, Binding *vars,
                        size_t *n_vars, Diags *d) {
    size_t count = output ? n->n_out : n->n_in;
    for (size_t i = 0; i < count; i++) {
        const Value *v = output ? n->out[i] : n->in[i];
        const SchemaParam *p = onnx_schema_param(s, output, (int)i);
        if (!p || !v || v->type.kind != TYPE_TENSOR || v->type.elem == ELEM_UNDEFINED)
            continue; /* of too many, check_count speaks */
        ElemType e = type_real_elem(v->type);
        if (!onnx_schema_allows(s, output, (int)i, (int)(beyond ? widened(n, e) : e))) {
            diag_error(d, value_loc(n, output, i, d), "%s does not take %s as %s '%s' at opset %d",
                       diag_name(d, n->op), type_text(n->graph->module->arena, v->type),
                       output ? "result" : "operand", p->name, (int)node_opset(n));
            if (!output)
                advise_floats(n, s, i, d);
            return false;
        }
        if (!check_var(n, p, output, i, vars, n_vars, d))
            return false;
    }
    return true;
}

static bool check_all_types(const Node *n, const OnnxSchema *s, bool beyond, Diags *d) {
    Binding vars[MAX_VARS];
    size_t n_vars = 0;
    return check_types(n, s, beyond, false, vars, &n_vars, d) &&
           !n->told && /* that results are stated wrongly, say */
           check_types(n, s, beyond, true, vars, &n_vars, d);
}

/* In an ONNX file; what passes make of a chain is spelled out before one is written. */
static bool is_too_new(const Node *n, unsigned flags) {
    return flags & VERIFY_ONNX && n->def && n->def->composite && node_opset(n) > 0 &&
           !onnx_schema_find(n->domain, n->op, (int)node_opset(n));
}

static bool check_schema(const Node *n, unsigned flags, Diags *d) {
    const OnnxSchema *s = is_too_new(n, flags) ? NULL : node_schema(n);
    if (!s) /* a custom operator, or a function of the model */
        return n->def == NULL || !domain_is_onnx(n->domain) || node_opset(n) == 0 ||
               diag_error(d, n->loc, "%s does not exist at opset %lld", diag_name(d, n->op),
                          (long long)node_opset(n));
    /* GroupNormalization of 18 never was anything else, and is run all the same */
    bool gone = (s->flags & SCHEMA_DEPRECATED) && !(s->flags & SCHEMA_ORT) &&
                onnx_schema_find(n->domain, n->op, s->since - 1);
    if (gone)
        return diag_error(d, n->loc, "%s does not exist any more at opset %lld",
                          diag_name(d, n->op), (long long)node_opset(n));
    return check_count(n, s, false, d) && check_count(n, s, true, d) &&
           (node_on_integers(n) || check_all_types(n, s, true, d));
}

bool node_types_fit(const Node *n, Diags *d) {
    const OnnxSchema *s = node_schema(n);
    return !s || check_all_types(n, s, false, d);
}

/* ---- one node ---- */

static bool call_verify(const Node *n, Diags *d) {
    const OpDef *op = n->def;
    OpCtx c;
    Type few[OP_FEW];
    QopView view;
    if (op)
        c = op_ctx_few(n, few, d);
    else if (!n->typed || !qop_of(n))
        return true;
    else if (!qop_view(n, &op, &view, d))
        return false;
    else
        c = qop_ctx(n, &view, d);
    return !op->verify || op->verify(&c);
}

typedef struct Domains {
    const Import *import;
    size_t left;
} Domains;

static bool next_domain(void *ctx, Str *domain) {
    Domains *all = ctx;
    if (!all->left)
        return false;
    all->left--;
    *domain = all->import++->domain;
    return true;
}

/* Every node lacks the same line: the first one tells. */
static bool no_opset(const Node *n, const Verify *v, const char *who) {
    if (map_set(v->implied, str_from(who), (void *)n)) {
        diag_error(v->d, n->loc, "%s: %s imports no opset of the default domain (said once)",
                   diag_name(v->d, n->op), who);
        diag_note(v->d, n->loc, "a line in front says which: import \"\" 21");
    }
    return false;
}

/* The names "" and "qxc" need no import: the first is checked as a whole, the second is ours. */
static bool check_import(const Node *n, const Verify *v) {
    Diags *d = v->d;
    const char *reader = node_import_implied(n);
    if (v->flags & VERIFY_WARN && reader && map_set(v->implied, n->domain, (void *)n))
        diag_warning(d, n->loc,
                     "the model does not import domain '%s': version %lld is taken, as %s does "
                     "(said once)",
                     diag_name(d, n->domain), (long long)node_opset(n), reader);
    if (node_imported(n) || str_is(n->domain, "qxc"))
        return true;
    const Module *m = n->graph->module;
    const Function *f = graph_function(n->graph);
    bool own = f && f->n_imports; /* without imports a function has the model's */
    Str who = own ? arena_strf(m->arena, "function '%s'", diag_name(d, f->name)) : STR("the model");
    if (domain_is_onnx(n->domain))
        return no_opset(n, v, who.s);
    diag_error(d, n->loc, "%s: %s does not import domain '%s'", diag_name(d, n->op), who.s,
               diag_name(d, n->domain));
    Domains all = {m->imports, m->n_imports};
    if (own)
        all = (Domains){f->imports, f->n_imports};
    diag_did_you_mean_next(d, n->loc, n->domain, next_domain, &all);
    return false;
}

static bool verify_node(const Node *n, const Verify *v) {
    Diags *d = v->d;
    if (n->misread)
        return true;
    if (!check_import(n, v) || (!is_own_form(n) && !check_schema(n, v->flags, d)))
        return false;
    if (node_in_function(n))
        return true; /* operands have no types there */
    if (node_reads_faulty(n))
        return true; /* one mistake, one error */
    int before = diags_errors(d);
    bool ok = call_verify(n, d) && (n->faulty || !v->quants || verify_node_quant(n, v->flags, d));
    return ok || diag_reason(d, ok, before, n->loc, node_text(n));
}

static void verify_graph(Graph *g, void *ctx) {
    Verify *v = ctx;
    if (graph_never_runs(g))
        return;
    FOR_NODES(n, g)
    v->ok = verify_node(n, v) && v->ok;
}

bool module_verify_with(Module *m, unsigned flags, Diags *d) {
    if (!verify_structure(m, d))
        return false;
    bool functions = verify_functions(m, flags, d), quants = verify_quants(m, d);
    bool sparse = verify_all_sparse(m, d);
    Verify v = {d, map_new(m->arena), flags, quants, quants && functions && sparse};
    module_each_graph(m, verify_graph, &v);
    return v.ok;
}

bool module_verify(Module *m, Diags *d) {
    return module_verify_with(m, VERIFY_ERRORS, d);
}

bool module_check(Module *m, unsigned flags, Diags *d) {
    bool resolved = module_resolve(m, d);
    bool inferred = flags & VERIFY_ONNX ? module_infer_onnx(m, d) : module_infer(m, d);
    return module_verify_with(m, flags, d) && resolved && inferred;
}
