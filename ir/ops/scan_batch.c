/* Scan before opset 9: batches of sequences. */
#include "ir/ops/loop.h"
#include "ir/provenance.h"

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
    static const char marks[] = "scan_input_directions";
    if (from >= 9 || to < 9 || node_attr(n, marks))
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
    node_set_ints(g->first, marks, directions && directions->n ? directions->v.i : zeros,
                  directions && directions->n ? directions->n : count);
    node_drop_attr(n, "directions");
    node_set_ints(n, marks, zeros, all);
    node_set_int(n, "num_scan_inputs", (int64_t)all);
    Attr body = *node_attr(n, "body");
    body.v.g = arena_copy(n->graph->module->arena, &g, sizeof(Graph *));
    node_set_attr(n, &body);
    g->owner = n;
    memmove(n->in, n->in + 1, all * sizeof *n->in);
    n->n_in = all;
    return true;
}
