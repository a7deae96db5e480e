/* For raise-integer-form: the float values that hold the numbers of integer ones, and the nodes
 * that make them. */
#ifndef QXC_PASSES_RAISE_INTEGER_REALS_H
#define QXC_PASSES_RAISE_INTEGER_REALS_H

#include "passes/edit.h"
#include "passes/quant_build.h"

typedef struct Reals {
    QuantBuild b;
    PassContext *c;
    Module *m;
    const Uses *uses; /* as of the start */
    Map *twins;       /* the float value with the numbers of an integer one */
    Node **casts;
    size_t n_casts, cap_casts;
} Reals;

/* A tensor of plain integers. */
bool is_int(const Value *v);
/* The float value that holds what the integer `v` holds; NULL where there is none yet. */
Value *twin(const Reals *r, const Value *v);
Type real_of_type(Type t);

/* A node op(x, y) with n's name, place and provenance, not in the graph yet; y may be NULL. */
Node *node_of(Reals *r, const Node *n, const char *op, Value *x, Value *y);
/* The float result of op(x, y), right before n. */
Value *before(Reals *r, Node *n, const char *op, Value *x, Value *y);
/* The float result of n, right behind its first operand, for `user` and others that read it. */
Value *behind(Reals *r, Node *user, Node *n, const char *suffix);
/* Result i of n becomes float; those who read the integers get them from a Cast. */
void make_real(Reals *r, Node *n, size_t i);
/* n becomes op(x, y), with no attributes; y may be NULL. */
void becomes(Reals *r, Node *n, const char *op, Value *x, Value *y);
void becomes_cast(Reals *r, Node *n, Value *x, ElemType to);

/* What a Q or DQ computes with, as constants that broadcast over its operand. */
typedef struct RealParams {
    Value *scale; /* or its reciprocal */
    Value *zp;    /* NULL: it is 0 */
} RealParams;
/* The reason why these are not to be had, or NULL. */
const char *real_params(Reals *r, const Node *n, bool reciprocal, RealParams *p);

/* The integers or floats of a constant as a constant of floats. */
Value *real_const(Reals *r, Value *v);
/* The largest integer of e that is a float, too. */
float largest_float(ElemType e);
/* Whether these floats are integers of e already, through nodes that move them or cut them off;
 * `rounded` where they are known to be integers. */
bool floats_within(const Value *v, ElemType e, bool rounded);
/* The twin of v, made where there is none, before `user`. */
Value *real_of(Reals *r, Value *v, Node *user);
/* True where the node computes on floats now (raise_integer_form.c). */
bool convert_to_reals(Reals *r, Node *n);

#endif
