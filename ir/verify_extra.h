/* Names of values within raw fields. Quantization annotations, device configurations and training
 * graphs stand in `extra` as the ONNX messages that they were (ir/extra.h), so that an edit which
 * renames a value does not reach them: a name that no value has is warned of. */
#ifndef QXC_IR_VERIFY_EXTRA_H
#define QXC_IR_VERIFY_EXTRA_H

#include "ir/ir.h"

void verify_extra(Module *m, Diags *d);

#endif
