/* A program: what the interpreter runs and what emitted C prints, the same thing for both.
 *
 * It is a flat list of calls of freestanding kernels (kernels/kernel.h) with constant params, over
 * buffers that are graph inputs, graph outputs, constants, or ranges of one arena. Operators write
 * it through a Binder in their `bind` function; exec/memory.c then lays out the arena.
 * Everything belongs to the module's arena, or to the one of ProgramOptions. */
#ifndef QXC_PROGRAM_PROGRAM_H
#define QXC_PROGRAM_PROGRAM_H

#include "ir/ir.h"
#include "kernels/kernel.h"
#include "kernels/requant_host.h"

enum { CALL_MAX_ARGS = 16, CALL_MAX_OVERLAYS = 2, BUFFER_ALIGN = 16 };

typedef enum BufferKind { BUF_INPUT, BUF_OUTPUT, BUF_CONST, BUF_ARENA } BufferKind;

typedef struct Buffer {
    BufferKind kind;
    ElemType elem; /* as stored: 4 bits and narrower are unpacked, one element a byte */
    size_t count, bytes;
    int alias;           /* another buffer with the same bytes, or -1 */
    int port;            /* which graph input or output */
    const void *data;    /* BUF_CONST */
    size_t offset;       /* BUF_ARENA, set by the planner */
    int first, last;     /* BUF_ARENA: first and last call that touches it, set by the planner */
    bool scratch;        /* made by bind_scratch: never the output of a call */
    const Value *value;  /* the value it holds, NULL for scratch and packed constants */
    const char *comment; /* "weights of conv1", for emitted C */
} Buffer;

typedef enum CallKind {
    CALL_KERNEL,
    CALL_IF, /* args[0]: a bool buffer. The calls up to ELSE or END run when it is true */
    CALL_ELSE,
    CALL_END,
    CALL_LOOP, /* args: condition (bool), iterations so far and at most (int64). The calls up to
                  NEXT run while it is true and there are fewer; then those behind NEXT */
    CALL_NEXT,
    CALL_CHECK, /* args: a length (int64). The run fails where it is none that `bound` allows */
} CallKind;

/* A loop that has not ended after so many iterations, of its own and of loops inside it together,
 * is taken for one that never does. */
enum { LOOP_MOST = 10000000 };
#define LOOP_ENDLESS                                                                               \
    "%s did not end: %d iterations are all that a loop may have, with those of loops inside it"

/* An argument over which the result may lie, where nobody reads it later: beginning exactly where
 * it begins, or at least `lead` bytes before it (a negative lead: at most so many after it). */
typedef struct Overlay {
    int arg; /* index into args */
    bool exact;
    int64_t lead;
} Overlay;

/* Scratch that makes its kernel faster where there is more of it. It begins with what the kernel is
 * fast with. */
typedef struct Growth {
    int buffer;
    size_t least; /* bytes that the kernel can do with */
    size_t kept;  /* bytes that it has all the same, where nobody says how large the arena may be */
    size_t step;  /* bytes by which it grows, 0: it does not */
    size_t most;  /* bytes */
    int32_t *bytes; /* in the params: how many it has */
} Growth;

/* What integers that an argument holds must be, for the call to mean what the operator says: number
 * k lies below lengths[k % n], and is not negative but where negative ones count from the end. A
 * Runner looks at them before the call; emitted C has no way to say it, so kernels stay inside of
 * their buffers whatever the numbers are. */
typedef struct Within {
    int arg; /* index into args */
    bool from_end;
    int n;
    int32_t lengths[8];
    const Value *of; /* whose numbers they are */
    const struct Within *next;
} Within;

/* What a kernel reads packed, as it was before: for one in its place that packs otherwise
 * (program/foreign.h). Of each column, one of output: k weights, what is added to its sum, and the
 * multiplier of that, `mul` times two to the `shift`. The program's. */
typedef struct Plain {
    const int8_t *weights;      /* [columns][k], of zero point 0 */
    const int32_t *bias;        /* [columns], before the zero point of x goes in; NULL: none */
    const int32_t *mul, *shift; /* the same: shifts alone */
    int32_t columns, k;
    int32_t xz;      /* zero point of x */
    bool per_column; /* else mul and shift have one entry */
} Plain;

/* One part of a call (program/split.h, program/bands.h): its params, and where its arguments begin.
 */
typedef struct CallPart {
    const void *params; /* NULL: there is nothing to do, in a band alone */
    size_t *at;         /* by argument: bytes behind the beginning of the buffer */
} CallPart;

/* Calls that take turns (program/bands.h): each makes its first part, then each its second, and so
 * on. What they hand on to each other has room for one band of rows. */
