/* ONNX's quantization annotations: GraphProto.quantization_annotation names, for a tensor, the
 * tensors that hold its scale and zero point. They stand in Graph.extra as they were read.
 *
 * raise-annotations makes types of them, annotate writes them. A value whose annotation became a
 * type keeps an `onnx %v = annotation` line (Value.onnx): scale= and zero_point= are the names,
 * at= is the place among the annotations of the graph; `extra` holds the annotation where it was
 * written in another way than annotation_bytes has. Nothing here fails but as said; memory is the
 * arena's. */
#ifndef QXC_PASSES_ANNOTATIONS_H
#define QXC_PASSES_ANNOTATIONS_H

#include "ir/ir.h"

typedef struct Annotation {
    Str bytes;             /* the whole message */
    Str tensor, scale, zp; /* names; STR_NONE where not stated */
    const char *why;       /* what makes it none that qxc understands, or NULL */
    Value *of;             /* annotate: what it is about; NULL of those kept as they are */
    int64_t at;            /* annotate: the place it had, or -1 */
} Annotation;

typedef struct Annotations {
    Annotation *items;
    size_t n, cap;
} Annotations;

/* The annotations of a graph, in order; `why` set for those that are malformed. */
Annotations annotations_of(const Graph *g);
/* They take the place of those that the graph has. */
void annotations_set(Graph *g, const Annotations *list);
/* The message for these names; `zp` may be STR_NONE. */
Str annotation_bytes(Arena *a, Str tensor, Str scale, Str zp);
/* Whether the message holds just the names of `a`, however it is written. */
bool annotation_says(Str bytes, const Annotation *a);
/* Calls fn for each constant of the module that no node uses and that an annotation names as scale
 * or zero point. */
void annotation_each_param(Module *m, void (*fn)(Value *v, void *ctx), void *ctx);

/* The `annotation` line of a value, or NULL. */
Node *annotation_note(const Value *v);

/* Values by name, as seen from the graph: its own, else those around it. */
typedef struct Names Names;
Names *annotation_names(Arena *a);
Value *annotation_find(Names *n, Graph *g, Str name, bool own);

#endif
