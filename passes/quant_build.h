/* Writing and recognising QuantizeLinear and DequantizeLinear in both their forms: ONNX's, with
 * scale and zero point as operands, and ours, with one operand and the parameters in the type.
 *
 * A QuantBuild belongs to one run of a pass. Scale and zero point constants that it makes are
 * shared by equal quantizations, and all constants by those that ask for the same once more: what
 * several readers of one value need of it is stored once. Memory is the module's; nothing here
 * fails. */
#ifndef QXC_PASSES_QUANT_BUILD_H
#define QXC_PASSES_QUANT_BUILD_H

#include "passes/pass.h"

typedef struct QuantParams { /* constants that state one quantization */
    const Quant *q;
    Value *scale, *zp;
} QuantParams;

typedef struct QuantBuild {
    Module *m;
    Arena *a;
    Diags *d;
    const char *pass; /* for provenance */
    UniqueNames *names;
    Map *params;   /* by quant_key */
    Map *consts;   /* made so far, by graph and name asked for */
    int64_t opset; /* that the result has to do with, or 0: as new as the types ask for */
} QuantBuild;

QuantBuild quant_build_new(Module *m, PassContext *c, const char *pass);

/* ---- what a node is (quant_forms.c) ---- */

/* Our forms: one operand. The first two of any grid, the others of integers. */
bool is_typed_quantize(const Node *n);
bool is_typed_dequantize(const Node *n);
bool is_own_quantize(const Node *n);
bool is_own_dequantize(const Node *n);
bool is_requantize(const Node *n);
bool is_reinterpret(const Node *n);
/* A QuantizeLinear to a small floating-point type with saturate=0: numbers beyond the largest
 * become infinity or NaN, which the type does not say. */
bool leaves_range(const Node *n);
/* Other operators that raise-quant turns into types: MatMulInteger, MatMulNBits. */
bool is_integer_product(const Node *n);
bool is_channels_last(const Node *n); /* of com.microsoft: raise_channels_last.c */

/* Blocks that MatMulNBits and GatherBlockQuantized have: 16, 32, 64, ... */
bool is_nbits_block(int64_t length);

/* The operand that says what a mover's new elements are (Pad's value); 0: none. */
size_t fill_operand(const Node *n);
/* Leaves out that operand where the node makes no new elements (reflect, edge): its type would have
 * to follow the others'. */
void drop_idle_fill(Node *n);
/* Operand `i` becomes `v`, behind others that are left out where there were fewer. */
void set_operand(Node *n, size_t i, Value *v);

/* On plain integers each number that the node yields is one that it was given, a bound that it cuts
 * at, or one between two of them (node_interpolates): it does no other arithmetic, which integers
 * that stand for other numbers would not follow. What a fill operand puts among them is left to the
 * caller. */
bool keeps_integers(const Node *n);

/* The only data operand a node was given, or -1. */
int rule_single_data(const Node *n);

/* ---- a quantization in ONNX (quant_params.c) ---- */

/* The element type that ONNX has for these integers: a byte for our 1-bit types; for 2 and 4 bits
 * too where the opset is older than they are. */
ElemType onnx_storage(const QuantBuild *b, ElemType e);
/* The type its scales are written in: of float numbers always float, which holds all others and
 * is what QuantizeLinear takes for them. */
ElemType onnx_scale_type(const Quant *q);
/* The quantization as stored in ONNX's element types: what is narrower there becomes a
 * range. */
const Quant *onnx_quant(QuantBuild *b, const Quant *q);
/* Float type of what a quantized type stands for. */
Type real_type(Type t);
/* Plain integers; `keep` records what they mean (`int8 ~ !q`). */
Type integer_type(Type t, const Quant *q, bool keep);

/* Bytes that are equal only where the quantizations are; a key for maps. */
Str quant_key(Arena *a, const Quant *q);
/* Constants for the scale and zero point of a tensor of type `t` (blocks follow its shape). */
QuantParams quant_constants(QuantBuild *b, const Quant *q, Type t, Str base);
/* Turns `n` into ONNX's form: operands scale and zero point, axis and block_size. */
void state_params(QuantBuild *b, Node *n, const Quant *q, Type t, Str base);
/* Turns `n` into our form: one operand, no attributes but saturate=0. */
void drop_params(Node *n, Diags *d);

