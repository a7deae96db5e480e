/* Messages about an ONNX model quote the line of -emit=qir that shows the node. */
#ifndef QXC_COMPILER_PLACES_H
#define QXC_COMPILER_PLACES_H

#include "compiler/session.h"

/* Lets messages about the modules that were read from ONNX files quote their text. Nothing is done
 * until the first such message: then the file is read once more, and printed as it was before any
 * pass. What cannot be read has no text, and gets none. */
void places_show(Session *s);

#endif
