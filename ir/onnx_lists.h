/* The lists of values in ONNX's graphs that the IR keeps no order of: which values may stand in
 * each, and in what order they do by rule. Where a file has another order the ONNX reader notes it
 * as places (ir/extra.h), and the writer follows the note.
 *
 * The items are the graph's, the array is in the arena. Nothing fails. */
#ifndef QXC_IR_ONNX_LISTS_H
#define QXC_IR_ONNX_LISTS_H

#include "ir/extra.h"
#include "ir/ir.h"

typedef enum OnnxList { /* by the place that notes another order */
                        LIST_INITIALIZERS = PLACE_INITIALIZER,
                        LIST_VALUE_INFOS = PLACE_VALUE_INFO,
                        LIST_SPARSE_INITIALIZERS = PLACE_SPARSE_INITIALIZER,
} OnnxList;

typedef struct ValueList {
    Value **items;
    size_t n, cap;
} ValueList;

/* By rule. Initializers: defaults of inputs, then constants. Infos: inputs (of functions only, as
 * those of graphs state theirs), constants, results of nodes; of all that might have one. */
ValueList onnx_list(Arena *a, const Graph *g, OnnxList which);

#endif
