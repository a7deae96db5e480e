/* TensorProto and SparseTensorProto but for their data, which payload.c reads. */
#include "frontend/onnx/read.h"

static bool check_dims(Reader *r, Loc at, size_t n, const int64_t *dims) {
    for (size_t i = 0; i < n; i++) {
        if (dims[i] < 0)
            return diag_error(r->diags, at, "dimension %zu is %lld; it must not be negative", i,
                              (long long)dims[i]);
    }
    return true;
}

static bool is_external(const Onnx__TensorProto *p) {
    return p->has_data_location && p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

/* Where the data would be, of a tensor that has them at hand: fields without a meaning. */
static void keep_locations(Reader *r, const Onnx__TensorProto *p, Buf *extra) {
    for (size_t i = 0; i < p->n_external_data; i++) {
        const ProtobufCMessage *entry = &p->external_data[i]->base;
        size_t n = protobuf_c_message_get_packed_size(entry);
        uint8_t *bytes = NEW_ARRAY(r->arena, uint8_t, n + 1);
        protobuf_c_message_pack(entry, bytes);
        wire_put_bytes(extra, TENSOR_EXTERNAL_DATA, (Str){(const char *)bytes, n});
    }
}

static Str tensor_extra(Reader *r, const Onnx__TensorProto *p) {
    Buf extra = buf_new(r->arena);
    /* Saying what holds anyway, as some writers do. */
    if (p->has_data_location && !is_external(p))
        wire_put_number(&extra, TENSOR_DATA_LOCATION, (uint64_t)p->data_location);
    if (!is_external(p))
        keep_locations(r, p, &extra);
    extra_unknown(&extra, &p->base);
    return extra_done(&extra);
}

Tensor *read_tensor(Reader *r, Loc at, const Onnx__TensorProto *p, bool named) {
    Tensor *t = NEW(r->arena, Tensor);
    t->loc = at;
    t->elem = (ElemType)p->data_type;
    t->rank = (int)p->n_dims;
    t->dims = arena_copy(r->arena, p->dims, p->n_dims * sizeof *p->dims);
    if (!check_dims(r, at, p->n_dims, p->dims))
        return NULL;
    if (!elem_known(p->data_type) || p->data_type > 1000) {
        diag_error(r->diags, at, "%d is not an element type", p->data_type);
        return NULL;
    }
    if (p->segment) {
        diag_error(r->diags, at, "tensors in segments are not supported");
        return NULL;
    }
    if (!tensor_count(t->rank, t->dims, &t->count)) {
        diag_error(r->diags, at, "it has more than 2^31 - 1 elements");
        return NULL;
    }
    t->bytes = elem_bytes(t->elem, t->count);
    if (named)
        t->name = read_name(r, at, p->has_name, p->name);
    t->doc = pb_str(p->has_doc_string, p->doc_string);
    t->meta = read_meta(r, at, p->n_metadata_props, p->metadata_props);
    t->extra = tensor_extra(r, p);
    if (is_external(p)) {
        t->place = TENSOR_EXTERNAL;
        t->external = read_pairs(r, p->n_external_data, p->external_data);
    } else if (p->has_data_location && p->data_location != 0) {
        diag_error(r->diags, at, "%d is not a data location", (int)p->data_location);
        return NULL;
    }
    return read_payload(r, at, p, t) ? t : NULL;
}

SparseTensor *read_sparse(Reader *r, Loc at, const Onnx__SparseTensorProto *p) {
    SparseTensor *s = NEW(r->arena, SparseTensor);
    if (!p->values) {
        diag_error(r->diags, at, "a sparse tensor lacks its values");
        return NULL;
    }
    s->loc = at;
    s->rank = (int)p->n_dims;
    s->dims = arena_copy(r->arena, p->dims, p->n_dims * sizeof *p->dims);
    bool ok = check_dims(r, at, p->n_dims, p->dims);
    s->values = read_tensor(r, at, p->values, true);
    s->indices = p->indices ? read_tensor(r, at, p->indices, true) : NULL;
    Buf extra = buf_new(r->arena);
    extra_unknown(&extra, &p->base);
    s->extra = extra_done(&extra);
    return ok && s->values && (s->indices || !p->indices) ? s : NULL;
}
