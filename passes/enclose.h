/* Calls that are spelled out for as long as a model is decided on, and put back where nothing of
 * the body became integers.
 *
 * What runs, is observed and is decided on is the body; so calibration, and rules about what is in
 * it, need to know nothing of calls. Two borders keep the body apart (ir/ops/border.c): whatever
 * passes make of it, between them the results of the call are computed from its operands. So the
 * call may take the place of everything between, whatever that looks like by then.
 *
 * A rule that names the call is about everything between (Node.within), and about the borders. That
 * holds where a call has no borders as well, as the target lacks it. */
#ifndef QXC_PASSES_ENCLOSE_H
#define QXC_PASSES_ENCLOSE_H

#include "passes/pass.h"

/* Puts the borders around a node that is about to be replaced: its operands that may be floats and
 * are no constants come from the first, and its results go to the second. */
void enclose_call(Node *call, UniqueNames *names, const char *by);

/* Of a node that is about to be replaced for good: rules that name it are about its parts. */
void name_call(Node *call);

/* Whether the node is the border before a call, or the one behind it. */
bool is_call_begin(const Node *n);
bool is_call_end(const Node *n);

#endif