typedef struct Bands {
    size_t first, n; /* calls of the program */
    size_t n_bands;  /* parts of each */
    size_t between;  /* bytes that they hand on to each other have at a time */
    size_t whole;    /* and all together */
    size_t moved;    /* bytes of rows that two bands share, which a run moves */
} Bands;

/* Programs are built for lengths of so many elements at least, where there can be so many: of 1 and
 * 0 elements kernels are others. */
enum { LENGTH_BUILT = 4 };

/* A length that only a run can tell, of all results of a node whose shape is open, and what a
 * program has room for (exec/bounded.h). */
typedef struct LengthBound {
    const Node *node;
    const Value *value; /* the first of these results, and its axis */
    int axis;
    int64_t most;   /* a run with more fails */
    int64_t least;  /* and one with fewer: 0, or more where kernels cannot do without elements */
    int64_t length; /* that types have while a program is built */
    bool stated;    /* by the model, as the only one: most and least are that */
} LengthBound;

/* base + per[0] * first length + ... */
typedef struct LengthFn {
    int64_t base;
    const int64_t *per;
} LengthFn;

/* A number of a call's params that follows from lengths. */
typedef struct Patch {
    const KernelField *field;
    size_t at; /* index into the field */
    LengthFn to;
} Patch;

/* What a call is for other lengths than those that its program was built with. The buffers of the
 * lengths are its last arguments, behind those of the kernel. */
typedef struct Patches {
    const Patch *items;
    size_t n;
    int n_lengths;
    bool skips; /* there is nothing to do where `result`, the elements of its result, is 0 */
    LengthFn result;
} Patches;

typedef struct Call {
    CallKind kind;
    const KernelDef *kernel;
    const void *params; /* of the kernel's params struct */
    int n_args;
    const int *args; /* buffers, in the order of the kernel's pointer arguments, then those of
                        lengths, at most CALL_MAX_ARGS; -1: NULL. IF, LOOP, CHECK: see above; END:
                        the results of the node, however many */
    int n_overlays;
    Overlay overlays[CALL_MAX_OVERLAYS];
    Growth growth;
    const Within *within; /* NULL: any numbers will do */
    size_t n_parts;       /* 0: it is made as a whole */
    const CallPart *parts;
    const Bands *bands;            /* NULL: its parts are those of threads, if it has any */
    const Patches *patches;        /* NULL: its params are the same in each run */
    const LengthBound *bound;      /* CHECK */
    const Plain *plain;            /* NULL: it packs nothing, or nothing that others could read */
    const struct Foreign *foreign; /* NULL: the kernel is one of ours */
    const Node *node;
} Call;

/* Whether the call may change what argument `arg` is. What follows from a length comes after the
 * check of it. */
static inline bool call_writes(const Call *c, int arg) {
    if (c->kind == CALL_KERNEL)
        return (size_t)arg < c->kernel->n_args && !c->kernel->args[arg].is_const;
    return c->kind == CALL_END || c->kind == CALL_CHECK;
}

/* How many elements along an axis a buffer has, where only a run can tell (NonZero): it has room
 * for the most, and those there are stand at its front, in the order of a tensor of that shape. */
typedef struct Counted {
    int buffer;
    size_t most; /* elements of the buffer */
    int axis;
    int count; /* the buffer of one int64 that says it */
} Counted;

/* An operator type that cannot run. */
typedef struct Rejection {
    Str op;          /* with its domain */
    const char *why; /* of the first node */
    bool other_reasons;
    size_t count;         /* of its nodes */
    const Node *first[3]; /* of these */
    size_t values;        /* of a partial program: see LeftOut */
} Rejection;

/* What a partial program does not compute: nodes that cannot run, and all that depends on them.
 * Each node, and each value not known to be other than float, counts for the first reason it has.
 */
typedef struct LeftOut {
    Rejection **why;     /* by Node.id, nodes of the main graph; NULL: it is computed */
    Rejection **reasons; /* all of them */
    size_t n, cap;
} LeftOut;

typedef struct Program {
    Module *module;
    Buffer *buffers;
    size_t n_buffers, cap_buffers;
    Call *calls;
    size_t n_calls, cap_calls;
    int *value_buffer; /* by Value.id: its buffer, or -1 */
    int *inputs;       /* buffers of the graph inputs without default, in order */
    int *outputs;      /* -1: left out */
    size_t n_inputs, n_outputs;
    bool ports_in_arena; /* inputs and outputs are ranges of the arena: runs overwrite inputs */
    /* What each output is: those of the graph; behind them, one int64 each, how many elements
     * outputs of open length have. */
    const Value **yields;
    int *count_of; /* by output: which output says how long its open axis is, or -1 */
    Counted *counted;
    size_t n_counted, cap_counted;
    const LengthBound *bounds;
    int *lengths; /* by bound: the buffer that says the length, -1: none yet */
    size_t n_bounds;
    size_t arena_bytes;
    size_t arena_bound; /* no layout of this order of calls needs less */
    size_t
        arena_alive; /* what tensors alive at one time take, without scratch or partial overlap */
    const char **why_double; /* by Node.id: why it is computed in double; NULL where it is not */
    int64_t *converted; /* by Node.id: how many elements change their storage type for its kernel */
    int64_t macs;
    int64_t *macs_of;  /* by Node.id: how many of them are its own */
    LeftOut *left_out; /* NULL: not a partial program */
} Program;

