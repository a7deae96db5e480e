/* Computes nodes whose inputs are constants, with the kernels that would run them (exec/fold.h). */
#include "exec/fold.h"
#include "passes/annotations.h"
#include "passes/edit.h"

static void say_too_large(const Node *n, void *ctx) {
    pass_remark(ctx, n,
                "its operands are constants, but its result is too large to compute it "
                "ahead (-max-memory)");
}

/* They name constants, which then have a reader that is no node. */
static void look_for_annotations(Graph *g, void *ctx) {
    bool *any = ctx;
    *any = *any || annotations_of(g).n > 0;
}

bool pass_fold_const(Module *m, PassContext *c) {
    bool named = false;
    module_each_graph(m, look_for_annotations, &named);
    if (module_fold(m, &(FoldOptions){.too_large = say_too_large, .ctx = c, .drops = !named}))
        edit_sweep(m);
    return true;
}
