/* What ONNX says about each operator: parameters, attributes and permitted types, per opset.
 *
 * The rows come from ir/onnx_schema.def (the `onnx` package, generated) and ir/msft_schema.def
 * (the com.microsoft operators that qxc writes). Everything is constant data: nothing is owned,
 * nothing fails. "Not there" is NULL, 0 or false.
 * Element types are numbered as TensorProto.DataType, attribute types as AttributeType.
 * The domains "" and "ai.onnx" are the same. */
#ifndef QXC_IR_ONNX_SCHEMA_H
#define QXC_IR_ONNX_SCHEMA_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/str.h"

/* Bit e of a set is element type e. */
typedef struct SchemaTypes {
    uint32_t tensor;
    uint32_t sequence;          /* of tensors */
    uint32_t optional;          /* of tensors */
    uint32_t optional_sequence; /* of tensors */
    uint32_t maps;              /* maps and sequences of maps; any bit set: some are allowed */
} SchemaTypes;

typedef enum SchemaOption { SCHEMA_SINGLE, SCHEMA_OPTIONAL, SCHEMA_VARIADIC } SchemaOption;

typedef struct SchemaParam {
    const char *name;
    const char *type_var; /* parameters with the same one share a type; "" when it stands alone */
    const SchemaTypes *types;
    uint8_t option;      /* SchemaOption; only the last parameter is ever variadic */
    uint8_t least;       /* variadic: fewest values */
    uint8_t homogeneous; /* variadic: all of one type */
} SchemaParam;

typedef enum SchemaAttrType {
    SCHEMA_FLOAT = 1,
    SCHEMA_INT,
    SCHEMA_STRING,
    SCHEMA_TENSOR,
    SCHEMA_GRAPH,
    SCHEMA_FLOATS,
    SCHEMA_INTS,
    SCHEMA_STRINGS,
    SCHEMA_TENSORS,
    SCHEMA_GRAPHS,
    SCHEMA_SPARSE_TENSOR,
    SCHEMA_SPARSE_TENSORS,
    SCHEMA_TYPE_PROTO,
    SCHEMA_TYPE_PROTOS
} SchemaAttrType;

typedef enum SchemaPresence {
    SCHEMA_ATTR_OPTIONAL, /* absence has its own meaning */
    SCHEMA_ATTR_REQUIRED,
    SCHEMA_ATTR_DEFAULT /* absence means the default below */
} SchemaPresence;

typedef struct SchemaAttr {
    const char *name;
    uint8_t type;     /* SchemaAttrType */
    uint8_t presence; /* SchemaPresence */
    uint8_t n;        /* length of a list default */
    union {
        int64_t i;
        float f;
        const char *s;
        const int64_t *ints;
        const char *const *strings;
    } value; /* the default, chosen by type */
} SchemaAttr;

typedef enum SchemaFlags {
    SCHEMA_DEPRECATED = 1, /* gone from this version on; it has no parameters to ask for */
    SCHEMA_EXPERIMENTAL = 2,
    SCHEMA_NONDETERMINISTIC = 4, /* may give other results on the next run: never fold */
    SCHEMA_ORT = 8 /* in ONNX's domain, but onnxruntime's: ONNX has no such operator */
} SchemaFlags;

typedef struct OnnxSchema {
    const char *domain; /* "" for ai.onnx */
    const char *name;
    const SchemaParam *inputs, *outputs;
    const SchemaAttr *attrs; /* by name */
    uint16_t since;
    uint8_t flags; /* SchemaFlags */
    uint8_t n_inputs, n_outputs, n_attrs;
} OnnxSchema;

/* The newest row with since <= opset. NULL when the operator is unknown at that opset; a deprecated
 * operator is found, with SCHEMA_DEPRECATED set. */
const OnnxSchema *onnx_schema_find(Str domain, Str op, int opset);
static inline const OnnxSchema *onnx_schema(const char *domain, const char *op, int opset) {
    return onnx_schema_find(str_from(domain), str_from(op), opset);
}

/* Every row, ordered by domain, name and since, those of SCHEMA_ORT behind all others: i = 0 ..
 * count-1. */
size_t onnx_schema_count(void);
const OnnxSchema *onnx_schema_at(size_t i);

/* The names of ONNX's own operators, again for each version; false at the end. `at` is a size_t
 * that begins with 0: a DiagNext. */
bool onnx_schema_next_name(void *at, Str *name);

/* The newest known opset of a domain, 0 for a domain without rows. */
int onnx_schema_newest(Str domain);

/* Parameter of the value at `index` (the variadic one covers all that follow), NULL beyond. */
const SchemaParam *onnx_schema_param(const OnnxSchema *schema, bool is_output, int index);

/* May the value at `index` be a tensor of `elem_type`? */
bool onnx_schema_allows(const OnnxSchema *schema, int is_output, int index, int elem_type);

/* Fewest and most values; omitted ones in the middle are counted. INT_MAX when unbounded. */
int onnx_schema_min(const OnnxSchema *schema, bool is_output);
int onnx_schema_max(const OnnxSchema *schema, bool is_output);

const SchemaAttr *onnx_schema_attr(const OnnxSchema *schema, Str name);

/* The IR version of the onnx release that introduced an opset (onnx.helper.VERSION_TABLE); of the
 * newest for numbers that are none. */
int64_t onnx_ir_for_opset(int64_t opset);

#endif
