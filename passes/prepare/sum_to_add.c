/* Sum of two operands is Add, for which runtimes have an integer kernel; for Sum they compute in
 * float. */
#include "passes/pass.h"

static const char PASS_NAME[] = "sum-to-add";

static void rewrite_graph(Graph *g, void *ctx) {
    const PassContext *c = ctx;
    FOR_NODES(n, g) {
        if (!node_is(n, "Sum") || n->n_in != 2 || !n->in[0] || !n->in[1])
            continue;
        node_becomes(n, PASS_NAME);
        n->op = STR("Add");
        op_resolve(n, c->d);
    }
}

bool pass_sum_to_add(Module *m, PassContext *c) {
    module_each_graph(m, rewrite_graph, c);
    return true;
}
