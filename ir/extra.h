/* Raw protobuf fields: what `extra` of an IR object holds.
 *
 * `extra` is a run of protobuf fields as they stood in the ONNX file, for all that the IR has no
 * field for; the writer appends them to the object's message. A field that stands in `extra` and
 * that the writer would also write from the IR wins.
 *
 * One field number is ours and never written to a file: EXTRA_PLACES keeps what follows from the
 * IR by rule where the file said otherwise. Its payload holds fields, of a graph (or function)
 *   5  the name of an initializer, 15 of a sparse one, 13 the name of a value_info: all of them, in
 *      file order, where that is not the one by rule (ir/onnx_lists.h)
 *   14 a value_info that is none of a value's, among those of values
 *   3  the first result of a node, or an empty name: all of them, in file order, where they do not
 *      stand behind what they use
 *   12 an output's ValueInfoProto {1: index, 2: bytes}, where it differs from the value's own
 * and of an attribute or a function, which fields the file left out that are written by rule,
 *   1  the number of the field
 *
 * The .qir reader refuses bytes that are no run of fields, so `extra` always is one; payloads
 * within may be anything, and wire_next fails on malformed ones. */
#ifndef QXC_IR_EXTRA_H
#define QXC_IR_EXTRA_H

#include "support/buf.h"

enum { EXTRA_PLACES = 536870911 }; /* the largest field number there is */
enum {
    PLACE_ABSENT = 1,
    PLACE_NODE = 3,
    PLACE_INITIALIZER = 5,
    PLACE_OUTPUT = 12,
    PLACE_VALUE_INFO = 13,
    PLACE_OTHER_INFO = 14,
    PLACE_SPARSE_INITIALIZER = 15,
};

enum { OUTPUT_INDEX = 1, OUTPUT_INFO = 2 }; /* in a PLACE_OUTPUT */

typedef enum WireType {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_LEN = 2,
    WIRE_FIXED32 = 5
} WireType;

typedef struct WireField {
    uint32_t number;
    WireType type;
    uint64_t value; /* of a number; 0 for WIRE_LEN */
    Str payload;    /* of WIRE_LEN, without the length */
    Str whole;      /* tag and all */
} WireField;

/* Takes the field at the front of `rest`. NULL, or what is wrong with it. `rest` must not be
 * empty. */
const char *wire_next(Str *rest, WireField *f);
/* Takes a varint; false where it is cut short or longer than 10 bytes. */
bool wire_varint(Str *rest, uint64_t *v);
/* Whether bytes are a run of fields. */
bool wire_valid(Str bytes);

/* The first field of that number; false where there is none. `extra` must be valid. */
bool extra_find(Str extra, uint32_t number, WireField *f);

/* Whether a field goes: one of an object's `extra`, or (`place`) of its EXTRA_PLACES. */
typedef bool ExtraGoes(const WireField *f, bool place, void *ctx);
/* `extra` without the fields that go; STR_NONE where none is left. */
Str extra_without(Arena *a, Str extra, ExtraGoes *goes, void *ctx);

void wire_put_varint(Buf *b, uint64_t v);
void wire_put_number(Buf *b, uint32_t number, uint64_t v);
void wire_put_bytes(Buf *b, uint32_t number, Str payload);

#endif
