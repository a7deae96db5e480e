/* Several nodes in the place of one: each is made before it, named after it and typed at once.
 *
 * An Expand serves a whole pass; `expand_at` says which node is next. What stands for its results
 * is given with `expand_yield`, then `expand_end` takes it out. Memory is the module's; nothing
 * here fails. */
#ifndef QXC_PASSES_EXPAND_H
#define QXC_PASSES_EXPAND_H

#include "passes/quant_build.h"

typedef struct Expand {
    QuantBuild b;
    Node *n;
    Str base;      /* of the names of values: the first result's */
    ElemType elem; /* of what n computes with */
    bool named;    /* one of the new nodes has n's name */
} Expand;

/* From where on axes are operands, and integers compare. */
enum { EXPAND_OPSET = 13 };

Expand expand_new(Module *m, PassContext *c, const char *pass);
/* Whether the module's opset is at least that; an error about `n` where not. */
bool expand_fits(const Expand *e, const Node *n);
void expand_at(Expand *e, Node *n);

/* The result of ONNX's `op` of these operands. */
#define expand(e, op, ...)                                                                         \
    expand_op(e, op, (Value *const[]){__VA_ARGS__},                                                \
              sizeof((Value *const[]){__VA_ARGS__}) / sizeof(Value *))
Value *expand_op(Expand *e, const char *op, Value *const *operands, size_t n);
/* The same of one operand, or of two where `y` is given, with an integer attribute; of one with a
 * list of them. */
Value *expand_int(Expand *e, const char *op, Value *x, Value *y, const char *attr, int64_t v);
Value *expand_ints(Expand *e, const char *op, Value *x, const char *attr, const int64_t *v,
                   size_t n);
/* Constants: a number of n's type of rank 0, and integers of rank 1. */
Value *expand_number(Expand *e, const char *suffix, double v);
Value *expand_list(Expand *e, const char *suffix, const int64_t *v, size_t n);

/* `v`, made by a new node that nothing has read yet, is result `i` of n from now on: returned. */
Value *expand_yield(Expand *e, size_t i, Value *v);
bool expand_has_result(const Expand *e, size_t i);
void expand_end(Expand *e);

#endif