/* The buffer that holds the bytes of `buffer`: follows aliases. */
int program_root(const Program *p, int buffer);
/* What says how many elements the value has, or NULL: as many as there is room for. */
const Counted *program_counted(const Program *p, const Value *v);
/* "qk_NAME_s8_u8": the instance of a kernel for these element types; "qk_NAME_x8_s64" where the
 * kernel only moves data of that width; "qk_NAME_p8_s8" where it reads packed elements. */
const char *instance_name(Arena *a, const char *name, int n, const ElemType *types);
/* The output argument of a call (index into args), -1 for none: the first that the kernel writes
 * and that is not scratch. */
int call_output(const Program *p, const Call *c);

/* Calls that may take turns. */
typedef enum BandsAllowed { BANDS_NONE, BANDS_POOLS, BANDS_CHAINS } BandsAllowed;

typedef struct ProgramOptions {
    bool ignore_quant; /* values of type `float ~ q` are not rounded to their grid */
    bool keep_all;     /* every value in memory of its own, readable after a run */
    bool observed;     /* every value is put into the order of ONNX, for an observer */
    bool partial; /* what cannot run is left out with all that depends on it (Program.left_out) */
    bool least_arena; /* an order and places that a search finds: what is written has them for good
                       */
    BandsAllowed bands;   /* which calls may run in bands of rows (exec/bands.h) */
    size_t enough_arena;  /* bytes: nothing need make it smaller; 0: as small as it gets */
    bool least_scratch;   /* kernels take what they can do with, though they are slower */
    SumRounding rounding; /* of sums: exact unless asked for */
    bool ports_in_arena;  /* inputs are alive from the beginning on, outputs to the end */
    int threads;   /* calls fall into up to so many parts (program/split.h); 0, 1: none does */
    int run_parts; /* the same for a Runner, whose memory is no matter: runner_parts() */
    Arena *arena;  /* where the program lives; NULL: with the module */
    const struct ForeignKernels
        *foreign;              /* what is called in place of our kernels; NULL: nothing */
    const LengthBound *bounds; /* of lengths that only a run can tell */
    size_t n_bounds;
    bool any_length; /* what a node computes with may not follow from how long its operands are */
    bool shorter;    /* lengths are less than they can be: a result may be stated to have more */
} ProgramOptions;

/* ---- the binder: what an operator's bind function writes with ---- */

typedef struct Binder Binder;

Arena *binder_arena(Binder *b);
Diags *binder_diags(Binder *b);
/* The buffer of a value; constants are entered on first use. -1 for NULL. */
int bind_value(Binder *b, const Value *v);
/* The buffer of {scale, zero point} of a value whose parameters are computed at run time
 * (uint8q<dynamic>), -1 where there is none; and what computes them says which it is. */
int bind_dynamic(const Binder *b, const Value *v);
void bind_set_dynamic(Binder *b, const Value *v, int params);
/* A constant table made while binding; the data is copied. */
int bind_const(Binder *b, ElemType e, size_t count, const void *data, const char *comment);
/* The same of data of binder_arena that nobody changes any more: large ones are not there twice. */
int bind_made(Binder *b, ElemType e, size_t count, const void *data, const char *comment);
/* The buffer of v, a constant that holds `t`: one element a byte where that packs several, floats
 * of fewer bits as floats, on v's grid where it has one. The tensor's own bytes are not copied
 * where they can be used. Says why, where it has no numbers. */
int bind_tensor(Binder *b, const Tensor *t, const Value *v);
/* What a buffer is, with its elements where it is constant; good until the next one is made. */
const Buffer *bind_buffer(const Binder *b, int buffer);
/* The elements of a constant where their type may be read: bind_buffer's lie at any address, as in
 * a mapped file, until a call is known to read them. NULL of others. */
const void *bind_data(Binder *b, int buffer);
/* The same of all constants that calls and outputs have. */
void program_align(Arena *a, Program *p);
/* The buffer holds the elements of `v`, in whatever order; bind_is: it is v's own. */
void bind_holds(Binder *b, int buffer, const Value *v);
void bind_is(Binder *b, int buffer, const Value *v);
/* The buffer of result `i` of the node (of one that nobody asked for, too), of which a call says
 * how many elements it has: `of.most`, `of.axis` and `of.count`, a bind_temp. */
