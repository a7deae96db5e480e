/* AttributeProto: which kind it is, and its value. */
#include "frontend/onnx/read.h"

/* Which kinds have a value in the message, as bits; in old models that is the only sign of the
 * kind. */
static unsigned kinds_present(const Onnx__AttributeProto *p) {
    const struct {
        AttrKind kind;
        bool present;
    } fields[] = {
        {ATTR_FLOAT, p->has_f},
        {ATTR_INT, p->has_i},
        {ATTR_STRING, p->has_s},
        {ATTR_TENSOR, p->t != NULL},
        {ATTR_GRAPH, p->g != NULL},
        {ATTR_FLOATS, p->n_floats > 0},
        {ATTR_INTS, p->n_ints > 0},
        {ATTR_STRINGS, p->n_strings > 0},
        {ATTR_TENSORS, p->n_tensors > 0},
        {ATTR_GRAPHS, p->n_graphs > 0},
        {ATTR_SPARSE, p->sparse_tensor != NULL},
        {ATTR_SPARSES, p->n_sparse_tensors > 0},
        {ATTR_TYPE, p->tp != NULL},
        {ATTR_TYPES, p->n_type_protos > 0},
    };
    unsigned bits = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        bits |= (unsigned)fields[i].present << fields[i].kind;
    return bits;
}

static bool read_tensors(Reader *r, Loc at, Onnx__TensorProto *const *p, Attr *attr) {
    Tensor **t = NEW_ARRAY(r->arena, Tensor *, attr->n);
    bool ok = true;
    for (size_t i = 0; i < attr->n; i++)
        ok &= (t[i] = read_tensor(r, at, p[i], true)) != NULL;
    attr->v.t = t;
    return ok;
}

static bool read_graphs(Reader *r, Onnx__GraphProto *const *p, const Scope *scope, Node *owner,
                        Attr *attr) {
    Graph **g = NEW_ARRAY(r->arena, Graph *, attr->n);
    for (size_t i = 0; i < attr->n; i++)
        g[i] = read_graph(r, p[i], scope, owner, attr->name);
    attr->v.g = g;
    return true;
}

static bool read_sparses(Reader *r, Loc at, Onnx__SparseTensorProto *const *p, Attr *attr) {
    SparseTensor **sp = NEW_ARRAY(r->arena, SparseTensor *, attr->n);
    bool ok = true;
    for (size_t i = 0; i < attr->n; i++)
        ok &= (sp[i] = read_sparse(r, at, p[i])) != NULL;
    attr->v.sp = sp;
    return ok;
}

/* Types that the IR cannot say in full stand in `extra` as they came, under field `number`. */
static bool read_types(Reader *r, Loc at, Onnx__TypeProto *const *p, uint32_t number, Attr *attr,
                       Buf *extra) {
    Type *ty = NEW_ARRAY(r->arena, Type, attr->n);
    bool ok = true, faithful = true;
    for (size_t i = 0; i < attr->n; i++)
        ok &= read_type(r, at, p[i], &ty[i], &faithful);
    attr->v.ty = ty;
    for (size_t i = 0; !faithful && i < attr->n; i++)
        extra_message(extra, number, &p[i]->base);
    return ok;
}

static bool read_strings(Reader *r, const ProtobufCBinaryData *p, Attr *attr) {
    Str *s = NEW_ARRAY(r->arena, Str, attr->n);
    for (size_t i = 0; i < attr->n; i++)
        s[i] = pb_str(true, p[i]);
    attr->v.s = s;
    return true;
}

static bool read_value(Reader *r, Loc at, const Onnx__AttributeProto *p, const Scope *scope,
                       Node *owner, Attr *attr, Buf *extra) {
    static const char *const missing = "attribute \"%s\" has no value";
    attr->n = 1;
    switch (attr->kind) {
    case ATTR_UNDEFINED: break;
    case ATTR_FLOAT: attr->v.f = &p->f; return true;
    case ATTR_INT: attr->v.i = &p->i; return true;
    case ATTR_STRING: return read_strings(r, &p->s, attr);
    case ATTR_TENSOR:
        if (p->t)
            return read_tensors(r, at, &p->t, attr);
        break;
    case ATTR_GRAPH:
        if (p->g)
            return read_graphs(r, &p->g, scope, owner, attr);
        break;
    case ATTR_SPARSE:
        if (p->sparse_tensor)
            return read_sparses(r, at, &p->sparse_tensor, attr);
        break;
    case ATTR_TYPE:
        if (p->tp)
            return read_types(r, at, &p->tp, ATTR_FIELD_TP, attr, extra);
        break;
    case ATTR_FLOATS: attr->n = p->n_floats, attr->v.f = p->floats; return true;
    case ATTR_INTS: attr->n = p->n_ints, attr->v.i = p->ints; return true;
    case ATTR_STRINGS: attr->n = p->n_strings; return read_strings(r, p->strings, attr);
    case ATTR_TENSORS: attr->n = p->n_tensors; return read_tensors(r, at, p->tensors, attr);
    case ATTR_GRAPHS: attr->n = p->n_graphs; return read_graphs(r, p->graphs, scope, owner, attr);
    case ATTR_SPARSES:
        attr->n = p->n_sparse_tensors;
        return read_sparses(r, at, p->sparse_tensors, attr);
    case ATTR_TYPES:
        attr->n = p->n_type_protos;
        return read_types(r, at, p->type_protos, ATTR_FIELD_TYPE_PROTOS, attr, extra);
    }
    attr->n = 0;
    return diag_error(r->diags, at, missing, diag_name(r->diags, attr->name));
}

