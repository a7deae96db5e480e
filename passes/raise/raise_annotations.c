/* Quantization annotations to types: an annotated float tensor is meant to lie on a grid, which is
 * `float ~ q`; what annotated integers stand for is `int8 ~ q`. The constants that an annotation
 * names stay, so that `annotate` can name them again (passes/annotations.h).
 *
 * A scale (and its zero point) holds for the elements that it is broadcast to: one number; or the
 * tensor's rank, where each dimension is 1, the tensor's, or a divisor of it, which makes blocks;
 * or, as QuantizeLinear has it, a vector as long as just one axis. What is stated by Q, DQ and
 * QOperators already is left to them; what cannot be a type stays as it is, with a warning. */
#include <math.h>

#include "passes/annotations.h"
#include "passes/target/legal.h"
#include "passes/quant_build.h"

typedef struct RaiseAnnotations {
    Module *m;
    PassContext *c;
    Names *names;
    Map *quants; /* by the names of scale and zero point: the last one made of them */
    Uses *uses;
} RaiseAnnotations;

/* ---- parameters ---- */

/* Where the parameters vary. False: they cannot be laid over the tensor. */
static bool set_axes(Quant *q, const Tensor *scale, Type t) {
    if (scale->count == 1)
        return true;
    if (t.rank < 0)
        return false;
    if (scale->rank == 1 && t.rank != 1) {
        for (int i = 0; i < t.rank; i++)
            if (t.dims[i].value == scale->dims[0]) {
                q->axis[q->n_axes] = i;
                q->block[q->n_axes++] = 1;
            }
        return q->n_axes == 1;
    }
    if (scale->rank != t.rank)
        return false;
    for (int i = 0; i < t.rank; i++) {
        int64_t n = t.dims[i].value, k = scale->dims[i];
        if (k == 1)
            continue;
        if (n <= 0 || k <= 0 || n % k)
            return false;
        q->axis[q->n_axes] = i;
        q->block[q->n_axes++] = n / k;
    }
    return true;
}

static const char *check_params(const Tensor *scale, const Tensor *zp) {
    if (!scale || !scale->data)
        return "its scale is no constant";
    if (!elem_is_float(scale->elem) || elem_bits(scale->elem) < 16 || scale->elem == ELEM_DOUBLE)
        return "its scale is not float";
    if (scale->count == 0)
        return "its scale is empty";
    for (size_t i = 0; i < scale->count; i++) {
        float v = (float)tensor_float(scale, i);
        if (!isnormal(v) || v < 0)
            return "a scale is not a positive number";
    }
    if (!zp)
        return NULL;
    if (!zp->data)
        return "its zero point is no constant";
    if (!elem_is_int(zp->elem) || elem_bits(zp->elem) > 32)
        return "its zero point is no integer of at most 32 bits";
    return tensor_same_shape(zp, scale) || zp->count == 1
               ? NULL
               : "its zero point has another shape than its scale";
}

static Quant *quant_of(Arena *a, const Value *v, const Tensor *scale, const Tensor *zp) {
    bool ints = elem_is_int(v->type.elem);
    size_t n = scale->count;
    float *s = NEW_ARRAY(a, float, n);
    int64_t *z = zp ? NEW_ARRAY(a, int64_t, n) : NULL;
    for (size_t i = 0; i < n; i++) {
        s[i] = (float)tensor_float(scale, i);
        if (zp)
            z[i] = tensor_int(zp, zp->count == 1 ? 0 : i);
    }
    ElemType storage = zp ? zp->elem : ints ? v->type.elem : ELEM_UINT8;
    Quant *q = quant_per_axis(a, storage, 0, n, s, z);
    if (zp && (zp->count == 1 || quant_zp_all_zero(q)))
        q->n_zp = 1;
    q->n_axes = 0;
    q->scale_type = scale->elem;
    return q;
}

/* The type's quantization that the annotation says, NULL with the reason. */
static const Quant *read_quant(RaiseAnnotations *r, Value *v, const Annotation *a,
                               const char **why) {
    Graph *g = v->graph;
    Value *s = annotation_find(r->names, g, a->scale, false);
    Value *z = a->zp.n ? annotation_find(r->names, g, a->zp, false) : NULL;
    *why = !s              ? "there is no value of its scale's name"
           : a->zp.n && !z ? "there is no value of its zero point's name"
                           : NULL;
    const Tensor *scale = s ? value_data(s) : NULL, *zp = z ? value_data(z) : NULL;
    if (!*why)
        *why = z && !zp ? "its zero point is no constant" : check_params(scale, zp);
    if (*why)
        return NULL;
    Quant *q = quant_of(r->m->arena, v, scale, zp);
    *why = "its scale does not fit the tensor's shape, or fits several axes of it";
    if (!set_axes(q, scale, v->type))
        return NULL;
    *why = "its zero point has another type than the integers";
    return elem_is_int(v->type.elem) && v->type.elem != q->storage ? NULL : q;
}

