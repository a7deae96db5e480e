/* One operator = one row of ops.def = one OpDef, defined in the file that carries its name.
 *
 * An OpDef says everything qxc knows about an operator beyond ONNX's own schema (onnx_schema.h):
 * its attributes as a typed struct, its laws, its shapes, what quantization means to it, which
 * QOperator it becomes, how older opsets are rewritten, and which kernels run it. Passes and the
 * back ends ask the OpDef; a name is compared only where a pass is about that operator alone.
 *
 * Operators without a row still read, print and write. To add one see docs/hacking.md. */
#ifndef QXC_IR_OPS_OP_H
#define QXC_IR_OPS_OP_H

#include "program/program.h"
#include "ir/onnx_schema.h"

/* ---- attributes, decoded once by op_resolve ---- */

typedef struct Ints {
    const int64_t *v; /* NULL when the attribute is absent */
    size_t n;
} Ints;

typedef struct Floats {
    const float *v;
    size_t n;
} Floats;

typedef struct Strs {
    const Str *v;
    size_t n;
} Strs;

typedef struct AttrSpec {
    const char *name; /* NULL ends the list */
    AttrKind kind;
    size_t offset; /* in the operator's struct */
    bool required;
    int64_t def_int;
    float def_float;
    const char *def_str;
    /* Of a string: what it may be, parted by blanks; behind | what is taken without being told of.
     * NULL: anything. Others are errors, as in onnxruntime. */
    const char *words;
    bool flag; /* of an integer: 0 or 1. Others, which ONNX allows, are warnings */
} AttrSpec;

/* Members: int64_t, float, Str, Ints, Floats, Strs, const Tensor *, Graph *. A default that ONNX's
 * schema states for the model's opset wins over the one given here. */
#define ATTR(S, m, text, of, ...)                                                                  \
    {.name = (text), .kind = (of), .offset = offsetof(S, m), __VA_ARGS__}
#define A_INT(S, m, def)        ATTR(S, m, #m, ATTR_INT, .def_int = (def))
#define A_INT_REQUIRED(S, m)    ATTR(S, m, #m, ATTR_INT, .required = true)
#define A_FLOAT(S, m, def)      ATTR(S, m, #m, ATTR_FLOAT, .def_float = (def))
#define A_STR(S, m, def)        ATTR(S, m, #m, ATTR_STRING, .def_str = (def))
#define A_FLAG(S, m, def)       ATTR(S, m, #m, ATTR_INT, .def_int = (def), .flag = true)
#define A_WORD(S, m, def, list) ATTR(S, m, #m, ATTR_STRING, .def_str = (def), .words = (list))
#define A_INTS(S, m)            ATTR(S, m, #m, ATTR_INTS, .required = false)
#define A_INTS_REQUIRED(S, m)   ATTR(S, m, #m, ATTR_INTS, .required = true)
#define A_FLOATS(S, m)          ATTR(S, m, #m, ATTR_FLOATS, .required = false)
#define A_STRS(S, m)            ATTR(S, m, #m, ATTR_STRINGS, .required = false)
#define A_TENSOR(S, m)          ATTR(S, m, #m, ATTR_TENSOR, .required = false)
#define A_GRAPH_REQUIRED(S, m)  ATTR(S, m, #m, ATTR_GRAPH, .required = true)
#define A_END                   {.name = NULL}

/* ---- verify and infer ---- */

/* One node as the float operator sees it. For a QOperator node (QLinearConv) the scale and zero
 * point operands are taken out, so that Conv's functions serve it too. */
typedef struct OpCtx {
    const Node *node;
    const void *attrs; /* the decoded struct */
    int64_t opset;     /* version of the operator's domain */
    size_t n_in;
    Value *const *in; /* NULL entries: omitted */
    size_t n_out;
    Type *out; /* infer fills these: element type as unquantized, and shape */
    /* Scratch within infer, which keeps dimensions alone beyond the node; else the module's. */
    Arena *arena;
    Diags *d;
} OpCtx;

/* ---- quantization ---- */

