/* The IR: modules, graphs, nodes, values, attributes, constants. Data only; laws are in verify.h,
 * operators in ir/ops.
 *
 * A Module owns everything in it through one arena. Values are defined once (graph input, constant
 * or node output) and pointed to from everywhere else. Nothing here fails except through the arena.
 * What ONNX can say and the IR has no field for is kept as raw bytes in `extra`, never dropped; see
 * ir/extra.h. */
#ifndef QXC_IR_IR_H
#define QXC_IR_IR_H

#include "ir/scheme.h"
#include "ir/type.h"
#include "support/file.h"
#include "support/map.h"
#include "support/rows.h"

typedef struct Module Module;
typedef struct Graph Graph;
typedef struct Node Node;
typedef struct Value Value;
struct OpDef;

typedef struct StrPair {
    Str key, value; /* STR_NONE: not there, which is not the same as empty */
    Str extra;
} StrPair;

typedef struct Meta { /* metadata_props, in order */
    StrPair *items;
    size_t n;
} Meta;

/* Keys under which an ONNX file holds what ONNX has no field for; see compiler/metadata.h. */
#define META_STAT     "qxc.stat"
#define META_FROM     "qxc.from"
#define META_EXTERNAL "qxc.external_data"
/* Keys of nodes that begin so say how to quantize them; see compiler/scheme_nodes.h. */
#define META_QUANTIZATION "quantization."

/* ---- constants ---- */

typedef enum TensorPlace {
    TENSOR_INLINE,   /* bytes in `data` */
    TENSOR_BLOB,     /* bytes in `data`, mapped from a safetensors file beside the text */
    TENSOR_EXTERNAL, /* ONNX external data; `data` NULL where the file is not there */
    TENSOR_ELIDED,   /* only a checksum is known; running or emitting it is an error */
} TensorPlace;

/* An ONNX TensorProto. Elements are packed little-endian as in raw_data, wherever they came from;
 * int4 and narrower have element 0 in the low bits. */
typedef struct Tensor {
    ElemType elem;
    int rank;
    const int64_t *dims;
    size_t count;              /* product of dims */
    const uint8_t *data;       /* at any alignment; NULL for strings, and what is not at hand */
    const struct Later *later; /* how they are made when they are wanted, data being NULL; or NULL
                                  (ir/later.h) */
    size_t bytes;
    const Str *strings; /* count entries when elem is STRING */
    TensorPlace place;
    Str name; /* of a tensor in an attribute */
    Str doc;
    Meta meta;
    Str blob, blob_key; /* "@w" and the key in it */
    uint32_t crc32;     /* of a blob or an elided tensor; valid when has_crc32 */
    bool has_crc32;
    Meta external;       /* external_data entries: location, offset, length, ... */
    const Quant *within; /* whose range the elements were found to keep, or NULL: large ones are
                            looked over once, and not after every pass */
    bool typed;          /* stood in a typed field (float_data, ...) and not in raw_data */
    Str extra;
    Loc loc;
} Tensor;

/* The integers of t as elements e; t itself where they are that. */
Tensor *tensor_as(Arena *a, Tensor *t, ElemType e);
/* A copy with its last two axes the other way around; numbers of any width. */
Tensor *tensor_transposed(Arena *a, const Tensor *t);
/* A new tensor with zeroed elements; `data` may be written through the returned `bytes` pointer. */
Tensor *tensor_new(Arena *a, ElemType elem, int rank, const int64_t *dims, uint8_t **bytes);
/* The same for a large constant, which is handed to tensor_end once it is written, before the next
 * one begins: it may lie on the disk from then on (support/store.h). */