/* ---- tensors ---- */

static bool states(const Node *n) {
    return node_conversion(n) == CONVERT_QUANTIZE || node_conversion(n) == CONVERT_DEQUANTIZE ||
           qop_find(n->domain, n->op);
}

/* Its parameters are operands of Q, DQ or a QOperator. */
static bool stated_by_nodes(const RaiseAnnotations *r, const Value *v) {
    const Use *uses;
    size_t n = uses_of(r->uses, v, &uses);
    if (!elem_is_int(v->type.elem))
        return false;
    for (size_t i = 0; i < n; i++)
        if (uses[i].node && states(uses[i].node))
            return true;
    return v->def && states(v->def);
}

static const char *cannot_raise(const Value *v) {
    if (v->type.kind != TYPE_TENSOR)
        return "the type of the tensor is not known";
    if (v->type.quant)
        return "the tensor is quantized already";
    bool ints = elem_is_int(v->type.elem) && elem_bits(v->type.elem) <= 32;
    return ints || v->type.elem == ELEM_FLOAT ? NULL : "the tensor is neither float nor integers";
}

static void add_note(Arena *a, Value *v, const Annotation *from, int64_t at) {
    Node *n = node_new(v->graph, STR_NONE, STR("annotation"), 0, 0), **end = &v->onnx;
    const Str names[] = {from->scale, from->zp};
    static const char *const keys[] = {"scale", "zero_point"};
    n->attrs = NEW_ARRAY(a, Attr, 3);
    for (size_t i = 0; i < 2; i++)
        if (names[i].n) {
            Attr *at_name = &n->attrs[n->n_attrs++];
            *at_name = (Attr){.name = str_from(keys[i]), .kind = ATTR_STRING, .n = 1};
            at_name->v.s = arena_copy(a, &names[i], sizeof names[i]);
        }
    n->attrs[n->n_attrs] = (Attr){.name = STR("at"), .kind = ATTR_INT, .n = 1};
    n->attrs[n->n_attrs++].v.i = arena_copy(a, &at, sizeof at);
    if (!str_eq(from->bytes, annotation_bytes(a, from->tensor, from->scale, from->zp)))
        n->extra = from->bytes;
    while (*end)
        end = &(*end)->next;
    *end = n;
}

/* Tensors that share scale and zero point share the `quant` line, which the first one names. */
static const Quant *shared(RaiseAnnotations *r, const Value *v, const Annotation *a, Quant *q) {
    Buf key = buf_new(r->m->arena);
    buf_str(&key, a->scale);
    buf_byte(&key, '\0');
    buf_str(&key, a->zp);
    Quant *known = map_get(r->quants, buf_as_str(&key));
    if (known && quant_equal(known, q))
        return known;
    for (size_t i = 0; i < r->m->n_quants; i++)
        if (str_eq(r->m->quants[i]->alias, v->name))
            return q;
    q->alias = v->name;
    module_add_quant(r->m, q);
    map_set(r->quants, buf_as_str(&key), q);
    return q;
}

/* NULL where the annotation became part of the value's type. */
static const char *raise_one(RaiseAnnotations *r, Value *v, const Annotation *a, size_t at) {
    const char *why = cannot_raise(v);
    const Quant *q = why ? NULL : read_quant(r, v, a, &why);
    if (!q)
        return why;
    v->type = type_tilde(v->type, shared(r, v, a, (Quant *)q));
    add_note(r->m->arena, v, a, (int64_t)at);
    return NULL;
}

static void raise_graph(Graph *g, void *ctx) {
    RaiseAnnotations *r = ctx;
    Annotations all = annotations_of(g), kept = {0};
    for (size_t i = 0; i < all.n; i++) {
        const Annotation *a = &all.items[i];
        Value *v = a->tensor.n ? annotation_find(r->names, g, a->tensor, true) : NULL;
        const char *why = a->why;
        bool nodes = v && !why && v->type.kind == TYPE_TENSOR && stated_by_nodes(r, v);
        if (!why && !nodes)
            why = v ? raise_one(r, v, a, i) : "the graph has no such tensor";
        if (!why && !nodes)
            continue;
        if (why)
            diag_warning(r->c->d, v ? v->loc : g->loc,
                         "the annotation of \"%s\" stays as it is: %s",
                         diag_name(r->c->d, a->tensor), why);
        ARENA_PUSH(r->m->arena, kept.items, kept.n, kept.cap, *a);
    }
    if (kept.n < all.n)
        annotations_set(g, &kept);
}

bool pass_raise_annotations(Module *m, PassContext *c) {
    RaiseAnnotations r = {m, c, annotation_names(m->arena), map_new(m->arena), uses_new(m)};
    module_each_graph(m, raise_graph, &r);
    return true;
}