typedef enum QuantClass {
    QUANT_NEVER,   /* float only: DequantizeLinear before, QuantizeLinear after */
    QUANT_MOVE,    /* moves data: output quantization = input's (Reshape, Transpose) */
    QUANT_ORDER,   /* keeps order: the same, and scale > 0 matters (MaxPool) */
    QUANT_MAC,     /* multiplies and accumulates: data x weight + bias (Conv, Gemm) */
    QUANT_COMPUTE, /* every operand and the result with parameters of their own (Add) */
    QUANT_JOIN,    /* several data inputs moved into one result (Concat); may requantize */
    QUANT_CLAMP,   /* exact on integers when output = input quantization (Relu, Clip) */
} QuantClass;

/* QuantRule.prefers_float where what goes in or comes out spans too much for 8 bits (Exp, Sqrt),
 * and of data movers that runtimes have in float as well. */
#define SPANS_TOO_MUCH "8 bits are few for what it computes"
#define GAINS_NOTHING  "runtimes gain nothing from its integers"

/* The sums of one MAC node: `terms` products for each of `positions` and each channel, of which
 * there are `groups` that see the same numbers. */
typedef struct MacSums {
    int64_t groups, terms, positions;
} MacSums;

/* A product of data and weights plus a bias. */
typedef struct MacRule {
    int weight; /* which input is the weight; 0 for none */
    int bias;   /* also of stored weights: which input is the bias; 0 for none */
    /* Operand 0 may have parameters computed at run time (uint8q<dynamic>): ONNX has a product of
     * integers in the operator's form. */
    bool takes_dynamic;
    bool computed_signed; /* weights that are no constants have to be signed for its kernels */
    /* The weight's axis of output channels, -1 where per-axis makes no sense here. */
    int (*weight_axis)(const OpCtx *c);
    /* What its sums go over, for passes that look at data; shapes are static. `terms` writes the
     * numbers of operand 0 (at `x`) that meet the weights of a channel of each group, in the order
     * of those, at one of the result's positions: [groups, terms]. False: not in this form. NULL:
     * passes leave it. */
    bool (*sums)(const OpCtx *c, MacSums *s);
    void (*terms)(const OpCtx *c, const MacSums *s, const float *x, int64_t position, float *out);
    /* Names of float attributes that multiply the product and the bias (Gemm alpha, beta), or NULL.
     * Folded into the constants before anything is quantized. */
    const char *weight_factor, *bias_factor;
} MacRule;

/* What carries elements elsewhere. */
typedef struct MoveRule {
    int (*axis)(const OpCtx *c, int axis); /* where one of the input goes; -1: not whole */
    /* Whether this node makes numbers of its own, between those of its operand (Resize). Then its
     * result may lie on another grid, which it is rounded to once. NULL: never. */
    bool (*interpolates)(const OpCtx *c);
    bool looks_up; /* takes parts of operand 0 that operand 1 numbers (Gather) */
    /* Which operand is the value that new elements take, 0: there is no such operand. Left out it
     * is 0: the number, or the integer. */
    size_t fill;
    bool (*fills)(const OpCtx *c); /* whether this node makes any; else the operand says nothing */
    /* Whether that is a number which the operand's integers may not hold, but can be made to, or
     * rounded to. NULL: never. */
    bool (*fills_anew)(const OpCtx *c);
} MoveRule;

/* How factors of operands come out of it. */
typedef struct ScaleRule {
    /* f(s x) = s f(x) for every s > 0 that all data operands are scaled by, channel by channel:
     * what does not move stays on its axis. Data movers need not say so. */
    bool homogeneous;
    /* Bit i: operand i is a factor of result 0 or is added to it, and together they are all that
     * the result is proportional to (a normalization's Scale and B); 0: none. */
    uint32_t proportional;
    bool multiplies; /* result 0 is the product of the operands: proportional to each alone */
} ScaleRule;

/* Weights of a node that is no product (LSTM): where weights alone are quantized (-weight-only),
 * they are stored as integers. Of COMPUTE all these are integers where data and every result are.
 */
typedef struct StoredRule {
    uint32_t operands; /* bit i: operand i */
    int axis, summed;  /* of output channels, and what it sums over */
} StoredRule;

