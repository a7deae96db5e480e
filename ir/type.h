/* Types: tensors of an element type and a shape, with quantization as part of the type.
 *
 * A tensor with a quantization is one of three things:
 *   int8q<0.1, 3>[N,4]         quant set, tilde false: it is quantized; elem is the storage
 *   float[N,4] ~ int8q<0.1, 3> quant set, tilde true: it is float, meant to lie on that grid
 *                              (fake-quant form)
 *   int8[N,4] ~ int8q<0.1, 3>  the same of plain integers: what they mean is recorded
 * x = scale * (q - zp). Quants are immutable once made and may be shared; all memory belongs to
 * the module's arena. */
#ifndef QXC_IR_TYPE_H
#define QXC_IR_TYPE_H

#include "support/buf.h"
#include "support/diag.h"

typedef enum ElemType {
#define ELEM(id, number, name, bits, kind) ELEM_##id = number,
#include "ir/elem.def"
#undef ELEM
} ElemType;

const char *elem_name(ElemType e); /* "int8"; "?" for an unknown number */
ElemType elem_from_name(Str name); /* ELEM_UNDEFINED when there is none */
/* As safetensors files name them, "F32"; NULL and ELEM_UNDEFINED where that has no name. */
const char *elem_dtype(ElemType e);
ElemType elem_from_dtype(const char *dtype);
bool elem_known(int number);
int elem_bits(ElemType e);    /* 0 for string */
bool elem_is_int(ElemType e); /* signed or unsigned integer, not bool */
bool elem_is_signed(ElemType e);
bool elem_is_float(ElemType e);
/* Smallest and largest value of an integer type of at most 32 bits. */
int64_t elem_min(ElemType e);
int64_t elem_max(ElemType e);
/* Bytes that `count` packed elements take, as in ONNX raw_data (tail padded). */
size_t elem_bytes(ElemType e, size_t count);

/* What operators have laws and kernels for, and what quantization is for. Tensors of more
 * dimensions read, print and write; the operators they meet are kept as unknown ones are (infer.c).
 */
enum { MAX_RANK = 8 };

typedef enum QuantKind {
    QUANT_PARAMS,  /* int8q<0.1, 3> */
    QUANT_UNKNOWN, /* int8q<?>: to be quantized, parameters not known yet; `~ ?`: nothing known
                      yet, storage ELEM_UNDEFINED */
    QUANT_DYNAMIC, /* uint8q<dynamic>: parameters computed at run time */
    QUANT_ACC,     /* acc<%x, %w>: int32, scale = float32 product, zp 0 */
} QuantKind;

/* The numbers of a small floating-point type (ir/minifloat.h): bits behind the point, where the
 * first binade begins, the largest number, and what it has beside numbers. */
typedef struct FloatGrid {
    int mantissa, least; /* 2^least */
    float most;
    bool infinity, nan, negative_zero;
} FloatGrid;

/* What q is in x = scale * (q - zp), as the storage type says. */
typedef enum GridKind {
    GRID_INTEGERS, /* int8q: every integer from lo to hi */
    GRID_FLOATS,   /* float8e4m3fnq: the numbers of that type; no zero point but 0 */
} GridKind;

struct Value;

/* Where the text states each part of a quantization; none where it does not. */
typedef struct QuantLocs {
    Loc scale, zp, axis, block, range, expr, scale_type;
} QuantLocs;

typedef struct Quant {
    QuantKind kind;
    ElemType storage;
    size_t n_scale; /* 1 per tensor; else the length of the axis or the grid of blocks, row-major */
    const float *scale;
    size_t n_zp; /* 0: absent, meaning 0; 1: one for all; or n_scale */
    const int64_t *zp;
    int n_axes; /* 0 per tensor */
    int axis[MAX_RANK];
    int64_t block[MAX_RANK]; /* per axis, elements that share parameters; 1 where not blocked */
    GridKind grid;
    union {
        struct {            /* GRID_INTEGERS */
            int64_t lo, hi; /* the part of the storage range in use; the whole without has_range */
            bool has_range;
            bool wide_zp; /* zero points may lie outside of lo..hi (-wide-zp) */
        };
        FloatGrid floats; /* GRID_FLOATS */
    };
    ElemType expressed;  /* the real type it stands for, FLOAT by default */
    ElemType scale_type; /* element type of the stored scale, FLOAT by default */
    Str alias;           /* "!name" line that states it, or STR_NONE when written in place */
    Loc loc;
    const QuantLocs *at; /* where a text states its parts, or NULL */
    /* QUANT_ACC only: what the scale is the product of, each a value or an alias. */
    const struct Value *acc_value[2];
    const struct Quant *acc_quant[2];
    bool has_sum; /* printed with a checksum of its scales, and the first operand's one */
    uint32_t sum;
} Quant;

