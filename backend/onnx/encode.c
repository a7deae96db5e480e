#include "backend/onnx/encode.h"

enum { LEN = 2, FIXED32 = 5 };

void encode_to(Encoder *e, FILE *out) {
    e->out = out;
    e->total = 0;
    e->next_size = 0;
    e->depth = 0;
}

size_t varint_size(uint64_t v) {
    size_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

void encode_bytes(Encoder *e, const void *data, size_t n) {
    e->total += n;
    if (e->out && n)
        fwrite(data, 1, n, e->out);
}

void encode_varint(Encoder *e, uint64_t v) {
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    encode_bytes(e, bytes, n);
}

void encode_number(Encoder *e, uint32_t field, uint64_t v) {
    encode_varint(e, (uint64_t)field << 3);
    encode_varint(e, v);
}

void encode_float(Encoder *e, uint32_t field, float v) {
    encode_varint(e, (uint64_t)field << 3 | FIXED32);
    encode_bytes(e, &v, sizeof v);
}

void encode_head(Encoder *e, uint32_t field, uint64_t n) {
    encode_varint(e, (uint64_t)field << 3 | LEN);
    encode_varint(e, n);
}

void encode_str(Encoder *e, uint32_t field, Str s) {
    if (!s.s)
        return;
    encode_head(e, field, s.n);
    encode_bytes(e, s.s, s.n);
}

void encode_begin(Encoder *e, uint32_t field) {
    int depth = e->depth++;
    if (depth >= ENCODE_NESTING) {
        e->too_deep = true;
        return;
    }
    if (e->out) {
        encode_head(e, field, e->sizes[e->next_size++]);
        return;
    }
    encode_varint(e, (uint64_t)field << 3 | LEN);
    e->open[depth] = e->n_sizes;
    /* Until the end, the size holds where the message begins. */
    ARENA_PUSH(e->arena, e->sizes, e->n_sizes, e->cap_sizes, e->total);
}

void encode_end(Encoder *e) {
    e->depth--;
    if (e->out || e->depth >= ENCODE_NESTING)
        return;
    uint64_t *size = &e->sizes[e->open[e->depth]];
    *size = e->total - *size;
    e->total += varint_size(*size);
}
