/* Nodes whose operator nobody knows: most likely a slip of an editor's. */
#ifndef QXC_COMPILER_UNKNOWN_H
#define QXC_COMPILER_UNKNOWN_H

#include "compiler/options.h"
#include "passes/library.h"

/* Warns of operators that no opset of ONNX has, unless they are `refused` later, of functions that
 * the model lacks, of names close to one of a domain that qxc knows, and of flags that are neither
 * 0 nor 1. */
void warn_of_strange_nodes(const Module *m, bool refused, Diags *d);
/* Operators of ONNX's own domain that no opset of it has, nor the library, are errors, but for
 * those that globs of `keep` name: runtimes take operators of their users in that domain. `*kept`
 * says whether there is one of these. */
bool module_operators_known(Module *m, Library *library, const TextList *keep, bool *kept,
                            Diags *d);

#endif