/* A per-tensor quantization with the full range of `storage`. */
Quant *quant_per_tensor(Arena *a, ElemType storage, float scale, int64_t zp);
/* Per index along `axis`; `zp` may be NULL for 0. Arrays are copied. */
Quant *quant_per_axis(Arena *a, ElemType storage, int axis, size_t n, const float *scale,
                      const int64_t *zp);
/* What ONNX gives an int32 bias: scale = float32 product of x's and each of w's, zp 0. x must be
 * per tensor. Per axis 0 when w is. */
Quant *quant_product(Arena *a, const Quant *x, const Quant *w);
/* To be quantized; `storage` may be ELEM_UNDEFINED. */
Quant *quant_open(Arena *a, ElemType storage);
/* The numbers of this element type are the grid, all of them. */
void quant_store(Quant *q, ElemType storage);
bool elem_has_grid(ElemType e); /* integers of at most 32 bits, float8e4m3fn and its kin */
bool quant_is_integers(const Quant *q);
/* A copy that may be changed before it is used. */
Quant *quant_copy(Arena *a, const Quant *q);
/* Equal in meaning (absent zp = 0, one zp = all the same), whatever the alias. */
bool quant_equal(const Quant *x, const Quant *y);
/* Scales and zero points are numbers: those of <0.1, 3> and acc<...>, not of <?> and <dynamic>. */
bool quant_is_known(const Quant *q);
bool quant_is_per_tensor(const Quant *q);
bool quant_is_blocked(const Quant *q); /* several elements of an axis share, or several axes vary */
int64_t quant_lo(const Quant *q);      /* GRID_INTEGERS: smallest and largest integer in use */
int64_t quant_hi(const Quant *q);
float quant_scale(const Quant *q, size_t i); /* i-th, or the only one */
int64_t quant_zp(const Quant *q, size_t i);
/* QuantizeLinear of one number: rint(x / scale) + zp, divided in float32, ties to even, saturated
 * into lo..hi; NaN gives lo. */
int64_t quant_round(float x, float scale, int64_t zp, int64_t lo, int64_t hi);
/* The same with the i-th parameters, into quant_lo..quant_hi. NaN gives the lowest integer of the
 * storage type, whatever the range, as in onnxruntime. */
int64_t quant_of_real(const Quant *q, size_t i, float x);
/* On either grid, the element nearest to x as it is stored: of GRID_FLOATS the bits of x / scale,
 * ties to even, saturated to the largest number; NaN stays NaN. */
uint64_t quant_bits(const Quant *q, size_t i, float x);
bool quant_zp_all_zero(const Quant *q);
/* Real 0 stands in the middle of the integers, as params_from_ranges puts it. */
bool quant_is_symmetric(const Quant *q);
/* A zero point lies outside the range, so that real 0 has no integer (-wide-zp). */
bool quant_is_wide(const Quant *q);
enum { QUANT_WIDEST_ZP = 1 << 20 }; /* how far outside, of at most 16 bits of storage */
bool quant_is_pow2(const Quant *q);
/* How many elements behind one another (row-major) a step along the axis is. */
size_t dims_step(int rank, const int64_t *dims, int axis);
/* Which entry of scale/zp belongs to element `index` (row-major) of a tensor of these dims. */
size_t quant_index(const Quant *q, int rank, const int64_t *dims, size_t index);

/* A walk over the elements of a tensor in runs, one behind the other, that share the parameters of
 * `entry`, or (`each`) have those of `entry`, `entry` + 1, and so on. */
