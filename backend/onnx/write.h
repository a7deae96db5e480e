/* What the parts of the ONNX writer share. */
#ifndef QXC_BACKEND_ONNX_WRITE_H
#define QXC_BACKEND_ONNX_WRITE_H

#include "backend/onnx/encode.h"
#include "backend/onnx/onnx.h"
#include "ir/extra.h"
#include "ir/onnx_lists.h"

typedef struct Writer {
    Encoder e;
    const Module *module;
    OnnxWriteOptions options;
    bool *is_output; /* by value id: an output of its own graph, which states its type */
} Writer;

/* ---- check.c ---- */

/* Reports all that ONNX cannot say. */
bool check_writable(const Module *m, const OnnxWriteOptions *options);

/* ---- data.c ---- */

void write_meta(Writer *w, uint32_t field, Meta m);
void write_extra(Writer *w, Str extra);
/* Whether `extra` has the field, which then stands for the IR's own. */
bool extra_has(Str extra, uint32_t field);
/* Did the file leave out a field that is written by rule? */
bool was_absent(Str extra, uint32_t field);
void write_tensor(Writer *w, uint32_t field, const Tensor *t, Str name);
/* The tensor's bytes as they lie; of mapped ones little is in memory at a time. */
void write_elements(const Module *m, const Tensor *t, FILE *out);
void write_sparse(Writer *w, uint32_t field, const SparseTensor *s, Str name);
void write_type(Writer *w, uint32_t field, const Type *t);

/* ---- graph.c ---- */

void write_graph(Writer *w, uint32_t field, const Graph *g);
void write_attr(Writer *w, uint32_t field, const Attr *at);
void write_info(Writer *w, uint32_t field, const Value *v, bool with_type);
bool has_info(const Value *v);

/* ---- places.c: orders that the file kept apart ---- */

/* An entry of value_info: a value's, or bytes as they came. */
typedef struct InfoPlace {
    Value *value;
    Str raw;
} InfoPlace;

typedef struct Places {
    const Node **nodes; /* NULL: as they are */
    InfoPlace *infos;   /* in order */
    size_t n_infos;
    ValueList initializers, sparse;
    const Str *outputs; /* per output the ValueInfoProto to write, or STR_NONE; NULL: none */
} Places;

void write_nodes(Writer *w, uint32_t field, const Graph *g, const Places *p);
void write_value_infos(Writer *w, uint32_t field, const Places *p);
/* The lists of a graph, sorted as `extra` says. */
Places places_of(Writer *w, const Graph *g, Str extra);

#endif
