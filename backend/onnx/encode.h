/* Protobuf encoding in two passes over the same code: the first adds up the length of every nested
 * message, the second writes, so that nothing but one number per message is held in memory.
 * Errors of the stream are for the caller to look up (ferror). */
#ifndef QXC_BACKEND_ONNX_ENCODE_H
#define QXC_BACKEND_ONNX_ENCODE_H

#include <stdio.h>

#include "support/arena.h"

enum { ENCODE_NESTING = 100 }; /* what readers of protobuf accept */

typedef struct Encoder {
    Arena *arena;
    FILE *out;       /* NULL in the first pass */
    uint64_t total;  /* bytes so far */
    uint64_t *sizes; /* of nested messages, in the order they begin */
    size_t n_sizes, cap_sizes, next_size;
    size_t open[ENCODE_NESTING]; /* first pass: which messages are not ended yet */
    int depth;
    bool too_deep; /* after the first pass: the rest is of no use */
} Encoder;

/* Starts the second pass. */
void encode_to(Encoder *e, FILE *out);

void encode_bytes(Encoder *e, const void *data, size_t n); /* as they are */
void encode_varint(Encoder *e, uint64_t v);
void encode_number(Encoder *e, uint32_t field, uint64_t v);
void encode_float(Encoder *e, uint32_t field, float v);
void encode_str(Encoder *e, uint32_t field, Str s); /* nothing when s is absent */
/* A field of raw bytes whose payload the caller writes next. */
void encode_head(Encoder *e, uint32_t field, uint64_t n);
void encode_begin(Encoder *e, uint32_t field);
void encode_end(Encoder *e);
size_t varint_size(uint64_t v);

#endif
