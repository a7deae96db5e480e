/* TypeProto and ValueInfoProto. */
#include "frontend/onnx/read.h"

/* ONNX gives numbers below 0 no meaning; its checker and onnxruntime take them for unknown. */
static void read_negative(Reader *r, Loc at, Dim *dim) {
    dim->negative = dim->value;
    dim->value = -1;
    if (!r->warned_negative)
        diag_warning(r->diags, at,
                     "a dimension is %lld; it is taken as unknown (said once per model)",
                     (long long)dim->negative);
    r->warned_negative = true;
}

static void read_dim(Reader *r, Loc at, const Onnx__TensorShapeProto__Dimension *p, Dim *dim) {
    *dim = (Dim){.value = -1, .denotation = pb_str(p->has_denotation, p->denotation)};
    switch (p->value_case) {
    case ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE:
        dim->value = p->dim_value;
        if (dim->value < 0)
            read_negative(r, at, dim);
        break;
    case ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM:
        dim->param = read_name(r, at, true, p->dim_param);
        break;
    default: break;
    }
}

static void read_shape(Reader *r, Loc at, const Onnx__TensorShapeProto *p, Type *t,
                       bool *faithful) {
    t->rank = -1;
    if (!p)
        return;
    t->rank = (int)p->n_dim;
    Dim *dims = NEW_ARRAY(r->arena, Dim, p->n_dim);
    t->dims = dims;
    *faithful &= p->base.n_unknown_fields == 0;
    for (size_t i = 0; i < p->n_dim; i++) {
        read_dim(r, at, p->dim[i], &dims[i]);
        *faithful &= p->dim[i]->base.n_unknown_fields == 0;
    }
}

/* Element type 0 is what some writers put where they do not know; a missing one is kept apart. */
static bool read_elem(Reader *r, Loc at, bool has, int32_t number, ElemType *elem, bool *faithful) {
    *faithful &= has;
    *elem = (ElemType)number;
    if (number != 0 && (!elem_known(number) || number > 1000))
        return diag_error(r->diags, at, "%d is not an element type", number);
    return true;
}

static bool read_tensor_type(Reader *r, Loc at, const Onnx__TypeProto__Tensor *p, Type *t,
                             bool *faithful) {
    t->kind = TYPE_TENSOR;
    *faithful &= p->base.n_unknown_fields == 0;
    read_shape(r, at, p->shape, t, faithful);
    return read_elem(r, at, p->has_elem_type, p->elem_type, &t->elem, faithful);
}

static bool read_sub(Reader *r, Loc at, const ProtobufCMessage *holder, const Onnx__TypeProto *p,
                     TypeKind kind, Type *t, bool *faithful) {
    Type *sub = NEW(r->arena, Type);
    *sub = TYPE_UNKNOWN;
    t->kind = kind;
    t->sub = sub;
    *faithful &= p && holder->n_unknown_fields == 0;
    return !p || read_type(r, at, p, sub, faithful);
}

static bool read_sparse_type(Reader *r, Loc at, const Onnx__TypeProto__SparseTensor *p, Type *t,
                             bool *faithful) {
    Type *sub = NEW(r->arena, Type);
    *sub = (Type){.kind = TYPE_TENSOR};
    t->kind = TYPE_SPARSE;
    t->sub = sub;
    *faithful &= p->base.n_unknown_fields == 0;
    read_shape(r, at, p->shape, sub, faithful);
    return read_elem(r, at, p->has_elem_type, p->elem_type, &sub->elem, faithful);
}

bool read_type(Reader *r, Loc at, const Onnx__TypeProto *p, Type *t, bool *faithful) {
    *t = TYPE_UNKNOWN;
    t->denotation = pb_str(p->has_denotation, p->denotation);
    *faithful &= p->base.n_unknown_fields == 0;
    switch (p->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        return read_tensor_type(r, at, p->tensor_type, t, faithful);
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        return read_sparse_type(r, at, p->sparse_tensor_type, t, faithful);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        return read_sub(r, at, &p->sequence_type->base, p->sequence_type->elem_type, TYPE_SEQ, t,
                        faithful);
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return read_sub(r, at, &p->optional_type->base, p->optional_type->elem_type, TYPE_OPTIONAL,
                        t, faithful);
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE: {
        const Onnx__TypeProto__Map *m = p->map_type;
        bool ok = read_elem(r, at, m->has_key_type, m->key_type, &t->key, faithful);
        return read_sub(r, at, &m->base, m->value_type, TYPE_MAP, t, faithful) && ok;
    }
    default: /* opaque, or nothing at all */ *faithful = false; return true;
    }
}

void read_info(Reader *r, Value *v, const Onnx__ValueInfoProto *p) {
    Buf extra = buf_new(r->arena);
    if (p->type) {
        bool faithful = true;
        Type t;
        if (read_type(r, v->loc, p->type, &t, &faithful) && faithful)
            v->type = t;
        else
            extra_message(&extra, INFO_TYPE, &p->type->base);
    }
    v->doc = pb_str(p->has_doc_string, p->doc_string);
    v->meta = read_meta(r, v->loc, p->n_metadata_props, p->metadata_props);
    extra_unknown(&extra, &p->base);
    v->extra = extra_done(&extra);
}