Tensor *tensor_begin(Arena *a, ElemType elem, int rank, const int64_t *dims, uint8_t **bytes);
Tensor *tensor_end(Arena *a, Tensor *t);
/* A tensor over bytes that live as long as the arena. */
Tensor *tensor_of(Arena *a, ElemType elem, int rank, const int64_t *dims, const void *data);
/* Number of elements; false on a negative dim, overflow or more than 2^31-1 elements. */
bool tensor_count(int rank, const int64_t *dims, size_t *count);
/* One with bytes of its own, of which there are some. */
Tensor *tensor_copy(Arena *a, const Tensor *t);
Type tensor_type(Arena *a, const Tensor *t);
/* Its elements are in no text and no file that was read. */
bool tensor_is_absent(const Tensor *t);
/* Are the elements at hand? An error at `at` where they are elided or their file is not there. */
bool tensor_required(const Tensor *t, Str name, Loc at, Diags *d);
bool tensor_same_shape(const Tensor *x, const Tensor *y);
/* Could a value of this type be the tensor? Dimensions that are not known fit any. */
bool tensor_fits(const Tensor *t, Type type);
/* Does the type say all of the tensor's? */
bool tensor_follows(const Tensor *t, Type type);
/* The i-th element of an integer, bool or float tensor (float16, bfloat16 included). */
int64_t tensor_int(const Tensor *t, size_t i);
double tensor_float(const Tensor *t, size_t i);
/* The i-th element less the zero point of `entry`: what the scale of a tensor of type q times. */
double tensor_steps(const Tensor *t, size_t i, const Quant *q, size_t entry);
/* Elements as programs hold them: int4 and narrower are bytes, float16 and the like floats. */
ElemType elem_unpacked(ElemType e);
/* A copy with such elements, of a tensor that has others. */
Tensor *tensor_unpacked(Arena *a, const Tensor *t);
/* All elements of a float32 tensor. */
const RowFloat *tensor_floats(const Tensor *t);
/* Stores the i-th integer, at any width from 1 bit. */
void elem_store_int(ElemType e, uint8_t *data, size_t i, int64_t v);
int64_t elem_load_int(ElemType e, const uint8_t *data, size_t i);
/* The i-th float or double, at any address. */
double elem_load_real(ElemType e, const uint8_t *data, size_t i);
/* n elements from the i-th on, of integers of at most 8 bits, as bytes (two's complement). */
void elem_store_bytes(ElemType e, uint8_t *data, size_t i, const uint8_t *bytes, size_t n);
void elem_load_bytes(ElemType e, const uint8_t *data, size_t i, uint8_t *bytes, size_t n);

typedef struct SparseTensor { /* laws: ir/verify_sparse.h */
    Tensor *values, *indices; /* indices may be NULL where there are no values */
    int rank;
    const int64_t *dims;
    Str extra;
    Loc loc;
} SparseTensor;

/* sparse<float[3,4]>; what the three say of a tensor and its type, of a sparse one: the type may be
 * sparse, or that of all its elements. */
Type sparse_type(Arena *a, const SparseTensor *s);
bool sparse_fits(const SparseTensor *s, Type type);
bool sparse_follows(const SparseTensor *s, Type type);

/* ---- attributes ---- */

typedef enum AttrKind {
    ATTR_UNDEFINED = 0,
#define ATTR_KIND(id, number, word, is_list, text) ATTR_##id = number,
#include "ir/attr_kind.def"
} AttrKind;

const char *attr_kind_word(AttrKind k); /* "ints"; NULL where there is no such kind */
const char *attr_kind_text(AttrKind k); /* "a list of integers"; "of an unknown kind" */
bool attr_kind_is_list(AttrKind k);

typedef struct Attr {
    Str name;
    AttrKind kind;
    Str ref; /* name of the function's attribute it stands for ($alpha), never empty, or STR_NONE */
    Str given; /* in the place of such a one: the name that the call gave it, or STR_NONE */
    Str doc;
    size_t n; /* 1 for the single kinds */
    union {
        const float *f;
        const int64_t *i;
        const Str *s;
        Tensor *const *t;
        Graph *const *g;
        SparseTensor *const *sp;
        const Type *ty;
    } v;
    Str extra;
    Loc loc;
} Attr;

/* Does it stand for an attribute of the function around it? */
bool attr_is_ref(const Attr *a);
/* Does it have a value of that kind? False for NULL, references and empty lists. */
bool attr_holds(const Attr *a, AttrKind kind);
/* That of the name, or NULL. */
const Attr *attr_find(const Attr *attrs, size_t n, Str name);
/* How many graphs it holds, in v.g; 0 where it is of another kind, or a reference. */
size_t attr_graphs(const Attr *a);

/* ---- values ---- */

typedef struct Stat { /* what calibration saw; one entry, or one per index of `axis` */
    bool has_axis;
    int axis;
    size_t n;
    const float *min, *max, *avg, *std; /* any may be NULL */
    bool assumed;                       /* min and max were not seen (passes/quantize/spread.h) */
    int64_t count;                      /* samples seen, 0 unknown */
    Attr *attrs; /* others (hist=...), kept as they stand: numbers, strings, tensors */
    size_t n_attrs;
    Loc loc;
} Stat;

typedef struct Origin { /* a node, Conv "/conv1/Conv", or a value, "w" */
    Str domain, op;     /* STR_NONE: of a value, or not known */
    Str name;
} Origin;

typedef struct Provenance { /* from(Conv "a", Relu "b") by "pass" in "layer1" */
    const Origin *from;
    size_t n;
    Str by; /* the pass */
    Str in; /* the part of the model that they belonged to: a module's or a function's name */
} Provenance;

