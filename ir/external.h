/* ONNX's external data: elements of tensors in files beside the model. Files are mapped when first
 * named, never copied, only taken from the folders given, and stay mapped with the module. Both
 * readers use it, so that what one takes the other takes too. */
#ifndef QXC_IR_EXTERNAL_H
#define QXC_IR_EXTERNAL_H

#include "ir/ir.h"

typedef struct ExternalFiles {
    Module *module;
    Folders in;
    bool references_only; /* the file is not looked for */
    Map *files;           /* by location; NULL until the first */
} ExternalFiles;

/* Finds the elements that t->external tells of and points t->data there; type and dimensions are
 * known. A file that is not there is a warning, and data stay NULL: the reference is kept. False
 * after a diagnostic at `at`. */
bool external_read(ExternalFiles *x, Tensor *t, Loc at, Diags *d);

#endif