/* ---- names and constants (quant_build.c) ---- */

/* "T" of onnxruntime's names T_quantized, T_QuantizeLinear_Output, ... */
Str base_name(Str name);
Str derived_name(QuantBuild *b, Str base, const char *suffix); /* base_suffix, made unique */

/* Whether the constant has this type and these elements, bit for bit. */
bool const_is_same(const Value *v, Type t, const Tensor *data);
/* A constant base_suffix of the graph, or the one that was made before of that name, type and
 * elements. With the very quantization of `t` it is new. */
Value *build_shared(QuantBuild *b, Graph *g, Str base, const char *suffix, Type t, Tensor *data);
/* The same made from `of`, in the graph and with the name of that. */
Value *build_from(QuantBuild *b, const Value *of, const char *suffix, Type t, Tensor *data);
/* A constant of the main graph; the bytes are copied. */
Value *build_const(QuantBuild *b, Str base, const char *suffix, ElemType e, int rank,
                   const int64_t *dims, const void *bytes);
/* An integer constant (any width) of rank 0. */
Value *build_int(QuantBuild *b, Str base, const char *suffix, ElemType e, int64_t v);
/* Writes number `i` of floating-point data of the type `e`, the nearest that it has. */
void store_float(ElemType e, uint8_t *data, size_t i, float v);
/* Floating-point numbers in the type `e`. */
Value *build_floats(QuantBuild *b, Str base, const char *suffix, ElemType e, int rank,
                    const int64_t *dims, const float *v);
/* The numbers of a float tensor in the type `e`. */
Tensor *floats_as(Arena *a, const Tensor *t, ElemType e);
/* One float of rank 0. */
Value *build_float(QuantBuild *b, Str base, const char *suffix, float v);

/* ---- new nodes of one result (quant_build.c) ---- */

#define OPERANDS(...)                                                                              \
    (Value *const[]){__VA_ARGS__}, sizeof((Value *const[]){__VA_ARGS__}) / sizeof(Value *)

/* Unlinked, not resolved yet, of ONNX's own domain; made from `of`, and of its graph and place in
 * the text. It has the operands up to the last that is not NULL; without `in`, that many to fill
 * in. A name is made unique. */
Node *build_node(QuantBuild *b, const Node *of, const char *op, Str name, Value *const *in,
                 size_t n_in);
/* The same, made from a value. */
Node *build_node_for(QuantBuild *b, const Value *of, const char *op, Str name, Value *const *in,
                     size_t n_in);
/* Unsqueeze or Squeeze of x along axes, in the form of the module's opset. */
Node *build_axes(QuantBuild *b, const Node *of, const char *op, Value *x, const int64_t *axes,
                 int64_t n_axes);
/* Its result base_suffix; it stands before `at` then, and is resolved. */
Value *build_before(QuantBuild *b, Node *at, Node *n, Str base, const char *suffix, Type t);
/* All of that: the result base_op of an operator without attributes, but for a Cast's. */
Value *build_step(QuantBuild *b, Node *at, const char *op, Value *const *in, size_t n_in, Type t,
                  Str base);
/* `to` makes the first result of `n`, in its place. */
void build_in_place(QuantBuild *b, Node *n, Node *to);

/* Places `n` behind the value's definition; of inputs and constants, before `user`. */
void place_behind(Value *v, Node *n, Node *user);
/* Before the node of `g` that holds `user`, however deep. */
void place_before_user(Graph *g, Node *n, Node *user);

/* ---- !name lines (quants_in_use.c) ---- */

/* Quantizations that values and rules of the module have, as keys. */
Map *quants_in_use(Module *m);
/* Drops !name lines that no value and no rule refers to any more: all of them, or those that are
 * keys of `among`. */
void drop_unused_quants(Module *m);
void drop_unused_quants_among(Module *m, const Map *among);

#endif
