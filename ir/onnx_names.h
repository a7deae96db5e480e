/* Names of operators and attributes, as ONNX has them and as people write them who know other
 * tools. */
#ifndef QXC_IR_ONNX_NAMES_H
#define QXC_IR_ONNX_NAMES_H

#include "ir/onnx_schema.h"
#include "support/diag.h"

/* Whether any opset has that operator, or had it in the days when ONNX tried some out. */
bool onnx_has_operator(Str op);
/* A note with the name that was meant, where there is a guess. */
bool onnx_did_you_mean(Diags *d, Loc at, Str op);
/* The same of an attribute of that operator. */
void onnx_attr_did_you_mean(Diags *d, Loc at, Str word, const OnnxSchema *schema);

#endif
