/* What a model leaves to the quantizer where other parts of it are decided: values marked `~ ?` or
 * `~ int8q<?>`, those that -redecide names, and with data every float value that is not quantized.
 * All else is kept as it is written. */
#ifndef QXC_PASSES_QUANTIZE_OPEN_H
#define QXC_PASSES_QUANTIZE_OPEN_H

#include "passes/pass.h"

/* One value that is open. What is known of its type is a rule of its own: the last word where the
 * text says `int8q<?>`, the first where another quantization is to be decided anew. */
typedef struct OpenValue {
    Value *value;
    const Quant *line; /* what stood there: all values of it get one quantization again */
    SchemeRule rule;
    bool marked;       /* the text leaves it open: it has to be decided */
    bool rounded;      /* a constant, which has lost all numbers but those of a grid */
    const Quant *made; /* for it and for others of the line; not of weights */
    struct OpenValue *of_line, *next; /* the first of its line, and another of it */
} OpenValue;

typedef struct Openings {
    Arena *arena;
    const Uses *uses;
    Diags *d;
    OpenValue **values;
    size_t n, cap;
    Map *of;          /* OpenValue by Value* */
    Map *of_line;     /* the first OpenValue by the line */
    Map *taken;       /* by the line: the value that got its name first */
    bool rest;        /* float values that are not quantized are open, too */
    size_t kept;      /* values whose quantization is written */
    size_t rounded;   /* constants of which the same holds */
    ElemType storage; /* that most of the activations among them have; or ELEM_UNDEFINED */
    bool sym;         /* and all of those around zero point 0 */
    Map *
        before; /* values that had one: what is decided here is what has one now and is not there */
} Openings;

/* How many values are marked; the first of them, unless `first` is NULL. */
size_t openings_marked(Module *m, const Value **first);
/* Takes marks and what `globs` (lists as of -redecide) name off the values. False after an error: a
 * glob names nothing. */
Openings *openings_find(Module *m, const char *const *globs, size_t n, bool rest, PassContext *c);
/* NULL where it is none of these. */
OpenValue *opening_of(const PassContext *c, const Value *v);
/* Whether it may be decided: of a float model, all. */
bool is_open(const PassContext *c, const Value *v);
/* The quantization `q` that was decided for a value: takes the name and the place of its line, but
 * for one that is `apart`. */
const Quant *opening_named(const PassContext *c, Module *m, OpenValue *o, Quant *q, bool apart);
/* Lines that nothing has any more go. Whether all that is marked is decided, and nothing that was
 * to be decided anew lost its quantization as nothing is known of it; else after an error. */
bool openings_close(Module *m, PassContext *c);
/* Whether the node's result keeps the quantization that is written for it. */
bool result_is_written(const PassContext *c, const Node *n);
/* Whether a constant has no numbers but those of the grid that it has, or had. */
bool was_rounded(const Value *v);
/* Whether the value got its quantization here. */
bool was_decided(const PassContext *c, const Value *v);

#endif
