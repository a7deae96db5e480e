/* A look at the bytes of an ONNX file before protobuf-c unpacks them.
 *
 * protobuf-c has no limit on nesting and copies every payload. wire_compact checks the whole file
 * against the message descriptors (nesting, varints, lengths, wire types, field numbers) and makes
 * a copy in which every tensor payload is replaced by a note of where it stands, so that constants
 * stay in the mapped file. It fails with one diagnostic that names the place. */
#ifndef QXC_FRONTEND_ONNX_WIRE_H
#define QXC_FRONTEND_ONNX_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "support/buf.h"
#include "support/diag.h"
#include "support/file.h"

enum { MAX_NESTING = 100 };

/* Stands in a TensorProto as unknown field EXTRA_PLACES, instead of a payload. A file that brings
 * a field of that number is refused, so that nobody can forge one. */
typedef struct Payload {
    uint64_t field;          /* which field of TensorProto: 9 for raw_data */
    uint64_t offset, length; /* in the file */
} Payload;

/* `root` describes the file's message. The copy lives in the arena. Where the bytes are those of
 * `map` (else NULL), memory that the look at them took is given back as it goes. */
bool wire_compact(Arena *a, Diags *d, Loc at, Str file, const FileMap *map,
                  const ProtobufCMessageDescriptor *root, Str *compact);

#endif