/* The type that the file states of a reference, where that is none: the kind will be the operator's
 * (ir/ops/resolve.c). And what early IR versions allowed to leave out: the type, and a value that
 * is the default's. */
static void keep_type(const Onnx__AttributeProto *p, const Attr *attr, Buf *extra) {
    if (attr_is_ref(attr) && p->has_type && attr->kind == ATTR_UNDEFINED)
        wire_put_number(extra, ATTR_FIELD_TYPE, 0);
    Buf absent = buf_new(extra->arena);
    if (!p->has_type)
        wire_put_number(&absent, PLACE_ABSENT, ATTR_FIELD_TYPE);
    uint32_t value = attr_is_ref(attr)                        ? 0
                     : attr->kind == ATTR_FLOAT && !p->has_f  ? ATTR_FIELD_F
                     : attr->kind == ATTR_INT && !p->has_i    ? ATTR_FIELD_I
                     : attr->kind == ATTR_STRING && !p->has_s ? ATTR_FIELD_S
                                                              : 0;
    if (value)
        wire_put_number(&absent, PLACE_ABSENT, value);
    if (absent.n)
        wire_put_bytes(extra, EXTRA_PLACES, buf_as_str(&absent));
}

/* A value beside the name of another attribute: ONNX wants none there, so it means nothing and is
 * kept as it came. Data of tensors are not in the message any more (wire.c), so those are refused.
 */
static bool keep_beside_ref(Reader *r, Loc at, const Onnx__AttributeProto *p, const Attr *attr,
                            Buf *extra) {
    static const unsigned plain = 1u << ATTR_FLOAT | 1u << ATTR_INT | 1u << ATTR_STRING |
                                  1u << ATTR_FLOATS | 1u << ATTR_INTS | 1u << ATTR_STRINGS |
                                  1u << ATTR_TYPE | 1u << ATTR_TYPES;
    if (!(plain >> attr->kind & 1))
        return diag_error(r->diags, at, "attribute \"%s\" refers to \"%s\" and has a value",
                          diag_name(r->diags, attr->name), diag_name(r->diags, attr->ref));
    Onnx__AttributeProto value = *p;
    value.has_name = value.has_ref_attr_name = value.has_doc_string = value.has_type = false;
    value.base.n_unknown_fields = 0;
    size_t n = protobuf_c_message_get_packed_size(&value.base);
    uint8_t *bytes = arena_alloc(r->arena, n);
    protobuf_c_message_pack(&value.base, bytes);
    buf_put(extra, bytes, n);
    return true;
}

bool read_attr(Reader *r, Loc at, const Onnx__AttributeProto *p, const Scope *scope, Node *owner,
               Attr *attr) {
    *attr = (Attr){.loc = at};
    attr->name = read_name(r, at, p->has_name, p->name);
    attr->ref = read_name(r, at, p->has_ref_attr_name, p->ref_attr_name);
    attr->doc = pb_str(p->has_doc_string, p->doc_string);
    if (attr->name.n == 0)
        return diag_error(r->diags, at, "an attribute has no name");
    unsigned present = kinds_present(p);
    if (p->has_type)
        attr->kind = (AttrKind)p->type;
    else if (present && (present & (present - 1)) == 0)
        attr->kind = (AttrKind)__builtin_ctz(present);
    if ((unsigned)attr->kind > ATTR_TYPES)
        return diag_error(r->diags, at, "attribute \"%s\" has unknown type %d",
                          diag_name(r->diags, attr->name), (int)attr->kind);
    if (present & ~(1u << attr->kind))
        return diag_error(r->diags, at,
                          "attribute \"%s\" has a value of another type than it states",
                          diag_name(r->diags, attr->name));
    Buf extra = buf_new(r->arena);
    bool ok = true;
    if (attr->ref.s && !attr->ref.n) { /* there, but none */
        wire_put_bytes(&extra, ATTR_FIELD_REF, attr->ref);
        attr->ref = STR_NONE;
    }
    if (!attr_is_ref(attr))
        ok = read_value(r, at, p, scope, owner, attr, &extra);
    else if (present)
        ok = keep_beside_ref(r, at, p, attr, &extra);
    keep_type(p, attr, &extra);
    extra_unknown(&extra, &p->base);
    attr->extra = extra_done(&extra);
    return ok;
}
