/* Options and rules that were given and can do nothing: they are named, not ignored. They report
 * only; memory is the session's arena. */
#ifndef QXC_COMPILER_WITHOUT_EFFECT_H
#define QXC_COMPILER_WITHOUT_EFFECT_H

#include "compiler/pipeline.h"

/* Options about another command, -emit or kind of quantization than this one's, and those that
 * exclude each other: errors of usage (false). Options given twice, of which the first does
 * nothing: warnings. */
bool options_fit(const Options *o, Diags *d);

/* Whether the option has an effect with these. */
bool option_goes_with(const OptionDef *def, const Options *o);
/* Whether the command line has not settled what this option says, and has room for it. */
bool option_is_open(const Options *o, const OptionDef *def);

/* What can be done where no type came of a model that another tool quantized. */
#define WRITTEN_IN_FLOATS                                                                          \
    "-form=true -o MODEL.qir writes the model as qxc computes it, in floats, and -calib=PATH "     \
    "quantizes that"

/* Of a model that is quantized: what decides a quantization does nothing. A warning, but an error
 * (false) for data where the result is to be float with statistics: nothing would come of it. */
bool warn_of_idle_options(const Job *j, Arena *a);

/* Of a model that is written as it is, or as float C: the same options, and those about the result
 * of decisions. A warning. */
void warn_of_nothing_decided(const Job *j, Arena *a);

/* Of a whole scheme: with -dynamic and -weight-only, rules about activations do nothing. */
void warn_of_idle_rules(const Job *j);

#endif
