/* The data of a TensorProto. It is taken from the bytes of the file, as protobuf-c would copy it.
 */
#include "frontend/onnx/read.h"
#include "frontend/onnx/wire.h"

static const char *field_name(uint64_t field) {
    switch (field) {
    case TENSOR_FLOAT_DATA: return "float_data";
    case TENSOR_INT32_DATA: return "int32_data";
    case TENSOR_STRING_DATA: return "string_data";
    case TENSOR_INT64_DATA: return "int64_data";
    case TENSOR_RAW_DATA: return "raw_data";
    case TENSOR_DOUBLE_DATA: return "double_data";
    case TENSOR_UINT64_DATA: return "uint64_data";
    default: return "?";
    }
}

/* The one field that holds the data, wherever its numbers are. */
typedef struct Source {
    uint64_t field;    /* 0: none */
    const void *array; /* numbers that protobuf-c unpacked, or NULL */
    Str bytes;         /* else as they stand in the file */
    size_t n;          /* of the array */
    size_t pieces;     /* how many fields hold data; more than one is refused */
} Source;

static void found(Source *s, uint64_t field, const void *array, size_t n, Str bytes) {
    s->pieces++;
    s->field = field;
    s->array = array;
    s->n = n;
    s->bytes = bytes;
}

static Source find_source(const Reader *r, const Onnx__TensorProto *p) {
    Source s = {0};
    for (unsigned i = 0; i < p->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *f = &p->base.unknown_fields[i];
        if (f->tag != EXTRA_PLACES)
            continue;
        Payload note; /* stands after one byte of length */
        memcpy(&note, f->data + 1, sizeof note);
        found(&s, note.field, NULL, 0, (Str){r->file.s + note.offset, note.length});
    }
    const struct {
        uint64_t field;
        const void *array;
        size_t n;
    } unpacked[] = {
        {TENSOR_FLOAT_DATA, p->float_data, p->n_float_data},
        {TENSOR_INT32_DATA, p->int32_data, p->n_int32_data},
        {TENSOR_STRING_DATA, p->string_data, p->n_string_data},
        {TENSOR_INT64_DATA, p->int64_data, p->n_int64_data},
        {TENSOR_DOUBLE_DATA, p->double_data, p->n_double_data},
        {TENSOR_UINT64_DATA, p->uint64_data, p->n_uint64_data},
    };
    for (size_t i = 0; i < sizeof unpacked / sizeof *unpacked; i++)
        if (unpacked[i].n)
            found(&s, unpacked[i].field, unpacked[i].array, unpacked[i].n, STR_NONE);
    return s;
}

/* How many numbers a typed field must hold: one per element, a real and an imaginary part, or one
 * per byte where elements of at most 4 bits are packed. */
static size_t numbers_wanted(const Tensor *t) {
    if (t->elem == ELEM_COMPLEX64 || t->elem == ELEM_COMPLEX128)
        return 2 * t->count;
    return elem_bits(t->elem) <= 4 ? t->bytes : t->count;
}

static bool wrong_size(Reader *r, Loc at, const Source *s, size_t have, size_t want,
                       const char *unit) {
    return diag_error(r->diags, at, "%s holds %zu %s; its type and dimensions need %zu",
                      field_name(s->field), have, unit, want);
}

static bool read_strings(Reader *r, Loc at, const Source *s, Tensor *t) {
    if (s->n != t->count)
        return wrong_size(r, at, s, s->n, t->count, "strings");
    const ProtobufCBinaryData *from = s->array;
    Str *strings = NEW_ARRAY(r->arena, Str, s->n);
    for (size_t i = 0; i < s->n; i++)
        strings[i] = pb_str(true, from[i]);
    t->strings = strings;
    return true;
}

/* Floats are the same bytes packed, unpacked and in raw_data. */
static bool read_floats(Reader *r, Loc at, const Source *s, Tensor *t) {
    size_t size = s->field == TENSOR_FLOAT_DATA ? 4 : 8;
    size_t n = s->array ? s->n : s->bytes.n / size;
    if (n != numbers_wanted(t))
        return wrong_size(r, at, s, n, numbers_wanted(t), "numbers");
    t->data = s->array ? s->array : (const uint8_t *)s->bytes.s;
    return true;
}

