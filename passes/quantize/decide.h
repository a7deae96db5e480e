/* What the pass decide holds while it runs, for its two files: decide.c chooses, why_float.c tells
 * which nodes cannot be integer. */
#ifndef QXC_PASSES_QUANTIZE_DECIDE_H
#define QXC_PASSES_QUANTIZE_DECIDE_H

#include "passes/quantize/choice.h"
#include "passes/quantize/sharing.h"
#include "passes/recipe.h"

/* Where quantizers stand (passes/quantize/placement.h). */
typedef enum Placing {
    PLACING_EVERYWHERE, /* wherever the runtime computes on integers */
    PLACING_BEFORE,     /* before the operators that the target's page names */
    PLACING_PRODUCTS,   /* before products, and behind those that are fused with one alone */
    PLACING_BETWEEN,    /* the same, and what stands between integers is integer */
} Placing;

typedef struct Decide {
    PassContext *c;
    Module *m;
    Uses *uses;
    UniqueNames *names;
    size_t n_values;    /* that existed at the start */
    bool *integer;      /* by node id */
    bool *between;      /* by node id: integer where it stands between integers */
    bool *weights_only; /* by node id: weights are quantized, what it computes on is not */
    Recipe recipe;
    Placing placing;
    bool *float_result; /* by node id: the result stays float as a recipe has it */
    bool *sum;          /* by node id: its result is quantized as a recipe has it */
    bool *wanted;       /* by value id: gets a quantization */
    bool *decided;      /* by value id: had no quantization at the start, and has one now */
    Sharing sharing;    /* which values take the parameters of which */
    Map *named;         /* by Value* that gives them: an OpenValue whose line has a name */
    bool by_origin;     /* explain: by the name that a constant had in the model */
} Decide;

/* Whether the operator has a weight there, and whether the node's is a float constant. */
bool takes_weight(const Node *n, size_t input);
bool is_weight(const Node *n, size_t input);
/* Of a value that is no weight. */
Choice choice_of(const Decide *d, const Value *v);
/* Whether the value is left float while what makes it is integer: a product can be. */
bool stays_float(const Decide *d, const Value *v);

/* Whether the runtime has a kernel that makes floats of the integers that this product reads. */
bool has_real_kernel(const Decide *d, const Node *n);

/* NULL when the node can be integer, else why not. */
const char *why_float(const Decide *d, const Node *n);
/* It could be integer, and is better left float; NULL where that is not so, or nobody wants it. */
const char *why_preferred(const Decide *d, const Node *n);
/* NULL when its results can be quantized, else why not. */
const char *why_result(const Decide *d, const Node *n);
/* Float in, and weights that are not. */
bool only_weights(const Decide *d, const Node *n);

#endif
