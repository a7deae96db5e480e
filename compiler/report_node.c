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

/* ---- where the page does not say what the runtime fuses: as the conversions tell ---- */

static bool reads_dequantized(const Node *n) {
    bool any = false;
    for (size_t i = 0; n && n->def && i < n->n_in; i++) {
        if (!n->in[i] || !quant_rule_is_data(&n->def->quant, i) || value_is_const(n->in[i]))
            continue;
        if (!onnx_dequantize_of(n->in[i]))
            return false;
        any = true;
    }
    return any;
}

static bool is_clamp(const Node *n) {
    return n && n->def && n->def->quant.kind == QUANT_CLAMP;
}

/* The result is quantized, perhaps behind a Relu. */
static bool is_quantized_next(const Uses *u, const Node *n) {
    const Node *next = n->n_out && n->out[0] ? uses_only_node(u, n->out[0]) : NULL;
    if (is_clamp(next) && next->out[0])
        next = uses_only_node(u, next->out[0]);
    return next && node_conversion(next) == CONVERT_QUANTIZE;
}

/* The sums of a product may leave as floats. */
static bool between_conversions(const Uses *u, const Node *n) {
    const Value *x = node_input(n, 0);
    const Node *reads = is_clamp(n) && x && !reads_dequantized(n) ? x->def : n;
    bool product = n->def && n->def->quant.kind == QUANT_MAC;
    return reads_dequantized(reads) && (product || is_quantized_next(u, n));
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
    const char *said = remark_on(j, n);
    if (!runtime && !in_float && !said && between_conversions(u, n))
        r.kind = "integer";
    if (runtime && f.kind != FUSION_NONE)
        r.runs = f.kind == FUSION_REMOVED ? "nothing" : f.op;
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
