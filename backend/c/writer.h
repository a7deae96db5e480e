/* What the parts of the C writer share: the names they agreed on, and how literals, comments and
 * types are spelled. Nothing here fails. */
#ifndef QXC_BACKEND_C_WRITER_H
#define QXC_BACKEND_C_WRITER_H

#include "backend/c/c.h"

typedef struct CWriter {
    const Program *program; /* behind its steps, calls of ours that a test bench compares with */
    size_t n_steps;         /* so many of its calls are made */
    const CWriteOptions *options;
    Arena *arena;
    Diags *diags;
    FILE *f;           /* the source */
    Map *kernels;      /* as c_kernels made it */
    Map *names;        /* identifiers in use */
    Str prefix, upper; /* "kws", "KWS" */
    Str *inputs;       /* parameter names by port */
    Str *outputs;
    Str *input_macros; /* "KWS_INPUT" */
    Str *output_macros;
    int *shared;     /* by buffer: an earlier constant with the same bytes, or itself; -1 unused */
    Str *consts;     /* by buffer: identifier of a constant */
    Str *params;     /* by call: identifier of its params */
    bool math;       /* <math.h> is needed */
    size_t *offsets; /* by buffer: where a constant is in the weights file; NULL without one */
    size_t weights_size;
    uint32_t weights_crc;
} CWriter;

/* ---- name.c ---- */

/* Whether C, C++, their headers or kernels have the word, so that no name may be it. */
bool c_is_reserved(Str s);
/* A function of C's library, which a declaration of another type would contradict. */
bool c_is_of_library(Str s);
/* An identifier made from any bytes, not used before and no keyword. */
Str c_identifier(CWriter *w, Str base);
/* The names of params, constants and parameters of the run function. */
void c_choose_names(CWriter *w);
/* A name from the model inside a comment: quoted, cannot close it, no control characters. */
void c_put_name(FILE *f, Str name);
void c_put_comment(FILE *f, const char *text); /* the same, unquoted */
/* The lines of CWriteOptions.origin, as the beginning of a comment that is left open. */
void c_put_origin(const CWriter *w, FILE *f);
/* `int8q<0.02, 3>[1,8,8]`, lists of parameters shortened. */
void c_put_type(CWriter *w, FILE *f, Type t);
/* `Conv "conv1"`. */
void c_put_node(FILE *f, const Node *n);
/* What the argument is to the call: the kernel's name for it, or "condition". */
const char *c_arg_name(const Call *call, int arg);

/* ---- floats.c ---- */

/* False after saying what computes in floating point, and why; true where nothing does. */
bool c_refuse_floats(const CWriter *w);

/* ---- data.c ---- */

const char *c_type(ElemType e); /* "int8_t"; NULL where C has none */
void c_put_float(CWriter *w, FILE *f, double v, bool is_double);
/* `{...}` with the elements of `data`, wrapped. */
void c_put_elements(CWriter *w, FILE *f, ElemType e, const void *data, size_t count);
/* The constants and params of all calls. */
void c_find_shared(CWriter *w);
void c_put_consts(CWriter *w);
/* Calls `put` once for each constant in use, with the first call that uses it. */
void c_each_const(CWriter *w, void (*put)(CWriter *w, const Call *call, int arg, int root));
/* `Conv "conv1", w: "conv1.weight" int8q<...>[...]`, for a comment. */
void c_put_const_origin(CWriter *w, const Call *call, int arg, int root);
/* What stands before a constant that micro-kernels gather words from. */
void c_put_alignment(CWriter *w, const Buffer *b);
void c_put_params(CWriter *w);
/* Whether some constant, parameter or number of the test bench is inf or NaN, whose names stand in
 * <math.h>. */
bool c_needs_math(const CWriter *w);

/* ---- string.c ---- */

