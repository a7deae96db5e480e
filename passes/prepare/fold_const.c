/* Computes nodes whose inputs are constants, with the kernels that would run them (exec/fold.h). */
#include "exec/fold.h"
#include "passes/edit.h"

static void say_too_large(const Node *n, void *ctx) {
    pass_remark(ctx, n,
                "its operands are constants, but its result is too large to compute it "
                "ahead (-max-memory)");
}

bool pass_fold_const(Module *m, PassContext *c) {
    if (module_fold(m, &(FoldOptions){.too_large = say_too_large, .ctx = c}))
        edit_sweep(m);
    return true;
}
