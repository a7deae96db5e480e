/* Plain integers, and numbers of float8, in classes: those that movers or the branches of If link
 * get one type together, or none. Private to passes/raise. */
#ifndef QXC_PASSES_RAISE_INTEGER_CLASSES_H
#define QXC_PASSES_RAISE_INTEGER_CLASSES_H

#include "passes/raise/raise.h"

typedef struct Class { /* kept at the root */
    const Quant *q;
    bool by_dq;      /* no Q said so yet, which might know of a range */
    const char *why; /* not raised, and why */
    bool moved;      /* a mover links integers of it: parameters must be per tensor */
    bool cut;        /* a Relu cuts at the integer 0: the zero point must be that */
    int64_t lo, hi;  /* of constants that movers put among them; lo > hi: none */
} Class;

typedef struct Classes {
    Raise *r;
    size_t n;
    uint32_t *parent;
    Class *at;
    bool *wide; /* by value id: 32-bit integers that a Q made, and no index or length */
} Classes;

Classes classes_new(Raise *r);
/* That of a value that may get a quantized type (class_may_raise). */
Class *class_of(Classes *c, const Value *v);
/* Integers that may get a quantized type, of 32 bits those of biases and what stands for them; and
 * numbers of float8. */
bool class_may_raise(const Value *v);
/* What a Q or (`by_dq`) a DQ says of it. */
void class_say(Classes *c, const Value *v, const Quant *q, bool by_dq);
/* It is not raised; the first reason is kept. */
void class_refuse(Classes *c, const Value *v, const char *why);
/* A mover puts constants from lo to hi among its integers. */
void class_put(Class *k, int64_t lo, int64_t hi);
/* Both are of one class from now on. */
void class_join(Classes *c, const Value *x, const Value *y);
/* Refuses the class where what it was told does not go together, and tells why. For
 * module_each_value. */
void class_decide(Value *v, void *classes);
/* What the class of a value is raised to; NULL: it is not. */
const Quant *class_quant(Classes *c, const Value *v);
/* Equal but for the range, of which the second knows nothing. */
bool class_equal_in_range(const Classes *c, const Quant *q, const Quant *dq);

/* ---- what nodes say (integer_notes.c) ---- */

/* Joins, and says or refuses, as the nodes of the module want it. Tells what stays plain. */
void classes_note(Classes *c, Module *m);
/* What a Q or DQ of ONNX converts to or from; NULL: the node is none. */
Value *class_converted(const Node *n);
/* The type of a mover's constants whose result has the type q; NULL: there is none. */
const Quant *class_before_mover(const Classes *c, const Node *n, const Quant *q);

#endif
