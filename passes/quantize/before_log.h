/* Products whose results a logarithm reads: a spectrum on its way to decibels, the bands of a mel
 * spectrogram. What 8 bits round to 0 there is far off behind it, and without data nobody sees it.
 * Not where a constant hides small numbers, as in log(1 + x) or log(max(x, 1)). A Log in another
 * graph than the product is not seen. */
#ifndef QXC_PASSES_QUANTIZE_BEFORE_LOG_H
#define QXC_PASSES_QUANTIZE_BEFORE_LOG_H

#include "ir/ir.h"

/* By node id, in the module's arena: the last product before a Log and the one before that, with
 * powers, roots, sums and moved elements between them. */
const bool *before_log(Module *m);

#endif
