/* What of one model is what of another: both files of compiler/donor.h look here. */
#ifndef QXC_COMPILER_DONOR_MATCH_H
#define QXC_COMPILER_DONOR_MATCH_H

#include "compiler/donor.h"

typedef struct Fact { /* what the other model says of a name */
    Str name;
    const Quant *q;      /* or NULL */
    const Value *stated; /* the value it stands at there */
} Fact;

typedef struct Donor {
    const Job *j;
    Module *m, *from;
    Map *facts;    /* quantizations by the names of float values: Fact */
    Map *consts;   /* constants by name: Value */
    Map *here;     /* values of m by name */
    Map *there;    /* those of `from` that are computed */
    Map *nodes[2]; /* of `from`, by name and by that of the result */
    Uses *uses;    /* of m */
    UniqueNames *names;
    bool named;  /* some constant is there under its name */
    bool *taken; /* by value id of `from`: something here has its name */
    bool *known; /* the same: one of the names that ONNX had for it is one here */
    bool ok;
} Donor;

/* What `from` says of the names of `m`. */
Donor donor_look(const Job *j, Module *m, Module *from);
/* Weights that are transposed there are turned in `from` (compiler/donor_turn.c). */
void donor_turn(Donor *d);
/* The file `from` came from, for messages. */
const char *donor_path(const Donor *d);

/* Whether the value is on a grid that somebody decided: of 32 bits, constants alone. */
bool donor_has_params(const Value *v);
/* Whether a constant, which is quantized, is a bias. */
bool donor_is_bias(const Value *v);
/* Whether the value is the result of Conv, Gemm or MatMul. */
bool donor_is_product(const Value *v);
bool donor_same_shape(const Tensor *x, const Tensor *y);
/* What the counterpart of a reader reads in that place, NULL where there is none. */
Value *donor_read_there(const Donor *d, const Use *use);
/* Products that read what is quantized at run time there do so here (compiler/donor_dynamic.c). */
void donor_take_dynamic(Donor *d);
/* Whether the parameters fit the value here; else a diagnostic. */
bool donor_fits(Donor *d, const Value *v, const Quant *q);

#endif