enum { QUANT_RUN_MAX = 4096 };
typedef struct QuantRuns {
    size_t at, n, entry; /* the run: n <= QUANT_RUN_MAX elements from `at` on */
    bool each;
    const Quant *q;
    int rank;
    const int64_t *dims;
    size_t end, row, block, step; /* where the walk ends; elements along the last axis with
                                     parameters and what is inside of it, and of a block of it; the
                                     entries from block to block */
    size_t first;                 /* entry at the start of the row */
} QuantRuns;
/* The walk over elements `from` to `to` - 1, before its first run. */
QuantRuns quant_runs(const Quant *q, int rank, const int64_t *dims, size_t from, size_t to);
bool quant_runs_next(QuantRuns *r);
/* The four schemas of the proposal, read off the parameters. */
const char *quant_schema(const Quant *q); /* "Asymmetric", ..., "SymmetricWithPower2Scale" */

typedef struct Dim {
    int64_t value; /* >= 0, or -1 when not a number */
    Str param;     /* symbolic name, or STR_NONE; with value -1 and no param the dim is unknown */
    Str denotation;
    int64_t negative; /* 0, or what an unknown dim is in ONNX files that give a number below 0 */
    bool bound;       /* the number of a symbol that an option or data gave one */
} Dim;

typedef enum TypeKind {
    TYPE_NONE, /* not known (yet) */
    TYPE_TENSOR,
    TYPE_SEQ,
    TYPE_OPTIONAL,
    TYPE_SPARSE,
    TYPE_MAP,
} TypeKind;

typedef struct Type {
    TypeKind kind;
    ElemType elem;   /* tensors: storage where quantized and not tilde */
    int rank;        /* -1: unranked */
    const Dim *dims; /* several types may share them */
    const Quant *quant;
    bool tilde;
    bool failed; /* TYPE_NONE in place of what a text got wrong, which was said: nothing more is */
    const struct Type *sub; /* element of seq, optional, sparse; value of a map */
    ElemType key;           /* of a map */
    Str denotation;
} Type;

#define TYPE_UNKNOWN ((Type){.kind = TYPE_NONE, .rank = -1})

Type type_tensor(ElemType elem, int rank, const Dim *dims);
/* A tensor type of fixed dims. */
Type type_fixed(Arena *a, ElemType elem, int rank, const int64_t *dims);
/* The lengths of its dimensions, -1 or less where one is no number; their number. */
int type_lengths(Type t, int64_t *dims);
/* The same shape, as the quantized type. */
Type type_quantized(Type t, const Quant *q);
Type type_tilde(Type t, const Quant *q); /* float ~ q */
/* True for int8q<...>[...], false for float ~ int8q<...>. */
bool type_is_quantized(Type t);
/* The element type an unchanged ONNX operator sees: `expressed` where quantized, else elem. */
ElemType type_real_elem(Type t);
bool type_is_static(Type t);          /* ranked, every dim a number */
bool type_same_shape(Type x, Type y); /* both ranked, dims equal (same number or symbol) */
bool dim_equal(Dim x, Dim y);         /* same number, or same symbol */
bool dim_is_named(Dim d);             /* a symbol of one size, not "?", which stands for any */
bool type_first_open(Type t);         /* a tensor whose first dimension is not a number */
/* Not known, and stated by a number below 0: ?-1 */
bool dim_is_negative(Dim d);
/* Number of elements of a static tensor type; false on overflow or where not static. */
bool type_count(Type t, size_t *count);
/* A name in .qir: bare where it may stand so ([A-Za-z0-9_./$-] and inner ::), else quoted. */
void name_print(Buf *b, char sigil, Str name);
/* Prints in .qir syntax, quantization written out or by alias. A denotation follows what it
 * denotes, as a string: float[N "DATA_BATCH",3] "IMAGE". A type that is not known prints as `?`. */
void type_print(Buf *b, Type t);
void quant_print(Buf *b, const Quant *q);
/* The same with data(N) for lists of more than `most` numbers. */
void quant_print_lists(Buf *b, const Quant *q, size_t most);
void quant_print_scale(Buf *b, float scale); /* in full, never the alias */
const char *type_text(Arena *a, Type t);     /* for messages */

#endif
