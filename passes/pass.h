/* Passes: each changes a verified module into a verified module, in one file, with one line in
 * passes.def. A pass reports what is wrong through the module's diagnostics and returns false; the
 * module is then not used any more. What a pass decided on its own goes into the report. */
#ifndef QXC_PASSES_PASS_H
#define QXC_PASSES_PASS_H

#include "exec/samples.h"
#include "ir/ops/op.h"
#include "ir/provenance.h"
#include "target/target.h"

/* Why a node did not become what was asked for; one entry a node, in graph order. */
typedef struct Remark {
    const Node *node;
    Str op, name; /* kept apart: the node may be gone later */
    Str result;   /* its first, where it has no name */
    const char *reason;
    bool preferred; /* it could, and is better left as it is */
} Remark;

/* -placement. */
typedef enum Placement { PLACEMENT_AUTO, PLACEMENT_ALL, PLACEMENT_PRODUCTS } Placement;

typedef struct PassContext {
    Diags *d;
    const char *const *data; /* paths of calibration data, for passes that look at values */
    size_t n_data;
    SamplePart part;       /* of them */
    const char *batch;     /* which open dimension counts samples (DataPaths) */
    bool told_batch;       /* what is told of that was */
    size_t random;         /* without data: so many random samples; 0: none */
    Scheme scheme;         /* of command line, module and files, in this order */
    struct Openings *open; /* what is left to decide of a model that is decided in part
                              (passes/quantize/open.h); NULL: all is */
    Map *lines;            /* quantizations that the model had before; NULL without openings */
    Map *choices;          /* by Value*: a Choice taken over (passes/quantize/travel.h); or NULL */
    bool outliers_alone;   /* equalize: channels that meet few much larger ones, no others */
    struct ChannelSizes *sizes; /* what calibration saw of the module for it, or NULL: nothing */
    size_t n_outliers;          /* such larger channels, of how many values; scaled */
    size_t n_with_outliers;
    double smooth_alpha; /* smooth-quant: how much of the difficulty goes to weights, 0 to 1 */
    bool round_few;      /* adaround: weights of at most 4 bits alone */
    bool judge_biases;   /* bias-correction: undo what makes the outputs worse */
    double biases_cost;  /* dB: what that would have made them worse by; 0: it was not undone */
    const char *explain; /* a value: decide says in `explanation` where its parameters are from */
    const Node *explain_node; /* that made it before any pass; or NULL */
    Str explanation;          /* STR_NONE: no such value was decided on; arena of the module */
    const char *input_names, *output_names; /* lists a,b,c (rename-interface), or NULL */
    const char *const *axes;                /* INPUT:AXIS:NAME (dynamic-axis) */
    size_t n_axes;
    bool on_grids;  /* what came in types is rounded to them where data run through the model: they
                       cut where tools leave a Relu out (loosen) */
    bool misused;   /* an error that was reported is one of usage: the options were wrong */
    bool no_floats; /* quantize also operators that are better left float */
    bool runtime_alone; /* decide for `target`, a runtime, alone: what it computes in float is not
                           quantized for the operator's own sake */
    Placement placement;
    bool float_outputs;  /* graph outputs stay float (without -io=quant) */
    bool products_alone; /* -dynamic, -weight-only: all but products and tables computes in float */
    bool weights_alone;  /* -weight-only: dequantized, not multiplied as they are */
    bool tie_tables;     /* -tie-tables: tables that hold a product's weights are those */
    size_t n_tied;       /* such tables, and what a copy of the integers would have taken */
    int64_t tied_bytes;
    const TargetPage *target; /* of which what depends on a runtime is asked */
    bool keeps_calls; /* inline-functions: calls whose bodies stay float are put back (close-calls)
                       */
    struct Library *library;   /* what composite operators mean; NULL: none */
    const char *explain_match; /* an operator: recognise says what nearly is one; or NULL */
    bool may_wait; /* integers of weights may be made when they are written (ir/later.h) */
    bool keep_float_weights; /* lower-qdq: a QuantizeLinear stands on the float constant that it
                                rounds, in place of the integers */
    bool float_biases_stay;  /* lower-qdq: what raising rounds is written as it came */
    bool annotate_nodes;     /* annotate: nodes state what was decided, in place of annotations */
    bool saturates; /* the processor adds pairs of u8 x s8 products in 16 bits (-target-cpu=avx2) */
    int64_t target_opset; /* 0: as low as the types allow, not below the module's own */
    bool lowers_opset;    /* -target-opset asks for an older one than the model's */
    bool newer_refused;   /* a result that is newer than runtimes load will not be written */
    Remark *remarks;      /* arena of the module */
    size_t n_remarks, cap_remarks;
    Map *remarked; /* nodes that have a remark: the first reason stands */
    Node **spared; /* left float as 8 bits would lose too much there; arena of the module */
    size_t n_spared, cap_spared;
    size_t n_inexact;  /* nodes that types round otherwise than the model said */
    Str first_inexact; /* what the first is called; arena of the module */
} PassContext;

void pass_remark(PassContext *c, const Node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* `preferred`: it could become it, and is better left as it is. */
void pass_remark_why(PassContext *c, const Node *n, const char *why, bool preferred);

/* A type rounds otherwise than this node did: a note at its place, counted for the summary. */
void pass_inexact(PassContext *c, const Node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* What was said of these nodes, by id, is no longer so: a later pass found a way. */
void pass_forget_remarks(PassContext *c, const bool *of);

DataPaths pass_data(PassContext *c);
/* The calibration data from its start; the caller closes it. NULL after diagnostics, which name the
 * option where there is none. */
Samples *pass_samples(Module *m, PassContext *c);

typedef struct Pass {
    const char *name, *summary;
    const char *before, *after; /* form: float, fake, true, qop, any; "same" */
    bool (*run)(Module *m, PassContext *c);
} Pass;

typedef enum PassId {
    PASS_NONE,
#define PASS(id, name, summary, before, after) PASS_##id,
#include "passes/passes.def"
#undef PASS
} PassId;

const Pass *pass_of(PassId id);
PassId pass_find(const char *name); /* PASS_NONE: there is none */
/* Whether this pass made what is from there. */
bool pass_made(const Provenance *from, PassId id);
/* An error with a hint, which begins with `where` ("-passes: " or ""). False. */
bool pass_unknown(const char *name, const char *where, Diags *d);
size_t pass_count(void);
const Pass *pass_at(size_t i);
/* Runs one pass, then resolves, infers and verifies again. */
bool pass_run(const Pass *p, Module *m, PassContext *c);

#define PASS(id, name, summary, before, after) bool pass_##id(Module *m, PassContext *c);
#include "passes/passes.def"
#undef PASS

#endif