typedef struct QuantRule {
    QuantClass kind;
    uint32_t data; /* bit i: input i is data that takes a quantized type; bit 31: every input */
    MacRule mac;
    MoveRule move;
    /* COMPUTE: integer kernels take operands and result of one storage type; others are converted
     * for the call (ir/ops/bind_storage.c). */
    bool same_storage;
    /* COMPUTE: every result that is read has parameters of its own, not the first alone. */
    bool all_results;
    /* COMPUTE: a function of one number, on integers a table (bind_table). Runtimes have such
     * kernels for 8 bits at most. */
    bool curve;
    /* COMPUTE: the sum of its operands, which on int32 of one grid is exact (op_adds_integers). */
    bool adds;
    /* COMPUTE: why it stays float unless integers are asked for (-only, -integer-only); NULL where
     * it does not. */
    const char *prefers_float;
    /* MOVE, COMPUTE: why this node must not run on integers of quantization `x` (Pad with a value
     * that they cannot stand for); NULL when it may. `x` is NULL while it is not chosen: what no
     * choice can make wrong is allowed. NULL function: always allowed. */
    const char *(*integer_refusal)(const OpCtx *c, const Quant *x);
    /* CLAMP: the bounds it cuts at, infinite where there is none; false where they are computed. */
    bool (*clamp)(const OpCtx *c, float *lo, float *hi);
    /* CLAMP: on plain integers it cuts at the integer 0, whatever that stands for (Relu). */
    bool cuts_at_zero;
    ScaleRule scaled;
    /* ORDER: whether an element of the result may be the largest of no elements: that is infinite,
     * which integers do not say. NULL: never. */
    bool (*of_none)(const OpCtx *c);
    uint32_t singular; /* bit i: the result is infinite where operand i is 0 (Log, the divisor) */
    bool keeps_zero;   /* result 0 is 0 where operand 0 is (Sqrt) */
    /* Elements of operand 0 so far below the largest of their row count for nothing in the result
     * (Softmax); 0: all count. */
    float counts_within;
    StoredRule stores;
    bool selects; /* JOIN: each element is one of operand 1 or 2, as operand 0 has it (Where) */
    bool exceeds; /* JOIN: no element is below that of any operand (Max) */
    /* Output parameters that follow from the operator alone (Softmax 1/256): storage given. */
    bool (*fixed_output)(const OpCtx *c, ElemType storage, float *scale, int64_t *zp);
    float least, most; /* between which all results lie (Sigmoid: 0 and 1); equal: not known */
} QuantRule;

/* The QOperator form, as a pattern of operands: "0* 1* y 2" = input 0 with scale and zero point,
 * input 1 likewise, the output's scale and zero point, input 2 as it is. "..*" = all remaining
 * inputs, each with scale and zero point. One description serves lowering, raising, verifying. */
typedef struct QopForm {
    const char *domain, *op; /* NULL op: there is none */
    const char *operands;
    int64_t since; /* opset of the default domain from which it exists */
    /* Whether this node can take the form; else says why. NULL: always. */
    bool (*applies)(const OpCtx *c, const char **why);
    /* Attributes that differ; the others are copied. NULL: none. */
    void (*lower_attrs)(const Node *from, Node *to);
    void (*raise_attrs)(const Node *from, Node *to);
    /* Brings a node that states another opset than the model's into what the model's means; may add
     * constants and nodes, resolved. Else says why it cannot. NULL: the model's counts. */
    const char *(*restate)(Node *n, UniqueNames *names, Diags *d);
} QopForm;

/* The form in which com.microsoft computes with integer weights and an input whose parameters are
 * computed at run time (or none: then weights are all). `operands` are words: "1" operand 1, as
 * integers where it is quantized with "1s" its scale and "1z" its zero point somewhere; an input
 * without "0s" is given as float. One description serves choosing, lowering and raising. */
typedef struct DynamicForm {
    const char *op; /* NULL: there is none */
    const char *operands;
    uint32_t weights; /* bit i: operand i is an 8-bit constant */
    int data;         /* the operand that is uint8q<dynamic>, -1 for none */
    int axis;         /* that scales of weights may go along; -1: none */
    bool transposed;  /* weights have their last two axes the other way around, scales rank 1 */
    int results;      /* that the form must have */
    bool (*applies)(const OpCtx *c, const char **why);
} DynamicForm;

/* ---- the operator ---- */

/* What the operator does to quantization itself. */
typedef enum Conversion {
    CONVERT_NONE,
    CONVERT_QUANTIZE,
    CONVERT_DEQUANTIZE,
    CONVERT_REQUANTIZE,
    CONVERT_REINTERPRET,
} Conversion;

