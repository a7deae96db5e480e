/* Loop and Scan: only their laws. A value that is carried from one iteration to the next is the
 * same buffer each time, so its quantization is one: of what it starts as, of the body's input and
 * result, and of the node's result. Scan has a batch dimension before opset 9. */
#include "ir/ops/bind.h"

typedef struct LoopAttrs {
    Graph *body;
} LoopAttrs;

static const AttrSpec loop_attrs[] = {
    A_GRAPH_REQUIRED(LoopAttrs, body),
    A_END,
};

typedef struct ScanAttrs {
    Graph *body;
    int64_t num_scan_inputs;
    Ints scan_input_axes, scan_output_axes, scan_input_directions, scan_output_directions;
} ScanAttrs;

static const AttrSpec scan_attrs[] = {
    A_GRAPH_REQUIRED(ScanAttrs, body),
    A_INT_REQUIRED(ScanAttrs, num_scan_inputs),
    A_INTS(ScanAttrs, scan_input_axes),
    A_INTS(ScanAttrs, scan_output_axes),
    A_INTS(ScanAttrs, scan_input_directions),
    A_INTS(ScanAttrs, scan_output_directions),
    A_END,
};

static bool same(const OpCtx *c, const char *what, const Value *x, const Value *y) {
    if (!x || !y || x->type.kind != TYPE_TENSOR || y->type.kind != TYPE_TENSOR ||
        bind_equal_quant(x, y))
        return true;
    return op_error(c, "%s: '%s' is %s, '%s' is %s: requantize at the end of the body, or before",
                    what, diag_name(c->d, x->name), type_text(c->arena, x->type),
                    diag_name(c->d, y->name), type_text(c->arena, y->type));
}

/* `n` values are carried; they stand behind `in`, `body_in` and `body_out` others. */
static bool carried(const OpCtx *c, const Graph *body, size_t n, size_t in, size_t body_in,
                    size_t body_out) {
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        const Value *start = op_in(c, in + i), *inner = body->in[body_in + i];
        const Value *next = body->out[body_out + i];
        ok = same(c, "a carried value", start, inner) && same(c, "a carried value", inner, next) &&
             same(c, "a carried value", next, c->node->out[i]) && ok;
    }
    return ok;
}

/* Elements of the node's tensor `whole` are the body's values `part`, along a new axis. */
static bool scanned(const OpCtx *c, const Value *part, const Value *whole) {
    const Quant *q = op_quant(part);
    if (part && whole && q && !quant_is_per_tensor(q))
        return op_error(c, "'%s' is scanned, so it is quantized per tensor",
                        diag_name(c->d, part->name));
    return same(c, "a scanned value", part, whole);
}

static bool counts(const OpCtx *c, const Graph *g, size_t in, size_t out) {
    if (g->n_in != in)
        return op_error_attr(c, "body", "the body has %zu inputs, must have %zu", g->n_in, in);
    if (g->n_out != out)
        return op_error_attr(c, "body", "the body yields %zu values, must yield %zu", g->n_out,
                             out);
    return true;
}

static bool loop_verify(const OpCtx *c) {
    const Graph *g = ((const LoopAttrs *)c->attrs)->body;
    size_t n = c->n_in < 2 ? 0 : c->n_in - 2;
    if (c->n_out < n)
        return op_error(c, "carries %zu values and has %zu results", n, c->n_out);
    if (!counts(c, g, n + 2, c->n_out + 1))
        return false;
    bool ok = carried(c, g, n, 2, 2, 1);
    for (size_t i = n; i < c->n_out; i++)
        ok = scanned(c, g->out[1 + i], c->node->out[i]) && ok;
    return ok;
}

static bool scan_verify(const OpCtx *c) {
    const ScanAttrs *a = c->attrs;
    if (c->opset < 9)
        return true;
    if (a->num_scan_inputs < 1 || (uint64_t)a->num_scan_inputs > c->n_in)
        return op_error_attr(c, "num_scan_inputs", "num_scan_inputs is %lld, of %zu operands",
                             (long long)a->num_scan_inputs, c->n_in);
    size_t n = c->n_in - (size_t)a->num_scan_inputs;
    if (c->n_out < n)
        return op_error(c, "carries %zu values and has %zu results", n, c->n_out);
    if (!counts(c, a->body, c->n_in, c->n_out))
        return false;
    bool ok = carried(c, a->body, n, 0, 0, 0);
    for (size_t i = n; i < c->n_in; i++)
        ok = scanned(c, a->body->in[i], op_in(c, i)) && ok;
    for (size_t i = n; i < c->n_out; i++)
        ok = scanned(c, a->body->out[i], c->node->out[i]) && ok;
    return ok;
}

/* Element types only: shapes may change from one iteration to the next. */
static void infer_results(OpCtx *c, const Graph *g, size_t skipped) {
    for (size_t i = 0; i < c->n_out && i + skipped < g->n_out; i++) {
        Type t = g->out[i + skipped]->type;
        if (t.kind == TYPE_TENSOR)
            c->out[i] = type_tensor(type_real_elem(t), -1, NULL);
    }
}

static bool loop_infer(OpCtx *c) {
    infer_results(c, ((const LoopAttrs *)c->attrs)->body, 1);
    return true;
}

static bool scan_infer(OpCtx *c) {
    infer_results(c, ((const ScanAttrs *)c->attrs)->body, 0);
    return true;
}

const OpDef op_Loop = {
    .domain = "",
    .name = "Loop",
    .attrs_size = sizeof(LoopAttrs),
    .attrs = loop_attrs,
    .verify = loop_verify,
    .infer = loop_infer,
};

/* Opset 8 scans batches of sequences, of lengths that the first operand gives. */
static bool scan_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)names;
    return from >= 9 || to < 9 ||
           diag_error(d, n->loc, "Scan of opset %lld has a batch axis, which it lost with opset 9",
                      (long long)from);
}

const OpDef op_Scan = {
    .domain = "",
    .name = "Scan",
    .attrs_size = sizeof(ScanAttrs),
    .attrs = scan_attrs,
    .verify = scan_verify,
    .infer = scan_infer,
    .upgrade = scan_upgrade,
};
