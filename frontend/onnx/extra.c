/* Fields that the IR has no place for, kept as bytes so that the writer gives them back. */
#include "frontend/onnx/read.h"

/* protobuf-c keeps an unknown field without its tag; a length, where there is one, is part of the
 * data. */
void extra_unknown(Buf *b, const ProtobufCMessage *m) {
    for (unsigned i = 0; i < m->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *f = &m->unknown_fields[i];
        if (f->tag == EXTRA_PLACES)
            continue;
        wire_put_varint(b, (uint64_t)f->tag << 3 | (uint64_t)f->wire_type);
        buf_put(b, f->data, f->len);
    }
}

static Str pack(Arena *a, const ProtobufCMessage *m) {
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = arena_alloc(a, n);
    protobuf_c_message_pack(m, bytes);
    return (Str){(const char *)bytes, n};
}

void extra_message(Buf *b, uint32_t number, const ProtobufCMessage *m) {
    wire_put_bytes(b, number, pack(b->arena, m));
}

Str extra_done(Buf *b) {
    return b->n ? buf_as_str(b) : STR_NONE;
}

Str only_unknown(Reader *r, const ProtobufCMessage *m) {
    Buf extra = buf_new(r->arena);
    extra_unknown(&extra, m);
    return extra_done(&extra);
}

Str packed_message(Reader *r, const ProtobufCMessage *m) {
    return pack(r->arena, m);
}

bool same_message(Reader *r, const ProtobufCMessage *x, const ProtobufCMessage *y) {
    return str_eq(pack(r->arena, x), pack(r->arena, y));
}