int bind_counted(Binder *b, const Node *n, size_t i, ElemType e, Counted of);
/* The length for which there is room along the open axis of the node's results, `most` where that
 * is neither bounded nor stated. */
int64_t bind_bound(const Binder *b, const Node *n, int64_t most);
/* Arena bytes that live during the next call only. */
int bind_scratch(Binder *b, ElemType e, size_t count);
/* The scratch of the call just made may have up to `most` bytes, in steps of `step`, where the
 * arena has room for them while the call runs, and `least` where it would be what the size of the
 * arena depends on; the int32_t at `field` of the params says how many. */
void bind_grow(Binder *b, int scratch, size_t field, size_t least, size_t step, size_t most);
/* With less than `bytes` the kernel is several times slower: only -max-arena takes them away. */
void bind_keep(Binder *b, size_t bytes);
/* Arena bytes that live from the first call that uses them to the last. */
int bind_temp(Binder *b, ElemType e, size_t count);
/* Tensors [N, C, ...] may be kept with channels last, [N, ..., C], between the nodes that prefer it
 * (program/layout.c). bind_value converts back where a node asks for the ONNX order. */
/* Whether the value is kept with channels last only, so that following suit is free. */
bool bind_is_last(const Binder *b, const Value *v);
/* The buffer of a value with channels last: converted where it is not, made where it is new. */
int bind_last(Binder *b, const Node *n, const Value *v);
/* Buffers of an operand and a result of the same shape, for a kernel that maps each element alone:
 * the result is kept as the operand is. */
void bind_each(Binder *b, const Node *n, const Value *x, const Value *y, int *from, int *to);
/* `out` holds the same bytes as `in` (Reshape, Identity): no call, one buffer, where possible. */
bool bind_alias(Binder *b, const Node *n, const Value *out, const Value *in);
/* `out` is min(max(in, lo), hi): no call where the one before makes `in`, for this node only, and
 * its kernel clamps what it writes, having the params `clamped`, `lo` and `hi`. Else false. */
bool bind_clamped(Binder *b, const Node *n, const Value *out, const Value *in, float lo, float hi);
/* `out` is `in` with its channels moved from behind to the front, [N, ..., C] to [N, C, ...]
 * (`to_front`), or back: the same bytes in the other order. False, with nothing done, where that
 * takes a call. */
bool bind_moved(Binder *b, const Value *out, const Value *in, bool to_front);
/* Appends a call. `params` is copied. A kernel that does not exist for these element types is
 * reported as an operator not supported on them. */
bool bind_call(Binder *b, const Node *n, const char *kernel, const void *params, size_t params_size,
               int n_args, const int *args);
/* The call just made reads this packed; copied. */
void bind_unpacked(Binder *b, const Plain *plain);
/* The call just made may write its result in the place of argument `arg`, where nobody else reads
 * that: exactly in its place, or over any part of it as long as the result begins `lead` bytes or
 * more before it (ir/ops/overlay.h finds the lead of kernels that read and write front to back). */
void bind_in_place(Binder *b, int arg);
void bind_over(Binder *b, int arg, int64_t lead);
/* The call just made reads integers of `v` (NULL: none), `n` in turn, as Within says. */
void bind_within(Binder *b, const Value *v, bool from_end, const int32_t *lengths, int n);
void bind_macs(Binder *b, int64_t macs);
/* The element type in which operators compute on real numbers: double while bind_in_double
 * (ir/ops/bind.h) runs. */
ElemType bind_real(const Binder *b);
void bind_control(Binder *b, const Node *n, CallKind kind, int condition);
/* The calls from here to CALL_NEXT are repeated; CALL_END follows. Buffers as in CallKind. */
void bind_loop(Binder *b, const Node *n, int condition, int done, int most);
/* Copies the bytes of one buffer to another of the same size. */
void bind_copy(Binder *b, const Node *n, int from, int to);
/* Whether both buffers are the same memory. */
bool bind_same_bytes(const Binder *b, int x, int y);
/* instance_name, in the program's arena. */
const char *bind_kernel(Binder *b, const char *name, int n, const ElemType *types);
/* Of NAME_f32 its twin on doubles, NAME_f64; NULL where there is none. */
const KernelDef *bind_twin(Binder *b, const char *name);
/* Whether the length of an axis may be another in the next run: kernels whose sums go in another
 * order are not chosen by it then, so that all lengths have the same numbers. */
bool bind_any_length(const Binder *b);
/* How sums are rounded where their kernels have a choice. */
SumRounding bind_rounding(const Binder *b);
/* Says what is wrong with one node, at its place; binding goes on, and fails in the end. */
void bind_error(Binder *b, const Node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Says that the operator cannot run and why; returns false. Collected, one line an operator type.
 */
bool bind_unsupported(Binder *b, const Node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
