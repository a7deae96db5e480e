/* mac_data, node by node in the order of the graph: what meets the weights of a node is what the
 * model computes once all before it are quantized, mended as they are by then, and `cross` says how
 * it differs from the float model. So a node makes up for what those before it have lost, as in
 * GPTQ (Frantar et al. 2022) and in sequential bias correction (Nagel et al. 2019, section 4.2.1).
 *
 * Both models run in step, from one such node to the next, on all samples: each node runs once for
 * a sample. What later nodes read is kept meanwhile, which bounds how many samples there are. Of
 * many samples some are left for who judges the result, where somebody does (`judged`). Models that
 * cannot be run so (branches, loops, shapes that data decide) are left to mac_data.
 *
 * The other arguments are those of mac_data; what `fn` gives a node is there at once. */
#ifndef QXC_PASSES_QUANTIZE_IN_TURN_H
#define QXC_PASSES_QUANTIZE_IN_TURN_H

#include "passes/quantize/mac_data.h"

bool mac_in_turn(Module *m, PassContext *c, const char *pass, bool judged, MacGramFn *gram,
                 MacDataFn *fn, void *ctx);

#endif
