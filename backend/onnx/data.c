/* Types, tensors and metadata as ONNX messages. Data goes where the reader found it (raw_data,
 * typed fields or a file of external data). */
#include "backend/onnx/write.h"
#include "ir/later.h"
#include "ir/onnx_fields.h"

void write_meta(Writer *w, uint32_t field, Meta m) {
    for (size_t i = 0; i < m.n; i++) {
        encode_begin(&w->e, field);
        encode_str(&w->e, ENTRY_KEY, m.items[i].key);
        encode_str(&w->e, ENTRY_VALUE, m.items[i].value);
        write_extra(w, m.items[i].extra);
        encode_end(&w->e);
    }
}

bool extra_has(Str extra, uint32_t field) {
    WireField f;
    return extra.n && extra_find(extra, field, &f);
}

bool was_absent(Str extra, uint32_t field) {
    WireField places, f;
    if (!extra.n || !extra_find(extra, EXTRA_PLACES, &places))
        return false;
    for (Str rest = places.payload; rest.n && !wire_next(&rest, &f);)
        if (f.number == PLACE_ABSENT && f.value == field)
            return true;
    return false;
}

void write_extra(Writer *w, Str extra) {
    WireField f;
    while (extra.n && !wire_next(&extra, &f))
        if (f.number != EXTRA_PLACES)
            encode_bytes(&w->e, f.whole.s, f.whole.n);
}

/* ---- types ---- */

static void write_shape(Writer *w, uint32_t field, const Type *t) {
    if (t->rank < 0)
        return;
    encode_begin(&w->e, field);
    for (int i = 0; i < t->rank; i++) {
        Dim d = t->dims[i];
        encode_begin(&w->e, SHAPE_DIM);
        if (d.value >= 0)
            encode_number(&w->e, DIM_VALUE, (uint64_t)d.value);
        else if (dim_is_negative(d))
            encode_number(&w->e, DIM_VALUE, (uint64_t)d.negative);
        else
            encode_str(&w->e, DIM_PARAM, d.param);
        encode_str(&w->e, DIM_DENOTATION, d.denotation);
        encode_end(&w->e);
    }
    encode_end(&w->e);
}

/* TypeProto.Tensor and TypeProto.SparseTensor have the same fields. */
static void write_tensor_type(Writer *w, uint32_t field, const Type *t) {
    encode_begin(&w->e, field);
    encode_number(&w->e, TENSOR_TYPE_ELEM, t->elem);
    write_shape(w, TENSOR_TYPE_SHAPE, t);
    encode_end(&w->e);
}

static void write_holder(Writer *w, uint32_t field, const Type *sub) {
    encode_begin(&w->e, field);
    write_type(w, HOLDER_ELEM, sub);
    encode_end(&w->e);
}

void write_type(Writer *w, uint32_t field, const Type *t) {
    encode_begin(&w->e, field);
    switch (t->kind) {
    case TYPE_NONE: break;
    case TYPE_TENSOR: write_tensor_type(w, TYPE_TENSOR_TYPE, t); break;
    case TYPE_SPARSE: write_tensor_type(w, TYPE_SPARSE_TENSOR_TYPE, t->sub); break;
    case TYPE_SEQ: write_holder(w, TYPE_SEQUENCE_TYPE, t->sub); break;
    case TYPE_OPTIONAL: write_holder(w, TYPE_OPTIONAL_TYPE, t->sub); break;
    case TYPE_MAP:
        encode_begin(&w->e, TYPE_MAP_TYPE);
        encode_number(&w->e, MAP_KEY, t->key);
        write_type(w, MAP_VALUE, t->sub);
        encode_end(&w->e);
        break;
    }
    encode_str(&w->e, TYPE_DENOTATION, t->denotation);
    encode_end(&w->e);
}

/* ---- tensors ---- */

void write_elements(const Module *m, const Tensor *t, FILE *out) {
    enum { PART = 1 << 22 };
    Tensor part = *t;
    part.data = later_made(m, t);
    for (size_t left = t->bytes; left && !ferror(out); left -= part.bytes) {
        part.bytes = left < PART ? left : PART;
        fwrite(part.data, 1, part.bytes, out);
        module_release(m, &part);
        part.data += part.bytes;
    }
}

static void write_payload(Writer *w, uint32_t field, const Tensor *t) {
    encode_head(&w->e, field, t->bytes);
    if (w->e.out)
        write_elements(w->module, t, w->e.out);
    w->e.total += t->bytes;
}

/* Integers as a packed list of varints: the elements, or the bytes of packed ones. */
static void write_numbers(Writer *w, uint32_t field, const Tensor *t) {
    bool packed = elem_bits(t->elem) <= 4;
    ElemType as = packed ? ELEM_UINT8 : t->elem;
    size_t n = packed ? t->bytes : t->count;
    if (n == 0)
        return;
    uint64_t size = 0;
    for (size_t i = 0; i < n; i++)
        size += varint_size((uint64_t)elem_load_int(as, t->data, i));
    encode_head(&w->e, field, size);
    if (!w->e.out) {
        w->e.total += size;
        return;
    }
    for (size_t i = 0; i < n; i++)
        encode_varint(&w->e, (uint64_t)elem_load_int(as, t->data, i));
}

static void write_typed(Writer *w, const Tensor *t) {
    uint32_t field = onnx_data_field(t->elem);
    if (field == TENSOR_STRING_DATA)
        for (size_t i = 0; i < t->count; i++)
            encode_str(&w->e, field, t->strings[i]);
    else if (field != TENSOR_FLOAT_DATA && field != TENSOR_DOUBLE_DATA)
        write_numbers(w, field, t);
    else if (t->bytes)
        write_payload(w, field, t);
}

/* Fields stand in the order of their numbers, as protobuf's own writers put them. */
void write_tensor(Writer *w, uint32_t field, const Tensor *t, Str name) {
    bool external = t->place == TENSOR_EXTERNAL && !(t->data && w->options.inline_external);
    encode_begin(&w->e, field);
    for (int i = 0; i < t->rank; i++)
        encode_number(&w->e, TENSOR_DIMS, (uint64_t)t->dims[i]);
    encode_number(&w->e, TENSOR_DATA_TYPE, t->elem);
    bool typed = !external && (t->typed || t->elem == ELEM_STRING);
    bool late = typed && onnx_data_field(t->elem) > TENSOR_NAME;
    if (typed && !late)
        write_typed(w, t);
    encode_str(&w->e, TENSOR_NAME, name);
    if (late)
        write_typed(w, t);
    else if (!external && !typed)
        write_payload(w, TENSOR_RAW_DATA, t);
    encode_str(&w->e, TENSOR_DOC, t->doc);
    if (external || t->place != TENSOR_EXTERNAL)
        write_meta(w, TENSOR_EXTERNAL_DATA, t->external);
    if (external)
        encode_number(&w->e, TENSOR_DATA_LOCATION, 1);
    write_meta(w, TENSOR_METADATA, t->meta);
    write_extra(w, t->extra);
    encode_end(&w->e);
}

void write_sparse(Writer *w, uint32_t field, const SparseTensor *s, Str name) {
    encode_begin(&w->e, field);
    write_tensor(w, SPARSE_VALUES, s->values, name);
    if (s->indices)
        write_tensor(w, SPARSE_INDICES, s->indices, s->indices->name);
    for (int i = 0; i < s->rank; i++)
        encode_number(&w->e, SPARSE_DIMS, (uint64_t)s->dims[i]);
    write_extra(w, s->extra);
    encode_end(&w->e);
}
