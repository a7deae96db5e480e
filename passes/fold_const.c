/* Computes nodes whose inputs are constants, with the kernels that would run them (exec/fold.h). */
#include "exec/fold.h"
#include "passes/edit.h"

bool pass_fold_const(Module *m, PassContext *c) {
    (void)c;
    if (module_fold(m, NULL))
        edit_sweep(m);
    return true;
}
