/* Scan before opset 9: batches of sequences. */
#include "ir/ops/loop.h"
#include "ir/provenance.h"

/* An attribute that opset 8 has not: the node was taken there. */
#define MARKS "scan_input_directions"

/* What operand i is for each run of the body: without its batch, and without the elements of a
 * sequence where it is scanned (`fewer` is 2). `first` has the dimensions that operands before it
 * have, which are the same for all: batch, length; -1: not known. */
static bool fits_body(const OpCtx *c, size_t i, const Value *inner, int fewer, int64_t *first) {
    Type t = op_type(c, i), part = inner->type;
    if (t.kind != TYPE_TENSOR || t.rank < 0)
        return true;
    if (t.rank < fewer)
        return op_error_in(c, i, "has rank %d, without %s", t.rank,
                           fewer == 1 ? "a batch" : "a batch of sequences");
    for (int k = 0; k < fewer; k++) {
        int64_t n = t.dims[k].value;
        if (n >= 0 && first[k] >= 0 && n != first[k])
            return op_error_in(c, i, "has %s %lld, operands before it %lld",
                               k ? "sequences of length" : "a batch of", (long long)n,
                               (long long)first[k]);
        first[k] = first[k] < 0 ? n : first[k];
    }
    bool same = part.kind != TYPE_TENSOR || part.rank < 0 || part.rank == t.rank - fewer;
    for (int k = 0; same && part.kind == TYPE_TENSOR && k < part.rank; k++)
        same = part.dims[k].value < 0 || t.dims[k + fewer].value < 0 ||
               part.dims[k].value == t.dims[k + fewer].value;
    return same || op_error_in(c, i, "is %s, of which the body's '%s' is no part: %s",
                               type_text(c->arena, t), diag_name(c->d, inner->name),
                               type_text(c->arena, part));
}

bool scan_batch_verify(const OpCtx *c) {
    const ScanAttrs *a = c->attrs;
    int64_t first[2] = {-1, -1};
    size_t all = c->n_in ? c->n_in - 1 : 0; /* behind the lengths of sequences */
    if (node_attr(c->node, MARKS))          /* is in the form of opset 9 already */
        return true;
    if (a->num_scan_inputs < 1 || (uint64_t)a->num_scan_inputs > all)
        return op_error_attr(c, "num_scan_inputs", "num_scan_inputs is %lld, of %zu operands",
                             (long long)a->num_scan_inputs, all);
    if (a->body->n_in != all)
        return op_error_attr(c, "body", "the body has %zu inputs, must have %zu", a->body->n_in,
                             all);
    for (size_t i = 0; i < all; i++) {
        bool scanned = i + (size_t)a->num_scan_inputs >= all;
        if (!fits_body(c, i + 1, a->body->in[i], scanned ? 2 : 1, first))
            return false;
    }
    return true;
}

/* One sample of a Scan of opset 8: the form of opset 9 in a body of its own, whose inputs and
 * results are those of `n` without the batch. */
static Graph *scan_sample(const Node *n, UniqueNames *names) {
    Module *m = n->graph->module;
    Graph *g = graph_new(m, unique_name(names, STR("sample")));
    Node *scan = node_new(g, n->domain, n->op, n->n_in - 1, n->n_out);
    scan->loc = n->loc;
    scan->def = n->def;
    for (size_t i = 0; i < scan->n_in; i++)
        scan->in[i] = graph_add_input(g, unique_name(names, n->in[i + 1]->name), TYPE_UNKNOWN);
    for (size_t i = 0; i < n->n_out; i++) {
        Str name = n->out[i] ? n->out[i]->name : STR("unused");
        graph_add_output(g, node_add_output(scan, i, unique_name(names, name), TYPE_UNKNOWN));
    }
    node_set_attr(scan, node_attr(n, "body"));
    node_set_int(scan, "num_scan_inputs", node_int(n, "num_scan_inputs", 0));
    node_attr(scan, "body")->v.g[0]->owner = scan;
    node_from(scan, n, "upgrade");
    graph_append(g, scan);
    return g;
}

/* Opset 8 scans batches of sequences: of opset 9 a Scan along the batch, of one Scan for each
 * sample. That this was done shows in an attribute that opset 8 has not. */
bool scan_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    if (from >= 9 || to < 9 || node_attr(n, MARKS))
        return true;
    for (size_t i = 0; i < n->n_in; i++)
        if (!n->in[i] != (i == 0))
            return diag_error(d, n->loc,
                              i ? "Scan needs operand %zu"
                                : "Scan of opset 8 has sequences of several lengths, which opset 9 "
                                  "cannot state (operand %zu)",
                              i);
    const Attr *directions = node_attr(n, "directions");
    int64_t scanned = node_int(n, "num_scan_inputs", 0);
    if (scanned < 1 || (uint64_t)scanned >= n->n_in)
        return diag_error(d, n->loc, "num_scan_inputs is %lld, of %zu operands", (long long)scanned,
                          n->n_in ? n->n_in - 1 : 0);
    size_t count = (size_t)scanned, all = n->n_in - 1;
    int64_t *zeros = NEW_ARRAY(n->graph->module->arena, int64_t, all + count + 1);
    memset(zeros, 0, (all + count + 1) * sizeof *zeros);
    Graph *g = scan_sample(n, names);
    node_set_ints(g->first, MARKS, directions && directions->n ? directions->v.i : zeros,
                  directions && directions->n ? directions->n : count);
    node_drop_attr(n, "directions");
    node_set_ints(n, MARKS, zeros, all);
    node_set_int(n, "num_scan_inputs", (int64_t)all);
    Attr body = *node_attr(n, "body");
    body.v.g = arena_copy(n->graph->module->arena, &g, sizeof(Graph *));
    node_set_attr(n, &body);
    g->owner = n;
    memmove(n->in, n->in + 1, all * sizeof *n->in);
    n->n_in = all;
    return true;
}
