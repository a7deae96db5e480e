/* Small edits that several passes share. All memory is the module's. */
#ifndef QXC_PASSES_EDIT_H
#define QXC_PASSES_EDIT_H

#include "passes/pass.h"

/* The data of a value that is a float constant of known content, else NULL. */
const Tensor *edit_float_const(const Value *v);
/* Whether x has at least as many dimensions as t: with more of them a constant gives what it is
 * added to or multiplied by more, too. */
bool edit_keeps_rank(const Tensor *t, Type x);
/* Whether a bias of this shape is one number for all or one a channel: every dimension but the last
 * is 1, the last 1 or `channels`. Gemm also takes C of shape [M,1], which is neither. */
bool edit_bias_fits(const Tensor *bias, size_t channels);
/* The range a stat or a float constant states, over all its entries. False where it is not known,
 * not finite, or upside down. */
bool edit_range(const Value *v, float *min, float *max);
/* Whether the value is a float constant without NaN and infinity. */
bool edit_is_finite(const Value *v);
/* Whether all of these numbers are finite as floats. */
bool edit_all_finite(const double *v, size_t n);
/* The quantization of a value that is `float ~ q`, else NULL. */
const Quant *edit_tilde(const Value *v);
/* Whether its quantization is written, and not left open (`?`): other numbers would not fit it. */
bool edit_is_decided(const Value *v);
/* What is left open of a result that goes is open of the one in its place. */
void edit_hand_on_open(const Value *gone, Value *result);
/* A new float constant of the same dims as `like`; write its elements through `*data`. */
Value *edit_new_floats(Graph *g, UniqueNames *names, Str base, int rank, const int64_t *dims,
                       float **data);
/* The bias of a node that has room for one, as `channels` doubles, zeros where there is none; NULL
 * where it is not a float constant of one number or one a channel. */
double *edit_bias(const Node *n, size_t channels);
/* Another bias, as a new constant made from the old one and from `other` (NULL: from that alone).
 */
void edit_set_bias(Node *n, UniqueNames *names, const double *b, size_t channels, const char *pass,
                   const Node *other);
/* `now` takes the place of `old`, which a graph yields: it goes out under its name, with what was
 * said of it, and the two change names. */
void edit_take_name(Value *old, Value *now);
/* The node becomes an Identity of its first operand. */
void edit_pass_on(Node *n, const char *pass, Diags *d);
/* Where nobody but one node read the constant `old`, and now reads `now` in its place: they change
 * names and places, so that the text is the same but for the numbers. */
void edit_take_over(const Uses *uses, Value *old, Value *now);
/* Removes constants that nothing uses any more, nor an annotation of ONNX names; or but those of a
 * set made earlier by edit_annotated: constants, by id, that annotations alone name. */
void edit_sweep(Module *m);
void edit_sweep_but(Module *m, const Map *spare);
Map *edit_annotated(Module *m);
/* Removes nodes with an id of `first` or above whose results nobody reads. */
void edit_drop_dead(Module *m, uint32_t first);
/* The same of these nodes, some of which may have been removed before. */
void edit_drop_unread(Module *m, Node *const *nodes, size_t n);
/* Drops what the file said of the graph's outputs beside what it said of their values: their types,
 * names or places are others now. */
void edit_forget_outputs(Graph *g);
/* Drops the import of operators of which none is left. */
void edit_forget_import(Module *m, Str domain);
/* Passes walk a graph before the bodies in it, and place what they make of an input or a constant
 * before its first reader on that walk. Where a body that stands before this one reads it as well,
 * it moves up to that. */
void edit_order(Module *m);
/* How many elements share one index of `axis`, and the stride between indices. */
typedef struct AxisWalk {
    size_t outer, axis, inner;
} AxisWalk;
AxisWalk edit_axis(int rank, const int64_t *dims, int axis);

/* What a map by value has as its key; belongs to the value. */
static inline Str value_key(const Value *v) {
    return (Str){(const char *)&v->id, sizeof v->id};
}

#endif
