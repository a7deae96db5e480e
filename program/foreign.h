/* Kernels of others: functions that a project calls in place of ours, for the steps that a file of
 * entries names (-kernels=FILE, read by target/kernels.h).
 *
 * A function gets what our kernel gets: its params and its pointers, and scratch of its own behind
 * them. Where our kernel packs its weights, it gets them unpacked, with an interface that no kernel
 * of ours changes (foreign_views.c). Runners cannot make such calls, only emitted C. Everything
 * belongs to the program's arena; nothing fails. */
#ifndef QXC_PROGRAM_FOREIGN_H
#define QXC_PROGRAM_FOREIGN_H

#include "program/program.h"

/* What a condition can be about. */
typedef enum FactKind {
    FACT_NONE,
    FACT_NUMBER,   /* a field of the params */
    FACT_TYPE,     /* of the elements of a pointer */
    FACT_ROUNDING, /* of sums */
    FACT_OP,       /* the type of the operator */
    FACT_LAYER,    /* its name, as a glob */
} FactKind;

typedef struct ForeignRange {
    int64_t low, high;
    int64_t step; /* multiples of it; 1: all */
} ForeignRange;

/* Holds where one of the ranges or words does, or none where it is negated. */
typedef struct ForeignTest {
    const char *fact;
    FactKind kind;
    bool negated;
    ForeignRange *ranges; /* of a number */
    const char **words;   /* of anything else */
    size_t n, cap;
} ForeignTest;

/* factor times these numbers */
typedef struct ForeignTerm {
    int64_t factor;
    const char **facts;
    size_t n, cap;
} ForeignTerm;

typedef struct ForeignEntry {
    const char *function, *kernel; /* the kernel's name without types: "conv2d_nhwc_q" */
    ForeignTest *tests;            /* all must hold */
    size_t n_tests, cap_tests;
    ForeignTerm *scratch; /* bytes: the sum */
    size_t n_scratch, cap_scratch;
    Loc loc, function_loc;
} ForeignEntry;

typedef struct ForeignKernels {
    const char *library; /* in comments and messages */
    ForeignEntry *entries;
    size_t n, cap;
} ForeignKernels;

typedef struct ForeignView ForeignView;

/* What a call has that a function of others takes. */
typedef struct Foreign {
    const ForeignEntry *entry;
    const char *library;
    const ForeignView *view; /* NULL: it gets what our kernel gets */
    int64_t scratch_bytes;   /* as the entry says; what is not from 0 to INT32_MAX is refused */
    const Call *ours;        /* the same step with our kernel */
} Foreign;

/* Gives the first entry that holds to each call. Before calls fall into parts and the memory is
 * planned. */
void program_call_foreign(Arena *a, Program *p, const ForeignKernels *k);
/* Whether an entry is called; how many calls there are. */
size_t foreign_calls(const Program *p, const ForeignEntry *e);

/* ---- foreign_facts.c ---- */

/* "conv2d_nhwc_q" of qk_conv2d_nhwc_q_s8_s8_s8, whose params are a qk_conv2d_nhwc_q_params. */
Str foreign_name(const KernelDef *k);
bool foreign_is_named(const KernelDef *k, const char *kernel);
/* How it rounds sums, "exact"; and what elements of a type in C are called, "int8". */
const char *foreign_rounding(const KernelDef *k);
const char *foreign_type(const char *ctype);
/* What a kernel has that conditions can be about; FACT_NONE: nothing of this name. */
FactKind foreign_fact(Arena *a, const char *kernel, Str fact);
/* All of it by name, and all kernels; each name once. */
const char **foreign_facts(Arena *a, const char *kernel, size_t *n);
const char **foreign_kernels(Arena *a, size_t *n);
/* What a fact of this kind can be, where that is one of some words; none where it is anything. */
const char *const *foreign_words(FactKind kind, size_t *n);

/* ---- foreign_views.c ---- */

/* What functions see in place of a kernel that packs its weights. */
struct ForeignView {
    const char *kernel;
    const char *params_type, *params_source;
    size_t params_size;
    const KernelField *fields;
    size_t n_fields;
    const char *weights; /* how they lie */
    bool taps_first;     /* [k][columns] in place of [columns][k] */
};

const ForeignView *foreign_view(const char *kernel); /* NULL: it has none */
/* The params of a call that reads something packed, as the view has them. */
void *foreign_view_params(Arena *a, const ForeignView *v, const Call *c);
/* Constants in the order of the arguments: weights, bias, multipliers, shifts. */
enum { VIEW_CONSTS = 4 };
void foreign_view_consts(Arena *a, Program *p, const ForeignView *v, const Plain *plain,
                         int buffers[VIEW_CONSTS]);
extern const KernelArg foreign_view_args[VIEW_CONSTS];

#endif