bool c_is_string(const Buffer *b); /* a constant that is written so */
/* `static const int8_t NAME[count + 1] = "..."`: the zero at the end is what C++ wants. */
void c_put_string_const(CWriter *w, const Buffer *b, Str name);

/* ---- weights.c ---- */

/* Where each constant goes; false after a diagnostic. Before names are chosen. */
bool c_place_weights(CWriter *w);
void c_put_weights_file(CWriter *w, FILE *f);
void c_put_weights_macros(CWriter *w, FILE *f);     /* of the header */
void c_put_weights_prototypes(CWriter *w, FILE *f); /* of the header */
void c_put_weights(CWriter *w);
void c_put_run_with_own_weights(CWriter *w); /* PREFIX_run, calling PREFIX_run_with */

/* ---- code.c ---- */

/* The KernelDefs that a program calls, by name, each once: a large model has many calls and few
 * kernels. */
Map *c_kernels(const Program *p);
void c_put_includes(CWriter *w);
void c_put_kernels(CWriter *w);
void c_put_run(CWriter *w);
/* A pointer to the buffer, `at` bytes behind its beginning, as the kernel wants it; in a loop over
 * bands `step` more in each. */
void c_put_pointer(CWriter *w, int buffer, size_t at, const char *ctype, bool is_const);
void c_put_band(CWriter *w, int buffer, size_t at, size_t step, const char *ctype, bool is_const);

/* ---- parts.c: calls in parts, for threads; nothing where the program has none ---- */

/* The hook that runs parts, and a function for each call that has some. */
void c_put_parts(CWriter *w);
void c_put_parts_context(CWriter *w); /* in the run function: what parts see of it */
void c_put_parts_call(CWriter *w, size_t call, int indent);
void c_put_parts_about(const CWriter *w, FILE *f); /* in the header */

/* ---- bands.c ---- */

/* The calls that take turns from this one on; returns how many they are. */
size_t c_put_bands(CWriter *w, size_t call, int indent);
void c_put_bands_about(const CWriter *w, FILE *f); /* in the header */

/* ---- foreign.c: functions of others; nothing where none is called ---- */

/* False after diagnostics: a name that C or this file has taken, or one for two interfaces. */
bool c_check_foreign(const CWriter *w);
/* Their names are no others'. */
void c_take_foreign_names(CWriter *w);
/* The program with our calls behind it, where a test bench compares with them. */
void c_add_ours(CWriter *w);
bool c_calls_foreign(const CWriter *w);
/* Marks the structs that the header defines as done; the structs, and the functions. */
void c_take_foreign_params(const CWriter *w, Map *done);
void c_put_foreign_params(const CWriter *w, FILE *f);
void c_put_foreign_prototypes(const CWriter *w, FILE *f);
void c_put_foreign_call(CWriter *w, size_t call, int indent);
/* The call as a condition that holds where it failed. */
void c_put_foreign_status(CWriter *w, size_t call, int indent);

/* ---- foreign_bench.c: the same in a test bench ---- */

/* The call, that of our kernel, and what compares their results; the functions that do. */
void c_put_compared(CWriter *w, size_t call, int indent);
void c_put_foreign_checks(CWriter *w);
void c_put_foreign_verdict(CWriter *w); /* in main */

/* ---- layer.c ---- */

/* The comment before a call: operator, operands, result, multipliers. */
void c_put_layer(CWriter *w, const Call *call, int indent);

/* ---- header.c, testbench.c ---- */

void c_put_header(CWriter *w, FILE *f, bool own_file);
/* `int PREFIX_run(void *arena, const int8_t input[490], ...)`, or PREFIX_run_with(weights, ...) */
void c_put_prototype(CWriter *w, FILE *f, bool with_weights);
/* How many inputs and outputs the run function has as parameters: all or none. */
size_t c_ports(const CWriter *w);
Str c_port_name(const CWriter *w, size_t i); /* of the i-th, inputs first */
void c_put_testbench(CWriter *w);

#endif
