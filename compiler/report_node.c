/* One node in the report. */
#include "compiler/report.h"
#include "passes/target/fusion.h"

/* What a pass said of it when it decided. */
static const char *remark_on(const Job *j, const Node *n) {
    for (size_t i = 0; i < j->ctx.n_remarks; i++) {
        const Remark *r = &j->ctx.remarks[i];
        if (r->node == n || (n->name.n && str_eq(r->name, n->name) && str_eq(r->op, n->op)))
            return r->reason;
    }
    return NULL;
}

static bool has_integers(const Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && op_quant(n->out[i]))
            return true;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && op_quant(n->in[i]))
            return true;
    return false;
}

typedef struct Count {
    const TargetPage *target;
    const Uses *uses;
    size_t n;
} Count;

static void count_graph(Graph *g, void *ctx) {
    Count *c = ctx;
    FOR_NODES(n, g)
    if (node_is(n, "MatMul") || node_is(n, "Gemm"))
        c->n += fusion_of(c->target, n, c->uses).kind == FUSION_ROUNDED;
}

size_t report_rounded(const Job *j, Module *m) {
    if (!j->ctx.target->n_fusions || (j->form != FORM_QDQ && j->form != FORM_QOP))
        return 0;
    Arena *outer = scratch_begin(m);
    Count c = {j->ctx.target, uses_new(m), 0};
    module_each_graph(m, count_graph, &c);
    scratch_end(m, outer);
    return c.n;
}

NodeReport report_node(const Job *j, const Node *n, const Uses *u) {
    bool in_float = j->c_floats && j->c_floats[n->id];
    NodeReport r = {n, has_integers(n) && !in_float ? "integer" : "float", NULL, NULL};
    Fusion f = fusion_of(j->ctx.target, n, u);
    bool runtime = j->ctx.target->n_fusions > 0;
    if (f.kind == FUSION_CONVERSION) {
        r.kind = "conversion";
        return r;
    }
    bool fused =
        f.kind == FUSION_QOPERATOR || f.kind == FUSION_INTEGERS || f.kind == FUSION_REMOVED;
    if ((f.kind == FUSION_ALREADY && !in_float) || (fused && runtime))
        r.kind = "integer";
    if (runtime && f.kind != FUSION_NONE)
        r.runs = f.kind == FUSION_REMOVED ? "nothing" : f.op;
    const char *said = remark_on(j, n);
    if (said && fused && runtime)
        r.why = arena_strf(n->graph->module->arena,
                           "%s; between conversions as it is, %s makes it integer", said,
                           j->ctx.target->runtime)
                    .s;
    else if (runtime && f.kind == FUSION_ROUNDED)
        r.why = "its weights alone are integers; MatMulNBits rounds its input to 8 bits, too";
    else if (strcmp(r.kind, "float") == 0)
        r.why = said ? said : runtime ? f.why : NULL;
    return r;
}
