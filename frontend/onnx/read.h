/* What the parts of the ONNX reader share. Functions that return a pointer or bool report what is
 * wrong and go on where they can, so that one run lists all problems; the entry point looks at the
 * number of errors in the end. */
#ifndef QXC_FRONTEND_ONNX_READ_H
#define QXC_FRONTEND_ONNX_READ_H

#include "frontend/onnx/onnx.h"
#include "frontend/onnx/onnx.pb-c.h"
#include "ir/external.h"
#include "ir/extra.h"
#include "ir/onnx_fields.h"
#include "ir/onnx_lists.h"

typedef struct Reader {
    Arena *arena;
    Diags *diags;
    Module *module;
    Str file;           /* the model */
    const FileMap *map; /* where it is mapped, or NULL */
    uint32_t source;    /* its number in diags */
    ExternalFiles externals;
    bool warned_utf8, warned_negative, warned_keys;
    Buf words;         /* for locations; reused */
    uint32_t n_places; /* numbered as they are met: the same file gives the same numbers */
    const Place *in;   /* the graph or function that is being read */
} Reader;

/* The names that a node may use: those of its graph so far, then of the graphs around it. */
typedef struct Scope {
    const struct Scope *outer;
    Graph *graph;
    Map *values; /* name -> Value */
} Scope;

/* A place in words: `what "name"`. */
Loc reader_loc(Reader *r, const char *what, Str name);
/* The same of a node: node "name" (Op, #12). */
Loc node_loc(Reader *r, const Onnx__NodeProto *p, size_t index);
/* What is read from here on stands in `words "name" rest`, itself in r->in: returns r->in as it was
 * before, to be set again. */
const Place *enter_place(Reader *r, const char *words, Str name, const char *rest);

/* A bytes field as it came: STR_NONE when absent, never NULL when present. */
Str pb_str(bool has, ProtobufCBinaryData b);
/* A name, checked. */
Str read_name(Reader *r, Loc at, bool has, ProtobufCBinaryData b);
Meta read_pairs(Reader *r, size_t n, Onnx__StringStringEntryProto **entries);
/* The same of metadata: a key that stands twice is told. */
Meta read_meta(Reader *r, Loc at, size_t n, Onnx__StringStringEntryProto **entries);
Import *read_imports(Reader *r, Loc at, size_t n, Onnx__OperatorSetIdProto **sets);

/* ---- extra.c: what the IR has no field for ---- */

void extra_unknown(Buf *b, const ProtobufCMessage *m);
void extra_message(Buf *b, uint32_t number, const ProtobufCMessage *m);
Str extra_done(Buf *b);
/* `extra` of an object that has nothing else to keep. */
Str only_unknown(Reader *r, const ProtobufCMessage *m);
Str packed_message(Reader *r, const ProtobufCMessage *m);
bool same_message(Reader *r, const ProtobufCMessage *x, const ProtobufCMessage *y);

/* ---- type.c ---- */

/* Reads a type. `faithful` is set to false where the IR cannot say all of it; the caller then keeps
 * the message itself. */
bool read_type(Reader *r, Loc at, const Onnx__TypeProto *p, Type *type, bool *faithful);
/* What a ValueInfoProto says of `v`. */
void read_info(Reader *r, Value *v, const Onnx__ValueInfoProto *p);

/* ---- tensor.c, payload.c ---- */

/* NULL after a diagnostic. The name stays unread where `named` is false. */
Tensor *read_tensor(Reader *r, Loc at, const Onnx__TensorProto *p, bool named);
SparseTensor *read_sparse(Reader *r, Loc at, const Onnx__SparseTensorProto *p);
/* Fills in data or strings from the message. */
bool read_payload(Reader *r, Loc at, const Onnx__TensorProto *p, Tensor *t);

/* ---- attr.c ---- */

bool read_attr(Reader *r, Loc at, const Onnx__AttributeProto *p, const Scope *scope, Node *owner,
               Attr *attr);

/* ---- values.c: names and what the file says of them ---- */

typedef struct Info { /* one entry of value_info */
    const Onnx__ValueInfoProto *proto;
    Value *value; /* that took it; NULL: none did */
} Info;

typedef struct Infos {
    Info *items;
    size_t n;
    Map *by_name; /* name -> its first Info */
    Map *outputs; /* name -> the first ValueInfoProto among the graph's outputs */
} Infos;

Value *scope_find(const Scope *s, Str name);
/* False after a diagnostic when the name is taken in this scope. */
bool scope_define(Reader *r, Scope *s, Value *v);
Infos read_infos(Reader *r, size_t n, Onnx__ValueInfoProto **infos, size_t n_out,
                 Onnx__ValueInfoProto **outputs);
/* Gives a node's output the type and the notes that the file has for its name. */
void take_info(Reader *r, Infos *infos, Value *v);
void read_outputs(Reader *r, const Scope *s, const Onnx__GraphProto *p, Buf *places);
/* Whether a type says what the tensor says anyway, and nothing more. */
bool plain_type_of(const Tensor *t, const Type *type);
/* What no value took goes to `extra` as field `number`; an order that differs from the IR's to
 * `places`. */
void keep_infos(const Graph *g, const Infos *infos, uint32_t number, Buf *extra, Buf *places);
/* The same for a list of which the file has these names. */
void keep_order(Arena *a, const Graph *g, OnnxList list, const Str *names, size_t n, Buf *places);

/* ---- order.c: nodes that stand before what they use ---- */

/* The order in which to read the nodes, by index, and the first that stands before what it uses;
 * NULL: as they stand, which is right, or there is no order. */
const size_t *node_order(Reader *r, size_t n, Onnx__NodeProto **nodes, size_t *late);
/* The order in which the file has them. */
void keep_node_order(const Onnx__GraphProto *p, Buf *places);

/* ---- graph.c, function.c ---- */

/* A body of the attribute `attr` of `owner`; the main graph where that is NULL. */
Graph *read_graph(Reader *r, const Onnx__GraphProto *p, const Scope *outer, Node *owner, Str attr);
/* `order`: in which to read them, NULL: as they stand. */
void read_nodes(Reader *r, Scope *scope, size_t n, Onnx__NodeProto **nodes, const size_t *order,
                Infos *infos);
Function *read_function(Reader *r, const Onnx__FunctionProto *p);

#endif
