/* How large the channels are that can be scaled (passes/channels.h), on calibration data, and which
 * are outliers: few channels of a value that are many times as large as all others, as transformers
 * have them (Dettmers, Lewis, Belkada, Zettlemoyer 2022, section 4). Memory is the module's. */
#ifndef QXC_PASSES_QUANTIZE_OUTLIERS_H
#define QXC_PASSES_QUANTIZE_OUTLIERS_H

#include "passes/channels.h"
#include "passes/pass.h"

typedef struct ChannelSizes {
    Channels channels;
    float **largest; /* by value id: the largest |x| of each channel; NULL: not looked at */
    Value **values;  /* those that have one */
    size_t n_values, cap_values;
} ChannelSizes;

/* Of a module as it is; all sizes are 0. */
ChannelSizes *channel_sizes_new(Module *m, Diags *d);
/* Takes in what a value is in one sample; a CalibObserver over a ChannelSizes. */
void channel_sizes_look(void *sizes, const Value *v, Type type, const void *data);

typedef struct Outliers {
    bool *groups;     /* by group (channels_group): it has one */
    size_t n, values; /* channels, and the values that have them */
} Outliers;

/* Those among what was seen; none where `sizes` is NULL. */
Outliers outliers_find(ChannelSizes *sizes);

#endif
