#include "frontend/onnx/wire.h"

#include "frontend/onnx/onnx.pb-c.h"
#include "ir/extra.h"
#include "ir/onnx_fields.h"

/* The message being scanned at one level of nesting, and the field the scan stands at. */
typedef struct Frame {
    Str body;
    const ProtobufCMessageDescriptor *desc;
    const char *field; /* where the current field begins */
    uint64_t seen;     /* by field: the messages that may stand once and did */
} Frame;

typedef struct Scan {
    Arena *arena;
    Diags *diags;
    Loc at;
    Str file;
    const FileMap *map; /* of the file, or NULL */
    char *out;          /* NULL in a first pass, which checks and only counts */
    size_t n;
    Frame frames[MAX_NESTING + 1];
} Scan;

/* graph.node[12].attribute[0]: the way to the current field, counted only when needed. */
static Str path_text(const Scan *s, int depth) {
    Buf b = buf_new(s->arena);
    for (int i = 0; i <= depth; i++) {
        const Frame *fr = &s->frames[i];
        Str rest = fr->body;
        WireField f = {0};
        uint32_t number = 0;
        size_t index = 0;
        Str at = {fr->field, (size_t)(rest.s + rest.n - fr->field)};
        if (at.n && (wire_next(&at, &f), f.number))
            number = f.number;
        const ProtobufCFieldDescriptor *fd =
            number ? protobuf_c_message_descriptor_get_field(fr->desc, number) : NULL;
        if (!fd)
            break;
        while (rest.n && rest.s < fr->field && !wire_next(&rest, &f))
            index += f.number == number;
        buf_fmt(&b, "%s%s", i ? "." : "", fd->name);
        if (fd->label == PROTOBUF_C_LABEL_REPEATED)
            buf_fmt(&b, "[%zu]", index);
    }
    return buf_as_str(&b);
}

static bool fail(Scan *s, int depth, const char *why) {
    Str path = path_text(s, depth);
    return diag_error(s->diags, s->at, "not a well-formed ONNX file: %s (%s%sbyte %zu)", why,
                      path.n ? path.s : "", path.n ? ", " : "",
                      (size_t)(s->frames[depth].field - s->file.s));
}

static WireType wire_type_of(const ProtobufCFieldDescriptor *fd) {
    switch (fd->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32: return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64: return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return WIRE_LEN;
    default: return WIRE_VARINT;
    }
}

/* What is wrong with numbers packed into one field, or NULL. */
static const char *packed_fault(Str payload, WireType element) {
    static const char *const cut = "a list of numbers ends within one";
    if (element == WIRE_FIXED32)
        return payload.n % 4 ? cut : NULL;
    if (element == WIRE_FIXED64)
        return payload.n % 8 ? cut : NULL;
    unsigned run = 0;
    for (size_t i = 0; i < payload.n; i++) {
        run = (uint8_t)payload.s[i] < 0x80 ? 0 : run + 1;
        if (run == 10)
            return "a number takes more than 10 bytes";
    }
    return run ? cut : NULL;
}

static bool is_payload(const ProtobufCMessageDescriptor *desc, const WireField *f) {
    if (desc != &onnx__tensor_proto__descriptor || f->type != WIRE_LEN)
        return false;
    switch (f->number) {
    case TENSOR_FLOAT_DATA:
    case TENSOR_INT32_DATA:
    case TENSOR_INT64_DATA:
    case TENSOR_RAW_DATA:
    case TENSOR_DOUBLE_DATA:
    case TENSOR_UINT64_DATA: return true;
    default: return false;
    }
}

static void put(Scan *s, const void *bytes, size_t n) {
    if (s->out && n)
        memcpy(s->out + s->n, bytes, n);
    s->n += n;
}

/* A tag or length. With `width`, padded to that many bytes, which is legal. */
static void put_varint(Scan *s, uint64_t v, size_t width) {
    char bytes[10];
    size_t n = 0;
    for (; v >= 0x80 || n + 1 < width; v >>= 7)
        bytes[n++] = (char)(v | 0x80);
    bytes[n++] = (char)v;
    put(s, bytes, n);
}

enum { RELEASED = 64 * 1024 };