typedef enum ValueKind { VALUE_INPUT, VALUE_CONST, VALUE_NODE } ValueKind;

struct Value {
    Str name; /* ONNX's, byte for byte */
    ValueKind kind;
    Type type;
    Graph *graph; /* the body that defines it */
    Node *def;    /* VALUE_NODE */
    int index;    /* which output of def */
    Tensor *data; /* VALUE_CONST, or the default of a VALUE_INPUT (ONNX IR 3 initializers) */
    SparseTensor *sparse;
    Stat *stat;
    Provenance from;
    Node *onnx; /* how ONNX spelled its quantization: Q and DQ nodes that raising took away, in no
                   graph, linked by `next` (passes/spelling.h) */
    bool declared;      /* ONNX stated its type (value_info); inferred types are not written back */
    const Type *stated; /* what ONNX states instead of `type`, which it contradicts, or which knows
                           the rank that it leaves open; else NULL. Kept for the file alone: nothing
                           computes with it */
    bool misread;       /* a text has a fault there, which was said: nothing more is said of it */
    Str doc;
    Meta meta;
    Str extra;
    uint32_t id; /* dense in the module: index for side tables */
    Loc loc;
};

/* ---- nodes and graphs ---- */

struct Node {
    Str op, domain, overload;
    Str name;
    size_t n_in, n_out;
    Value **in;  /* NULL: an omitted optional input */
    Value **out; /* NULL: an output not asked for */
    size_t n_attrs;
    Attr *attrs;
    Graph *graph;
    Node *prev, *next;
    const struct OpDef *def; /* set by op_resolve; NULL for operators we do not know */
    const void *typed;       /* attributes decoded into def's struct */
    bool misread;            /* as in Value */
    bool faulty;             /* it breaks a law, so what its results are is not known (infer.c) */
    bool told;               /* ... and inference said so */
    struct Node *call;       /* of a border: the call between the two, in no graph, without operands
                                (passes/enclose.h); else NULL */
    const struct Node *within; /* of what stands between borders: that call; else NULL */
    Provenance from;
    Str doc;
    Meta meta;
    Str extra;
    uint32_t id;
    Loc loc;
};

struct Graph {
    Module *module;
    Node *owner; /* the node whose attribute it is; NULL at the top and in functions */
    const struct Function *function; /* whose body or attribute default it is, or NULL */
    Str name;
    size_t n_in, cap_in, n_out, cap_out, n_consts, cap_consts;
    Value **in;
    Value **out;
    Value **consts; /* initializers in order; not those that are also inputs */
    Node *first, *last;
    const Str *initializers; /* their order in ONNX before raising, or NULL */
    size_t n_initializers;
    Str doc;
    Meta meta;
    Str extra;
    Loc loc;
};

typedef struct Import {
    Str domain; /* as written: "" and "ai.onnx" are the same domain, kept apart */
    int64_t version;
    Str extra;
    Loc loc;
} Import;

typedef struct ImportIndex { /* of a list of imports; made when asked, remade when the list changes
                              */
    Map *by_domain;
    const Import *imports;
    size_t n;
} ImportIndex;

enum { ONNX_MAX_IR = 14, ONNX_MAX_OPSET = 28 }; /* the newest versions there are */

/* What versions may be, whatever the model came from: one for each domain, numbers that exist. All
 * faults are reported. */
bool imports_check(Arena *a, const Import *imports, size_t n, Diags *d);
bool ir_version_check(int64_t version, Loc at, Diags *d);

typedef struct Function {
    Str name, domain, overload;
    Str *attrs; /* formal attributes without default */
    size_t n_attrs;
    Attr *defaults;
    size_t n_defaults;
    Import *imports;
    size_t n_imports;
    ImportIndex import_index;
    Graph *body; /* in, out: untyped values; no constants */
    Str doc;
    Meta meta;
    Str extra;
    Loc loc;
} Function;

typedef struct Blob { /* a safetensors file beside the text */
    Str name;         /* "@w", with the @ */
    Str path;         /* as written, relative to the text */
    Attr *attrs;      /* bytes=, sha256=, ... */
    size_t n_attrs;
    Loc loc;
} Blob;