static size_t count_varints(Str bytes) {
    size_t n = 0;
    for (size_t i = 0; i < bytes.n; i++)
        n += (uint8_t)bytes.s[i] < 0x80;
    return n;
}

/* The range of one entry of int32_data: of the type itself, or of the bits that stand for it. */
static void entry_range(ElemType e, int64_t *lo, int64_t *hi) {
    int bits = elem_bits(e);
    bool is_number = elem_is_int(e) && bits >= 8;
    *lo = is_number ? elem_min(e) : 0;
    *hi = is_number || bits == 64 ? elem_max(e) : ((int64_t)1 << (bits <= 4 ? 8 : bits)) - 1;
    if (e == ELEM_BOOL)
        *hi = 1;
}

static int64_t next_number(const Source *s, size_t i, Str *rest) {
    uint64_t v = 0;
    if (!s->array)
        wire_varint(rest, &v); /* checked when the file was scanned */
    else if (s->field == TENSOR_INT32_DATA)
        v = (uint64_t)((const int32_t *)s->array)[i];
    else
        v = ((const uint64_t *)s->array)[i];
    return s->field == TENSOR_INT32_DATA ? (int32_t)v : (int64_t)v;
}

static bool read_ints(Reader *r, Loc at, const Source *s, Tensor *t) {
    size_t n = s->array ? s->n : count_varints(s->bytes), want = numbers_wanted(t);
    if (n != want)
        return wrong_size(r, at, s, n, want, "numbers");
    uint8_t *data = arena_alloc(r->arena, t->bytes);
    t->data = data;
    /* An entry is stored at the width of the element, or as a byte of packed ones. */
    ElemType as = elem_bits(t->elem) <= 4 ? ELEM_UINT8 : t->elem;
    bool any = elem_bits(t->elem) == 64;
    int64_t lo, hi;
    entry_range(t->elem, &lo, &hi);
    Str rest = s->bytes;
    for (size_t i = 0; i < n; i++) {
        int64_t v = next_number(s, i, &rest);
        if (!any && (v < lo || v > hi))
            return diag_error(r->diags, at, "%s[%zu] is %lld, out of range for %s",
                              field_name(s->field), i, (long long)v, elem_name(t->elem));
        elem_store_int(as, data, i, v);
    }
    return true;
}

static bool read_inline(Reader *r, Loc at, const Source *s, Tensor *t) {
    if (s->field == TENSOR_RAW_DATA && t->elem != ELEM_STRING) {
        if (s->bytes.n != t->bytes)
            return wrong_size(r, at, s, s->bytes.n, t->bytes, "bytes");
        t->data = (const uint8_t *)s->bytes.s;
        return true;
    }
    t->typed = true;
    if (s->field != onnx_data_field(t->elem))
        return diag_error(r->diags, at, "elements of type %s stand in %s", elem_name(t->elem),
                          field_name(s->field));
    if (s->field == TENSOR_STRING_DATA)
        return read_strings(r, at, s, t);
    if (s->field == TENSOR_FLOAT_DATA || s->field == TENSOR_DOUBLE_DATA)
        return read_floats(r, at, s, t);
    return read_ints(r, at, s, t);
}

bool read_payload(Reader *r, Loc at, const Onnx__TensorProto *p, Tensor *t) {
    Source s = find_source(r, p);
    if (s.pieces > 1)
        return diag_error(r->diags, at, "its data stands in more than one field");
    if (t->place == TENSOR_EXTERNAL) {
        if (s.pieces)
            return diag_error(r->diags, at, "it has external data and %s", field_name(s.field));
        return external_read(&r->externals, t, at, r->diags);
    }
    if (s.pieces)
        return read_inline(r, at, &s, t);
    if (t->count)
        return diag_error(r->diags, at, "it has no data for its %zu elements", t->count);
    t->typed = true; /* nothing stood anywhere, nothing will be written */
    if (t->elem == ELEM_STRING)
        t->strings = NEW(r->arena, Str);
    else
        t->data = arena_alloc(r->arena, 1);
    return true;
}
