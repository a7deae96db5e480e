/* Laws of sparse tensors, as ONNX's checker has them: values in one row, an index for each that
 * lies in the tensor, indices that ascend. Every fault is reported at the list that has it. */
#ifndef QXC_IR_VERIFY_SPARSE_H
#define QXC_IR_VERIFY_SPARSE_H

#include "ir/ir.h"

bool verify_sparse(const SparseTensor *s, Diags *d);
/* All of a module: constants, defaults and attributes. */
bool verify_all_sparse(Module *m, Diags *d);

#endif
