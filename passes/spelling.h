/* How ONNX spelled a quantization: the names, order and layout of the Q and DQ nodes, scales and
 * zero points that raise-quant takes away, and that lower-qdq and lower-qop put back.
 *
 * The spelling hangs on the quantized value (Value.onnx; `onnx` lines in the text): one unlinked
 * node for each QuantizeLinear and DequantizeLinear, whose attributes are those of the ONNX node
 * and the keys below. It holds names and places but never numbers: parameters come from the type,
 * so an edited scale wins, and keeps its name where nobody else has it.
 *
 *   in="f"                 Q: name of the float operand; absent: the value's own name
 *   out="i"                name of the result; absent: the value's own name
 *   of="i"                 DQ: name of the integers; absent: what Q made, else the value's own name
 *   scale=, zero_point=    a name, or a tensor where its shape or clauses are not the usual ones
 *   data=tensor(...)       Q: the float constant it quantized
 *   at=7                   place among the nodes of the graph; absent: only parameters have names
 *   to=["y:0"]             DQ, where there are several: result and operand of each consumer
 *   stated=["in", "out"]   what ONNX stated a type of
 *   local=1                scale and zero point stand in the node's own graph
 * Two words stand in place of an operator: `float`, `integers`: the value had no Q of its own.
 *
 * Memory is the module's; nothing here fails. What does not fit any more (an edited graph) is left
 * to what lowering does by itself. */
#ifndef QXC_PASSES_SPELLING_H
#define QXC_PASSES_SPELLING_H

#include "ir/ops/op.h"

/* The attribute of a note (an `onnx` line), NULL where it is absent or empty; its name (of a
 * string, or of a tensor), its integer, or `none`. */
const Attr *said(const Node *note, const char *key);
Str said_name(const Node *note, const char *key, Str none);
int64_t said_int(const Node *note, const char *key, int64_t none);
bool notes_q(const Node *note);
bool notes_dq(const Node *note);
/* The value had no Q of its own, being `word` (float, integers). */
bool spelled_plain(const Value *v, const char *word);

#endif
