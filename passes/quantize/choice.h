/* The scheme applied: what it says of one weight, value or node. */
#ifndef QXC_PASSES_QUANTIZE_CHOICE_H
#define QXC_PASSES_QUANTIZE_CHOICE_H

#include "passes/params.h"
#include "passes/pass.h"
#include "passes/quantize/rules.h"

typedef enum ChoiceProperty {
    CHOICE_TYPE,
    CHOICE_SYM,
    CHOICE_POW2,
    CHOICE_REDUCE,
    CHOICE_GRAIN,
    CHOICE_PROPERTIES,
} ChoiceProperty;

/* Every property settled. */
typedef struct Choice {
    bool is_float;
    const Quant *fixed; /* parameters and all, or NULL */
    ElemType storage;
    bool has_range, exact_range;
    int64_t lo, hi; /* with has_range */
    bool sym, pow2, reduce_range, channel;
    int64_t block;
    const SchemeRule *by[CHOICE_PROPERTIES]; /* what settled it; NULL: the default */
} Choice;

/* Why the target would get the node that makes v wrong, were it quantized; else NULL. */
const char *choice_faulty(const PassContext *c, const Value *v);
/* Of a value that is no weight: what its producer's rules say, its readers', its own. */
Choice choice_of_value(const PassContext *c, const Uses *uses, const Value *v);
/* What `v` takes over from what it is fused with (passes/quantize/travel.h): choice_of_value is
 * that from then on. `o` and the arena live as long as the module. */
void choice_set(PassContext *c, Arena *a, const Value *v, const Choice *o);
/* NULL where it takes over nothing. */
const Choice *choice_taken(const PassContext *c, const Value *v);
/* Of values that no rule singles out. */
Choice choice_of_activations(const PassContext *c);
/* Of the weight `w` of node `n`. */
Choice choice_of_weight(const PassContext *c, const Node *n, const Value *w);
/* The last rule that says "keep float" or "quantize" of the node, NULL: none. */
const SchemeRule *choice_to_keep(const PassContext *c, const Node *n);
/* The same as words: why the node stays float, NULL when it need not. */
const char *choice_why_kept(const PassContext *c, const Node *n);
/* Why no rule and no data can make the node's operator compute on integers; NULL where they may. */
const char *why_never_integer(const Node *n);
/* Whether the rules want the bias of this node left float. */
bool choice_float_bias(const PassContext *c, const Node *n);
/* The integers to use. */
IntRange choice_range(const Choice *c);
/* Whether weights with several scales have zero points in the middle: as asked, or because
 * onnxruntime's QLinearConv takes one zero point for all channels of 8-bit weights. */
bool choice_is_symmetric(const PassContext *c, const Choice *o);
/* The axis of `w` that a rule means by `axis` (0 or more): a rule is written for the model as it
 * came, and the weights of a Gemm may have been transposed for MatMul since. */
int choice_axis(const Value *w, int axis);
/* Whether a rule singles the value out that says this property of it. */
bool choice_said(const Choice *c, ChoiceProperty p);
/* Whether one set of parameters can serve both. */
bool choice_equal(const Choice *x, const Choice *y);

/* A constant that products add, and nothing else reads. */
bool is_only_bias(const Uses *uses, const Value *v);

/* Tells of rules that name what there is not: an operator that nobody knows is an error (false), a
 * pattern that matches nothing a warning. */
bool choice_check(const PassContext *c, Module *m);
/* The part of that which is about reduce-range. */
bool choice_check_reduced(const PassContext *c, const Uses *uses, Module *m);
/* The same of `rules` that nothing is decided by. */
bool choice_check_names(const PassContext *c, const Scheme *rules, Module *m);
/* Warns of rules that find what they name, and can do nothing with it. */
void choice_tell_idle(const PassContext *c, Module *m);

#endif