/* What kind of network an operator is typical of. */
typedef enum Family { FAMILY_NONE, FAMILY_CONVOLUTION, FAMILY_SEQUENCE } Family;

/* Of OpDef.slices. */
enum { SLICES_APART = -2, SLICES_OWN = -3 };

typedef struct OpDef {
    const char *domain, *name;
    int since_in_onnx; /* onnxruntime has the operator, as it is from this opset of ONNX on, at all
                          before it, too, and its optimizer writes it there; 0: not so */
    bool composite; /* lib/ has its body: it may stand below its opset, but in an ONNX file, and is
                       spelled out where one is written */
    bool inner; /* passes make it and take it away: it is none of the operators that qxc lists */
    /* The row of this node, whose attributes are decoded, where these make it compute what other
     * nodes move (sums of a ScatterND), or an operand is data that is a constant elsewhere (the
     * exponent of Pow); it has the same name, and no row of its own in ops.def. NULL: this one. */
    const struct OpDef *(*form)(const Node *n);
    bool commutes; /* with two operands, their order does not matter */
    size_t attrs_size;
    const AttrSpec *attrs;
    bool (*verify)(const OpCtx *c); /* laws beyond the schema; NULL: none */
    bool (*infer)(OpCtx *c);
    QuantRule quant;
    QopForm qop;
    DynamicForm dynamic;
    Family family;
    Conversion conversion;
    /* Its graphs see the values around them and each yields all results, one for one (If). */
    bool yields_results;
    /* The body whose inputs are what the node hands in, or NULL; then `given` says what each is the
     * first time round (TYPE_NONE: not known), and `keeps` whether the body, inferred from that,
     * keeps its shapes from one time to the next. NULL: bodies have no inputs. */
    const Graph *(*enter)(const OpCtx *c);
    void (*given)(const OpCtx *c, Type *in);
    bool (*keeps)(const OpCtx *c);
    /* Whether this body of the node is never run, whatever comes in (a branch of an If whose
     * condition is constant): then its shapes need not fit. NULL: each may run. */
    bool (*skips)(const Node *n, const Graph *body);
    bool reshapes; /* what its body hands on may have another shape each time (Loop) */
    /* Bit i: operand i has to be known when a program is built (axes, sizes), or had better be (the
     * condition of an If): where the data have one value for it, it is taken from them. */
    uint32_t fixed;
    /* Not computed ahead of time even where it could be: quantization that is meant to be seen,
     * randomness. */
    bool stays;
    /* Bit i: operand i says by numbers which elements of its data the result has, or where in it
     * they go. Of data movers every operand that is no data does. */
    uint32_t picks;
    /* Those of its results that `infer` leaves an open axis have a length that the data decide, and
     * a run tells (bind_counted). */
    bool counts;
    /* How long the open axis of its results can be at most, where operands are of fixed shape; -1:
     * that is not known. NULL: never. */
    int64_t (*longest)(const OpCtx *c);
    /* Writes the call that says how long the open axis of its results is, of what operands hold
     * that `fixed` names: an int64 at `length`, -1 where they are illegal. `bind` is then asked
     * with that length in the types (exec/bounded.h). NULL: operands do not decide, or C has no
     * way. */
    bool (*bind_length)(Binder *b, const Node *n, const OpCtx *c, int length);
    /* The elements of result 0 where the attributes hold them (Constant), else NULL. */
    const Tensor *(*constant)(const Node *n);
    /* The elements of result 0 where they follow from the operands' types (Shape), else NULL. */
    const Tensor *(*from_types)(const OpCtx *c);
    /* Of result 0, a list, the operand that element `*at` is as it is, and its number there, which
     * goes to `*at` (Concat); NULL: that is not known. What is `flat` needs none. */
    const Value *(*element)(const OpCtx *c, int64_t *at);
    /* Fills the axis along which results say where the first of operand 0's numbers stands, the
     * largest with ranks_largest: their order is all that counts (ArgMax). */
    bool (*ranks)(const OpCtx *c, int *axis);
    bool ranks_largest;
    /* Fills the axis along which the largest of result 0 is where that of operand 0 is, where it is
     * alone by 2^-16 or more (Softmax). */
    bool (*keeps_largest)(const OpCtx *c, int *axis);
    /* Result 0 is false of every number that integers stand for (IsNaN, IsInf). */
    bool false_of_integers;
    /* When this node and its constants compute scale[c] * x + shift[c] along `axis` of input
     * `*data`, fills both (length `channels`) and returns true (BatchNormalization, Mul, Add). */
    bool (*affine)(const OpCtx *c, int axis, size_t channels, size_t *data, double *scale,
                   double *shift);
    /* Whether result 0 is operand 0, element for element (Cast to the type it has, Dropout outside
     * of training). NULL: data movers are that where no axis moves, other operators never. */
    bool (*passes_on)(const OpCtx *c);
    /* Where this node puts zeros around operand 0 and does nothing else (Pad): how many before and
     * after each axis, none below 0. NULL: never. */
    bool (*zero_pads)(const OpCtx *c, int64_t *before, int64_t *after);
    /* Takes zeros around operand 0, so many before and after each axis, over as padding of its own
     * (Conv); `least` is a bound that no element of the operand lies below. False where that is not
     * the same; nothing has changed then. NULL: never. */
    bool (*take_pads)(Node *n, const int64_t *before, const int64_t *after, float least);
    /* Rewrites a node written for opset `from` into the form of `to` (>= from); NULL: only type
     * lists changed. May add constants and nodes. Returns false after a diagnostic. */
    bool (*upgrade)(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d);
    /* Of several ways to state the same, takes the one that runtimes' integer kernels know; may add
     * constants. Asked where operands or results are quantized, before they are lowered. NULL:
     * there is one way. */
    void (*normalize)(Node *n, UniqueNames *names);
    /* Whether this node is in a form of ours that ONNX's schema does not describe (QuantizeLinear
     * with its parameters in the type); NULL: never. */
    bool (*own_form)(const Node *n);
    /* Which axis of result `result` the axis of operand i becomes, where each slice there is
     * computed from that slice of the operands that have the axis, and all slices alike, wherever
     * they stand; -1: they are mixed; SLICES_APART: the result is not made of operand i;
     * SLICES_OWN: its slices differ by their own numbers alone, each of which takes its slice.
     * NULL: what broadcasts (op_broadcast) keeps all axes, data movers those of operand 0 that
     * `move.axis` keeps, others none. Shapes are static. */
    int (*slices)(const OpCtx *c, size_t i, int axis, size_t result);
    bool flat;       /* result 0 has the elements of operand 0, in their order (Reshape) */
    uint32_t shapes; /* bit i: operand i says what shape the result has, and no more (Expand) */
    /* Writes the kernel calls; shapes are static. A model that is to stay at an older opset is
     * calibrated in its own form: attributes that became operands count. NULL: cannot run. */
    bool (*bind)(Binder *b, const Node *n, const OpCtx *c);
} OpDef;

