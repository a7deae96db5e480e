/* Binding of nodes whatever their operator is: rounding to grids, stand-ins in double and on
 * floats, graph inputs and outputs. */
#ifndef QXC_IR_OPS_BIND_NODE_H
#define QXC_IR_OPS_BIND_NODE_H

#include "ir/ops/bind.h"
#include "program/binder.h"

/* Binds one node, then rounds its results to their grids where their types say so. */
bool bind_node(Binder *b, const Node *n);
/* The buffer of a graph input; rounds it where its type says so. */
void bind_input(Binder *b, const Value *v, int port);
/* Gives the value's bytes to an output port, by a copy where they have to stay elsewhere. */
void bind_output(Binder *b, const Value *v, int port);
/* Whether a kernel on integers cannot hold what the node computes on, whatever the operator. */
bool binder_needs_double(const Node *n);

/* Rounds a float value to a grid of more than 16 bits: from now on another buffer is v. */
bool bind_rounded_wide(Binder *b, const Node *n, const Value *v);

/* Whether kernels of this node, as its operator's row says (QuantRule.same_storage,
 * MacRule.computed_signed), want its operands and result in another storage type than they have. */
bool storage_differs(const Node *n);
/* Binds such a node: converts, computes, converts back. Program.converted says how much. */
bool bind_in_one_storage(Binder *b, const Node *n);

/* Of the buffers from `first` on, those of stand-ins are nobody's values: nothing reports or
 * compares them. */
void binder_forget_stand_ins(Binder *b, size_t first);
/* A node on floats of fewer than 32 bits, on floats instead; else the node itself. Then results,
 * once they are bound, are rounded to their types. */
const Node *bind_half_stand_in(Binder *b, const Node *n);
void bind_half_done(Binder *b, const Node *n, const Node *stand_in, size_t first_buffer);
bool bind_half_round(Binder *b, const Node *n, const Value *v);
/* Whether results are numbers that operands, of the same type, have: nothing to round. */
bool bind_half_moves(const Node *n);
/* Of a graph input or output of such floats: from and to their bits. */
bool bind_half_load(Binder *b, const Value *v, int from, int to);
bool bind_half_store(Binder *b, const Value *v, int from, int to);

#endif