struct Module {
    Arena *arena;
    Arena *scratch; /* for what nobody needs once the pass that runs is over, or the part of it
                       between scratch_begin and scratch_end; else `arena` */
    Diags *diags;
    Diags *mute;      /* says nothing: for questions whether something would be an error */
    const char *path; /* of the file it came from, "-" for standard input */
    int64_t ir_version;
    bool has_ir_version;
    Str producer_name, producer_version, domain; /* STR_NONE when absent */
    int64_t model_version;
    bool has_model_version;
    Str doc;
    Import *imports;
    size_t n_imports, cap_imports;
    ImportIndex import_index;
    Meta meta;
    bool wide_zp;   /* zero points may lie outside their range: -wide-zp */
    Quant **quants; /* the !name lines, in order */
    size_t n_quants, cap_quants;
    Blob *blobs;
    size_t n_blobs, cap_blobs;
    Function **functions;
    size_t n_functions, cap_functions;
    Graph *graph;
    Str scheme;     /* text between the braces of `scheme { }`, or STR_NONE */
    Loc scheme_loc; /* of that text */
    Scheme rules;   /* what it says */
    FileMap **maps; /* mapped files that constants point into; unmapped by module_free */
    size_t n_maps, cap_maps;
    Str extra;
    bool has_later;  /* constants wait to be made (ir/later.h) */
    bool raw_fields; /* a text gave fields in `extra`, which nobody held against ONNX's messages */
    uint32_t n_values, n_nodes; /* ids handed out so far */
};

/* From here to the end what goes into the module's scratch is given back: hand on what the
 * beginning returned. They nest. */
Arena *scratch_begin(Module *m);
void scratch_end(Module *m, Arena *outer);
/* The module, its arena and its mappings die together. `d` and `a` are kept; `a` is now owned. */
Module *module_new(Arena *a, Diags *d);
/* One with an empty main graph that stands for parts of `from`: its versions, imports and names. */
Module *module_like(Arena *a, const Module *from, Diags *d);
void module_free(Module *m);
/* Only the mappings, of a module that nobody gets: its arena is still the caller's. */
void module_unmap(Module *m);
void module_keep_map(Module *m, FileMap *f);
/* The elements of a mapped tensor will not be read soon: they may leave memory. */
void module_release(const Module *m, const Tensor *t);
/* The same of parameters, of which blocks have many. */
void module_release_quant(const Module *m, const Quant *q);
/* The import of a domain by the function, or by the model where `f` is NULL; NULL where there is
 * none. */
const Import *import_find(const Module *m, const Function *f, Str domain);
/* Version imported for a domain ("" = "ai.onnx"), 0 when not imported. IR versions before 3 had no
 * imports and mean opset 1. */
int64_t module_opset(const Module *m, Str domain);
/* Of the default domain, 0 where it does not import that. */
int64_t function_opset(const Function *f);
void module_set_opset(Module *m, Str domain, int64_t version); /* adds or changes the import */
/* Operators of com.microsoft are going to stand in it. */
void module_import_microsoft(Module *m);
bool domain_equal(Str x, Str y); /* "" equals "ai.onnx" */
bool domain_is_onnx(Str d);
/* What tells functions apart, of a function or of the call of one, written over `b`. */
Str function_key(Buf *b, Str domain, Str name, Str overload);
/* "acme::F", for messages. */
const char *function_title(Arena *a, Diags *d, const Function *f);
void module_add_quant(Module *m, Quant *q);

Graph *graph_new(Module *m, Str name);
/* The function that the graph is, or is within, the body or a default of; NULL in the model's. */
const struct Function *graph_function(const Graph *g);
/* Each makes a value and enters it in the graph's list (or the node's outputs). */
Value *graph_add_input(Graph *g, Str name, Type t);
Value *graph_add_const(Graph *g, Str name, Type t, Tensor *data);
/* A constant that nodes may read before it is known, and the graph that has it in the end. */
Value *value_of_no_graph(Module *m, Str name);
Value *graph_take_const(Graph *g, Value *v, Type t);
void graph_add_output(Graph *g, Value *v);
/* A node with `n_in` inputs and `n_out` outputs, unlinked, all NULL. */
Node *node_new(Graph *g, Str domain, Str op, size_t n_in, size_t n_out);
/* Of the same operator, with what is said of `n` but its name; operands, results and attributes are
 * still to come. */
Node *node_like(Graph *g, const Node *n);
Value *node_add_output(Node *n, size_t index, Str name, Type t);
/* Result `index` of n is v from now on, which the node that made it so far makes no more. */
void node_take_result(Node *n, size_t index, Value *v);
/* `to`, unlinked and of one result, computes what n's result `index` was from what n yields there
 * now, a new value of this name and type; it stands behind n. */
void node_follow(Node *n, size_t index, Node *to, Str name, Type t);
/* The node and its results are of that graph then. */
void graph_append(Graph *g, Node *n);
void node_insert_before(Node *at, Node *n);
void node_insert_after(Node *at, Node *n);
void node_remove(Node *n); /* unlinks; the node's memory stays */
void node_add_input(Node *n, Value *v);