enum { OPS_BIND_OPSET = 13 }; /* what runs is upgraded to, where -target-opset is not older */

/* The row for an operator; NULL when there is none. QOperators are found by qop_find. */
const OpDef *op_find(Str domain, Str op);
/* Which conversion a node is, com.microsoft's included, in ONNX's form or ours. */
Conversion node_conversion(const Node *n);
/* What a Cast casts to; ELEM_UNDEFINED: it is none. */
ElemType node_cast(const Node *n);
bool value_is_counted(const Value *v); /* by the node that makes it (OpDef.counts); not NULL's */
/* An operand that says what shape the node's result has, where its numbers have to be known and are
 * not; else NULL. */
const Value *node_shape_operand(const Node *n);
/* One of QONNX's operators that round to a grid, in one of its domains (passes/raise). */
bool node_is_qonnx(const Node *n);
bool node_is_constant(const Node *n); /* of this body: it yields what its attribute holds */
/* Conversions in ONNX's form, of the default domain or com.microsoft: scale and zero point as
 * operands. */
bool is_onnx_quantize(const Node *n);
bool is_onnx_dequantize(const Node *n);
const Node *onnx_dequantize_of(const Value *v); /* that makes v of integers, or NULL */
/* The float operator whose QOperator form this is (QLinearConv -> Conv), or NULL. */
const OpDef *qop_find(Str domain, Str op);
/* What its row says of the attribute, or NULL. */
const AttrSpec *op_attr(const OpDef *op, Str name);
size_t op_count(void);
const OpDef *op_at(size_t i);

