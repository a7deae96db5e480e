/* Names of operators and attributes, as ONNX has them and as people write them who know other
 * tools. */
#ifndef QXC_IR_ONNX_NAMES_H
#define QXC_IR_ONNX_NAMES_H

#include "ir/onnx_schema.h"
#include "support/diag.h"

/* Whether any opset has that operator, or had it in the days when ONNX tried some out. */
bool onnx_has_operator(Str op);
/* A note with ONNX's name for what other tools call so, where there is one. */
bool onnx_foreign_name(Diags *d, Loc at, Str op);
/* The same, or a name of ONNX's that is close. */
bool onnx_did_you_mean(Diags *d, Loc at, Str op);
/* The same of an attribute of that operator. */
void onnx_attr_did_you_mean(Diags *d, Loc at, Str word, const OnnxSchema *schema);

#endif