static void put_payload(Scan *s, const WireField *f) {
    Payload p = {f->number, (uint64_t)(f->payload.s - s->file.s), f->payload.n};
    put_varint(s, (uint64_t)EXTRA_PLACES << 3 | WIRE_LEN, 0);
    put_varint(s, sizeof p, 0);
    put(s, &p, sizeof p);
    /* Reading the few bytes before it may have mapped 2 MiB: the page cache has huge pages. */
    if (s->map && f->payload.n >= RELEASED)
        file_release(s->map, f->payload);
}

static bool scan_message(Scan *s, Str body, const ProtobufCMessageDescriptor *desc, int depth,
                         bool keep_payloads);

/* The length of a nested message is known only when its copy stands: it gets a varint of fixed
 * width, filled in afterwards. */
static bool scan_nested(Scan *s, const WireField *f, const ProtobufCFieldDescriptor *fd, int depth,
                        bool keep_payloads) {
    enum { WIDTH = 5 };
    if (depth == MAX_NESTING)
        return fail(s, depth, "messages are nested more than 100 deep");
    put_varint(s, (uint64_t)f->number << 3 | WIRE_LEN, 0);
    size_t at = s->n;
    put_varint(s, 0, WIDTH);
    if (!scan_message(s, f->payload, fd->descriptor, depth + 1, keep_payloads))
        return false;
    size_t end = s->n, length = end - at - WIDTH;
    if (length > INT32_MAX)
        return fail(s, depth, "a message is longer than 2 GiB without its tensors");
    s->n = at;
    put_varint(s, length, WIDTH);
    s->n = end;
    return true;
}

/* protobuf would merge a second one into the first. */
static bool stands_twice(Frame *fr, const ProtobufCFieldDescriptor *fd) {
    if (fd->label == PROTOBUF_C_LABEL_REPEATED)
        return false;
    uint64_t bit = (uint64_t)1 << (fd - fr->desc->fields) % 64;
    bool twice = fr->seen & bit;
    fr->seen |= bit;
    return twice;
}

static bool scan_known(Scan *s, const WireField *f, const ProtobufCFieldDescriptor *fd, int depth,
                       bool keep_payloads) {
    WireType want = wire_type_of(fd);
    bool packed = f->type == WIRE_LEN && want != WIRE_LEN && fd->label == PROTOBUF_C_LABEL_REPEATED;
    if (f->type != want && !packed)
        return fail(s, depth, "a field is not of the wire type its number stands for");
    const char *why = packed ? packed_fault(f->payload, want) : NULL;
    if (why)
        return fail(s, depth, why);
    if (fd->type == PROTOBUF_C_TYPE_MESSAGE) {
        if (stands_twice(&s->frames[depth], fd))
            return fail(s, depth, "a field that may stand once stands twice");
        /* Training graphs have no counterpart in the IR and travel whole. */
        bool whole = keep_payloads || fd->descriptor == &onnx__training_info_proto__descriptor;
        return scan_nested(s, f, fd, depth, whole);
    }
    if (!keep_payloads && is_payload(s->frames[depth].desc, f))
        put_payload(s, f);
    else
        put(s, f->whole.s, f->whole.n);
    return true;
}

static bool scan_message(Scan *s, Str body, const ProtobufCMessageDescriptor *desc, int depth,
                         bool keep_payloads) {
    Frame *fr = &s->frames[depth];
    *fr = (Frame){body, desc, body.s, 0};
    while (body.n) {
        WireField f;
        fr->field = body.s;
        const char *why = wire_next(&body, &f);
        if (why)
            return fail(s, depth, why);
        if (f.number == EXTRA_PLACES)
            return fail(s, depth, "field number 536870911 is reserved");
        const ProtobufCFieldDescriptor *fd =
            protobuf_c_message_descriptor_get_field(desc, f.number);
        if (!fd) {
            put(s, f.whole.s, f.whole.n);
            continue;
        }
        if (!scan_known(s, &f, fd, depth, keep_payloads))
            return false;
    }
    return true;
}

bool wire_compact(Arena *a, Diags *d, Loc at, Str file, const FileMap *map,
                  const ProtobufCMessageDescriptor *root, Str *compact) {
    Scan *s = NEW(a, Scan);
    *s = (Scan){.arena = a, .diags = d, .at = at, .file = file, .map = map};
    if (!scan_message(s, file, root, 0, false))
        return false;
    if (s->n > INT32_MAX)
        return fail(s, 0, "the model is longer than 2 GiB without its tensors");
    *compact = (Str){s->out = arena_alloc(a, s->n), s->n};
    s->n = 0;
    return scan_message(s, file, root, 0, false);
}