/* Looks up the row and decodes the attributes into node->def and node->typed. Unknown operators
 * are fine (def stays NULL); wrong attributes are errors. Call again after changing attributes. */
bool op_resolve(Node *n, Diags *d);
bool module_resolve(Module *m, Diags *d);
/* A context over a resolved node; out types are room for n_out types, set to TYPE_UNKNOWN. Where
 * `d` is NULL nothing is said. */
OpCtx op_ctx(const Node *n, Diags *d);
/* The same, with that room in `few`, the caller's, if it is enough: nothing stays in the arena. */
enum { OP_FEW = 4 };
OpCtx op_ctx_few(const Node *n, Type few[OP_FEW], Diags *d);

/* Version of the operator's domain that the node's graph imports, 0 when it does not. */
int64_t node_opset(const Node *n);
bool node_imported(const Node *n); /* a version 0 counts */
/* Who takes the node's domain as imported though the model does not import it; NULL: nobody does.
 */
const char *node_import_implied(const Node *n);
const OnnxSchema *node_schema(const Node *n); /* at that version; NULL when unknown */
bool node_in_function(const Node *n);
bool node_reads_faulty(const Node *n); /* an operand has an error, or the node it comes from */
bool node_rank_fits(const Node *n);    /* no operand or result has more than MAX_RANK dimensions */

/* Infers every type, checks them against the stated ones and fills in what was not stated. Types
 * that ONNX stated (Value.declared) are left as they stand. Function bodies have no types. */
bool module_infer(Module *m, Diags *d);
/* The same for a model as an ONNX file states it: types that contradict are no faults there. They
 * are set aside (Value.stated) with a warning, and the inferred one is taken. */
bool module_infer_onnx(Module *m, Diags *d);
/* The results of one resolved node, whose subgraphs are inferred already. */
bool node_infer(Node *n, Diags *d);
/* The same, and makes declared types as precise as what was inferred: a number replaces a symbol.
 * For programs, after the inputs' shapes were fixed. */
bool module_refine(Module *m, Diags *d);
/* The same, before constants are folded: conditions may turn out to be constant then, and what does
 * not fit in a branch that they skip is no fault. Faults in bodies that may be skipped wait for
 * module_refine. */
bool module_refine_early(Module *m, Diags *d);
/* Whether the graph is, or is within, a body that is never run (OpDef.skips). */
bool graph_never_runs(const Graph *g);
/* The branch of an If that always runs, as its condition is constant; NULL for all other nodes. */
Graph *node_branch(const Node *n);

typedef enum VerifyFlags {
    VERIFY_ERRORS = 0,
    VERIFY_WARN = 1,  /* also what is legal and probably not meant; once in a run is enough */
    VERIFY_KNOWN = 2, /* `<?>` is an error: lowering comes next */
    VERIFY_ONNX = 4,  /* for module_check: as module_infer_onnx */
} VerifyFlags;
/* All laws: structure, schema types, operators, quantization (language page, verifier table).
 * Wants a module that is resolved and inferred. */
bool module_verify(Module *m, Diags *d);
/* Resolves, infers and verifies. One run tells all problems, and each once: a fault hides no other,
 * and what reads a result of a faulty node is held against no law. */
bool module_check(Module *m, unsigned flags, Diags *d);
/* What is no fault where a model is only read and written, so that any file comes back, and is one
 * where it is run, quantized or lowered: bad scales and zero points as operands of nodes, bad
 * dimensions and types of the graph's inputs and outputs (verify_use.c). */
bool module_check_use(Module *m, Diags *d);
bool module_verify_with(Module *m, unsigned flags, Diags *d);
/* That a node has as many operands and results as its schema asks for, none of them left out that
 * must be there. True where no schema is known. */
bool node_count_operands(const Node *n, Diags *d);
/* That operands and results have element types that its schema allows together. True where no
 * schema is known. */
bool node_types_fit(const Node *n, Diags *d);
/* Whether a node computes on plain integers what ONNX has on floats alone (plain_integer.c): it is
 * read and written, and runs once it was raised. The elements of its first result, of which
 * inference by ONNX's rules says `inferred`. */