/* A name not yet used in the module, made from `base` (base, base_1, base_2, ...). The set of
 * used names is rebuilt on the first call after `unique_names_new`. */
typedef struct UniqueNames UniqueNames;
UniqueNames *unique_names_new(Module *m);
Str unique_name(UniqueNames *u, Str base);

Value *node_input(const Node *n, size_t i);             /* NULL when omitted or beyond the last */
const Attr *node_attr(const Node *n, const char *name); /* NULL when absent */
/* The attribute's number; `none` where there is no name, no such attribute, one of another kind, or
 * a reference. */
int64_t node_int(const Node *n, const char *name, int64_t none);
float node_float(const Node *n, const char *name, float none);
void node_set_int(Node *n, const char *name, int64_t v);
/* As it is, of any kind; what is no number stays where it is stored. */
void node_set_attr(Node *n, const Attr *from);
void node_set_ints(Node *n, const char *name, const int64_t *v, size_t count);
void node_set_float(Node *n, const char *name, float v);
void node_set_string(Node *n, const char *name, Str v);
void node_set_tensor(Node *n, const char *name, Tensor *t);
void node_drop_attr(Node *n, const char *name);
/* Of the metadata: the first text under a key, STR_NONE where there is none. */
Str node_meta(const Node *n, Str key);
/* In the place of the first entry with the key, else behind the others. The list itself stays as it
 * is. */
void meta_set(Arena *a, Meta *meta, Str key, Str value);
bool node_is(const Node *n, const char *op);                        /* default domain */
bool node_is_in(const Node *n, const char *domain, const char *op); /* any domain */
bool has_bodies(const Node *n); /* If, Loop, Scan: values pass through them as they are */
/* "node "conv1" (Conv)" for messages, names escaped. */
const char *node_text(const Node *n);
/* A text that lives as long as the node. */
const char *node_strf(const Node *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int value_rank(const Value *v);      /* of a tensor whose rank is known; else, and of NULL, -1 */
bool value_is_const(const Value *v); /* a constant that no caller can override, data at hand */

/* ---- uses ---- */

typedef struct Use {
    Node *node; /* NULL: the value is an output of `graph` */
    Graph *graph;
    size_t index; /* which input of node, or which graph output */
} Use;

/* Who uses each value, subgraphs included. A snapshot: rebuild after changing the graph. */
typedef struct Uses Uses;
Uses *uses_new(Module *m);
size_t uses_of(const Uses *u, const Value *v, const Use **out);
/* The node that is a value's one use; NULL where it has none or several, or a graph yields it. */
Node *uses_only_node(const Uses *u, const Value *v);
Node *uses_only_here(const Uses *u, const Value *v); /* the same, in the value's own graph */
bool uses_is_output(const Uses *u, const Value *v);  /* of any graph */
bool value_is_output(const Value *v);                /* of its own graph, as that is now */
/* Every use of `from` becomes a use of `to` (also in subgraphs and graph outputs). Linear in the
 * module unless `u` is given. */
void value_replace(Module *m, const Uses *u, Value *from, Value *to);

/* Calls fn for every graph of the module: main, those of functions (attribute defaults, then the
 * body), and subgraphs of all these. Outer first. */
void module_each_graph(Module *m, void (*fn)(Graph *g, void *ctx), void *ctx);
/* Calls fn for every value: of each graph the inputs, the constants, the results of its nodes. */
void module_each_value(Module *m, void (*fn)(Value *v, void *ctx), void *ctx);
/* What the data of all constants take. */
size_t module_const_bytes(Module *m);
/* Forgets what only the file has that was read: types that it states wrongly, nodes out of order,
 * second value_infos of one value. */
void module_forget_file(Module *m);
/* Forgets the value_infos that are no value's own and name one: they were another's, or speak of
 * what the value was. */
void module_forget_infos(Module *m);
/* Calls fn for every tensor: of constants and defaults, in attributes, the parts of sparse ones.
 * `name` is the value's or the attribute's. */
typedef void TensorFn(Tensor *t, Str name, void *ctx);
void module_each_tensor(Module *m, TensorFn *fn, void *ctx);
/* Are the elements of all tensors at hand? Every one that is missing is reported. */
bool module_data_required(Module *m, Diags *d);
/* The nodes of a graph, in order; the one at hand may be removed. */
#define FOR_NODES(n, g)                                                                            \
    for (Node *n = (g)->first, *n##_next; n && (n##_next = n->next, 1); n = n##_next)

#endif
