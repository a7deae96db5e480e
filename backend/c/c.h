/* Emitted C: a program as C99 source (also valid C++17) with a header, and with -weights-file its
 * constants as a binary.
 *
 * PREFIX_run(arena, inputs..., outputs...) makes the same kernel calls as the Runner, with constant
 * params; only the kernels in use are embedded. No allocation, no writable static data. Fails with
 * a diagnostic (integer-only asked for and floating point in use: the nodes that stayed float;
 * weights too large for a file). */
#ifndef QXC_BACKEND_C_C_H
#define QXC_BACKEND_C_C_H

#include "exec/exec.h"

typedef struct CTest { /* one sample for -testbench; bytes in the order of the ports */
    const void *const *inputs;
    const void *const *outputs;
} CTest;

typedef struct CWriteOptions {
    Str prefix;        /* any text; made into an identifier. STR_NONE: "model" */
    bool integer_only; /* refuse floating point anywhere in the code */
    Str origin;        /* lines of the first comment, told by whoever knows where this came from */
    /* For integer_only: why a node stayed float, NULL where nobody has said. */
    const char *(*why_float)(const Node *n, void *ctx);
    void *why_ctx;
    const char *way_on;       /* how else it becomes integers alone; NULL: nothing to say */
    const char *header_name;  /* for #include, "model.h"; NULL: header and source in one file */
    const char *weights_name; /* for #embed, "model.weights.bin"; NULL: constants in the source */
    const CTest *tests;       /* main() that runs these and compares */
    size_t n_tests;
} CWriteOptions;

/* Where the text goes. Nothing checks the streams for errors here; whoever opened them does. */
typedef struct CStreams {
    FILE *source;
    FILE *header;  /* NULL: all goes to the source */
    FILE *weights; /* NULL just where weights_name is */
} CStreams;

bool c_write(const Program *p, const CWriteOptions *o, CStreams to, Diags *d);

/* The identifier made from a prefix, "kws_int8" from "kws-int8". */
Str c_prefix(Arena *a, Str name);
/* False after a diagnostic where it is too long; c_write asks, too. */
bool c_prefix_fits(Arena *a, Str name, Diags *d);

/* What computes in floating point. */
typedef struct CFloats {
    bool *is;      /* by Node.id; conversions of inputs, outputs and neighbours apart */
    size_t n;      /* how many nodes */
    bool converts; /* from or to float */
} CFloats;
CFloats c_floats(const Program *p);
/* Why such a node does, of what stands in the model (what passes decided, they say). */
const char *c_why_float(const Program *p, const Node *n);

/* Numbers of the closing summary. */
typedef struct CSizes {
    size_t arena, alive; /* memory; what tensors alive at one time have */
    size_t weights, params;
    int64_t macs;
} CSizes;
CSizes c_sizes(const Program *p);

#endif