bool node_on_integers(const Node *n);
ElemType node_integer_elem(const Node *n, ElemType inferred);
/* One of these: floats beside a constant of double to fill up with, as Aidge's Pad has it. */
bool node_fills_from_double(const Node *n);
bool verify_functions(Module *m, unsigned flags, Diags *d);      /* verify_functions.c */
bool verify_structure(Module *m, Diags *d);                      /* verify_structure.c */
bool verify_node_quant(const Node *n, unsigned flags, Diags *d); /* verify_ops_quant.c */

/* ---- help for operator files (ir/ops/util.c) ---- */

Value *op_in(const OpCtx *c, size_t i); /* NULL when omitted */
Type op_type(const OpCtx *c, size_t i); /* TYPE_UNKNOWN when omitted */
bool op_error(const OpCtx *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same where one operand (by its number in `c`), result or attribute is at fault: the message
 * points at that one. Of an attribute that is not there, at the operator. */
bool op_error_in(const OpCtx *c, size_t i, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool op_error_out(const OpCtx *c, size_t i, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool op_error_attr(const OpCtx *c, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* An attribute of old opsets that became operand i. */
bool op_error_param(const OpCtx *c, const char *name, size_t i, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Places of a node's own operands and results, for a message; of the node where it is omitted. */
Loc node_in_loc(const Node *n, size_t i, Diags *d);
Loc node_out_loc(const Node *n, size_t i, Diags *d);
/* Of the attribute's value; the node where it has none of the name. */
Loc node_attr_loc(const Node *n, const char *name, Diags *d);
Loc op_in_loc(const OpCtx *c, size_t i);          /* by the number in `c` */
const Tensor *op_const(const OpCtx *c, size_t i); /* data of a constant input */
/* The real number that element i of a constant stands for, dequantized where its type has known
 * parameters. */
double op_real(const Value *v, size_t i);
bool op_ints(const OpCtx *c, size_t i, Ints *out); /* a constant int64 list input */
/* A list of integers of which some may be known: those of a constant, and what Concat and the like
 * put together of constants. False where not even its length is known, or it is more than twice
 * MAX_RANK. */
typedef struct SomeInts {
    size_t n;
    const int64_t *v;
    const bool *known;
} SomeInts;
bool op_some_ints(const OpCtx *c, size_t i, SomeInts *out);
bool op_all_known(SomeInts list);
SomeInts op_known_ints(const OpCtx *c, Ints list);              /* all of them */
bool op_number(const OpCtx *c, const char *name, int64_t v);    /* an attribute from 1 to 2^31-1 */
bool op_axis(const OpCtx *c, int64_t axis, int rank, int *out); /* normalises, checks */
/* Indices of single elements (GatherElements, ScatterElements) have the data's rank, and lie within
 * its shape but for the axis. */
bool op_elements_fit(const OpCtx *c, size_t data, size_t indices, int64_t axis);
/* Constant indices, `n` numbers each, lie within lengths[0] to lengths[n - 1]; negative ones count
 * from the end. Kernels would clamp others, onnxruntime refuses them as it runs. */
bool op_indices_fit(const OpCtx *c, size_t indices, const int32_t *lengths, size_t n);
/* set[axis] for each; no repeats. They are attribute `axes` or this operand. */
bool op_axes(const OpCtx *c, Ints axes, size_t operand, int rank, bool *set);
/* out[i], where it is wanted, with elements of type `like` unquantized; -1: not known. */
void op_result(OpCtx *c, size_t i, Type like, int rank, const int64_t *dims);
bool op_same_type(OpCtx *c);      /* out[0] = real type of in[0] */
bool op_is_alone(const OpCtx *c); /* `passes_on` of what joins operands: there is one */
bool op_broadcast(OpCtx *c);      /* out[0] = numpy broadcast */
/* `slices` that several operators have (slices.c): along all axes, aligned as broadcasting does it;
 * the same of operand 0 alone; along the first axis of operand 0, result 0 alone. */
int op_slices_each(const OpCtx *c, size_t i, int axis, size_t result);
int op_slices_same(const OpCtx *c, size_t i, int axis, size_t result);
int op_slices_first(const OpCtx *c, size_t i, int axis, size_t result);
/* What `op` says of the node, by its own rule or by those above. */
int op_slices(const OpDef *op, const OpCtx *c, size_t i, int axis, size_t result);
Dim dim_of(int64_t v);
Dim dim_unknown(void);
bool dim_differ(int64_t x, int64_t y); /* both known, and not the same */
int64_t dim_mul(int64_t x, int64_t y); /* of sizes, saturating */
int64_t dim_add(int64_t x, int64_t y);
int64_t dim_parts(int64_t x, int64_t size); /* how many of that size cover x; size > 0 */
bool dim_broadcast(Dim x, Dim y, Dim *out); /* numpy's rule; false where they contradict */
/* The elements of a constant, through a Constant node too; NULL when not known. */
const Tensor *value_data(const Value *v);
/* Whether a resolved node is a data mover of operand 0 that makes no numbers of its own: rounding
 * before it is the same as behind it. */
bool node_moves(const Node *n);
bool node_interpolates(const Node *n);
/* The quantization that a mover's result must have; NULL when a quantized axis does not survive. */
const Quant *op_moved_quant(const OpCtx *c, const OpDef *op, const Quant *q);

/* For upgrades (rewrite.c): an attribute that became operand `index`; nothing when it is absent. */
void upgrade_ints_attr(Node *n, const char *attr, size_t index, UniqueNames *names);
void upgrade_int_attr(Node *n, const char *attr, size_t index, UniqueNames *names); /* a scalar */
void upgrade_float_attr(Node *n, const char *attr, size_t index, UniqueNames *names);
/* A new list constant of int64 or float, named after the node. */
Value *upgrade_ints(Node *n, const char *suffix, Ints list, UniqueNames *names);
Value *upgrade_floats(Node *n, const char *suffix, Floats list, UniqueNames *names);

/* A spatial window (Conv, pools): attributes resolved against the input shape. */
typedef struct Window {
    int n; /* spatial rank */
    int64_t kernel[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK];
    int64_t pad_begin[MAX_RANK], pad_end[MAX_RANK];
    Dim out[MAX_RANK];
} Window;
typedef struct WindowAttrs {
    Str auto_pad;
    Ints kernel_shape, strides, pads, dilations;
    int64_t ceil_mode;
} WindowAttrs;
#define WINDOW_ATTRS(S)                                                                            \
    ATTR(S, w.auto_pad, "auto_pad", ATTR_STRING, .def_str = "NOTSET",                              \
         .words = "NOTSET SAME_UPPER SAME_LOWER VALID"),                                           \
        ATTR(S, w.kernel_shape, "kernel_shape", ATTR_INTS, .required = false),                     \
        ATTR(S, w.strides, "strides", ATTR_INTS, .required = false),                               \
        ATTR(S, w.pads, "pads", ATTR_INTS, .required = false),                                     \
        ATTR(S, w.dilations, "dilations", ATTR_INTS, .required = false)
/* A list of n numbers, one for each spatial dimension (pads: two), from `least` to 2^31-1; or none.
 */
bool op_list_fits(const OpCtx *c, const char *name, Ints list, size_t n, int64_t least);
/* `x` is [N, C, spatial...]; `kernel` overrides kernel_shape where it is NULL (weights' dims). */
bool op_window(const OpCtx *c, const WindowAttrs *a, Type x, const int64_t *kernel, Window *w);
/* Adds `before` and `after` of the spatial axes to the node's own pads. False, and nothing changed,
 * where other axes are padded, auto_pad computes pads from the size, or pads would reach `limit[i]`
 * (NULL: no limit). */
bool op_window_grow(Node *n, const WindowAttrs *a, const int64_t *before, const int64_t *after,
                    const int64_t *limit);

/* Quantization of operand or result for binding: the Quant where quantized, else NULL. */
const Quant *op_quant(const Value *v);
/* Whether the node adds int32 numbers of one grid with zero point 0, as accumulator and bias are,
 * per tensor or along the last axis: the integers themselves are added. */
bool op_adds_integers(const Node *n);
/* That in words which say what to do about it, NULL where the operator prefers integers. */
const char *op_prefers_float(const Node *n);
/* Why no integer product takes weights with scales along these axes; NULL when it does. */
const char *quant_axis_refusal(const Node *n, const Quant *w);
bool quant_rule_is_data(const QuantRule *r, size_t input);
/* The axis of a product's weight that its output channels stand along; -1: none. */
int quant_weight_axis(const QuantRule *r, const OpCtx *c);
/* Whether operand i holds floats, or stands for them, that are no constant of the node's; for
 * OpDef.form. */
bool node_computed_floats(const Node *n, size_t i);

#endif
