#include "ir/extra.h"

bool wire_varint(Str *rest, uint64_t *v) {
    uint64_t value = 0;
    for (size_t i = 0; i < rest->n && i < 10; i++) {
        uint8_t byte = (uint8_t)rest->s[i];
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            *rest = (Str){rest->s + i + 1, rest->n - i - 1};
            *v = value;
            return true;
        }
    }
    return false;
}

/* Takes `n` bytes; false where there are fewer. */
static bool take(Str *rest, uint64_t n, Str *bytes) {
    if (n > rest->n)
        return false;
    *bytes = (Str){rest->s, (size_t)n};
    *rest = (Str){rest->s + n, rest->n - (size_t)n};
    return true;
}

static const char *bad_varint(Str rest) {
    return rest.n < 10 ? "ends within a number" : "a number takes more than 10 bytes";
}

const char *wire_next(Str *rest, WireField *f) {
    Str all = *rest, bytes = STR_NONE;
    uint64_t tag;
    *f = (WireField){0};
    if (!wire_varint(rest, &tag))
        return bad_varint(*rest);
    if (tag >> 3 == 0)
        return "field number 0";
    if (tag >> 3 > EXTRA_PLACES)
        return "field number out of range";
    f->number = (uint32_t)(tag >> 3);
    f->type = (WireType)(tag & 7);
    switch (f->type) {
    case WIRE_VARINT:
        if (!wire_varint(rest, &f->value))
            return bad_varint(*rest);
        break;
    case WIRE_FIXED64:
        if (!take(rest, 8, &bytes))
            return "ends within a field";
        memcpy(&f->value, bytes.s, 8);
        break;
    case WIRE_FIXED32:
        if (!take(rest, 4, &bytes))
            return "ends within a field";
        memcpy(&f->value, bytes.s, 4);
        break;
    case WIRE_LEN: {
        uint64_t n;
        if (!wire_varint(rest, &n))
            return bad_varint(*rest);
        if (!take(rest, n, &f->payload))
            return "a field is longer than what holds it";
        break;
    }
    default:
        return (tag & 7) < 5 ? "groups are not supported" : "wire type 6 or 7, which do not exist";
    }
    f->whole = (Str){all.s, all.n - rest->n};
    return NULL;
}

bool wire_valid(Str bytes) {
    WireField f;
    while (bytes.n)
        if (wire_next(&bytes, &f))
            return false;
    return true;
}

bool extra_find(Str extra, uint32_t number, WireField *f) {
    while (extra.n && !wire_next(&extra, f))
        if (f->number == number)
            return true;
    return false;
}

static Str without(Arena *a, Str bytes, bool place, ExtraGoes *goes, void *ctx) {
    Buf kept = buf_new(a);
    WireField f;
    while (bytes.n && !wire_next(&bytes, &f)) {
        bool places = !place && f.number == EXTRA_PLACES && f.type == WIRE_LEN;
        Str inner = places ? without(a, f.payload, true, goes, ctx) : STR_NONE;
        if (places && inner.n)
            wire_put_bytes(&kept, EXTRA_PLACES, inner);
        else if (!places && !goes(&f, place, ctx))
            buf_str(&kept, f.whole);
    }
    return kept.n ? buf_as_str(&kept) : STR_NONE;
}

Str extra_without(Arena *a, Str extra, ExtraGoes *goes, void *ctx) {
    return without(a, extra, false, goes, ctx);
}

void wire_put_varint(Buf *b, uint64_t v) {
    for (; v >= 0x80; v >>= 7)
        buf_byte(b, (char)(v | 0x80));
    buf_byte(b, (char)v);
}

void wire_put_number(Buf *b, uint32_t number, uint64_t v) {
    wire_put_varint(b, (uint64_t)number << 3 | WIRE_VARINT);
    wire_put_varint(b, v);
}

void wire_put_bytes(Buf *b, uint32_t number, Str payload) {
    wire_put_varint(b, (uint64_t)number << 3 | WIRE_LEN);
    wire_put_varint(b, payload.n);
    buf_str(b, payload);
}
