/* What states a quantization in ONNX: element types, constants of scales and zero points, and the
 * operands and attributes of a Q or DQ. */
#include <limits.h>

#include "passes/quant_build.h"

/* ---- types ---- */

ElemType onnx_storage(const QuantBuild *b, ElemType e) {
    int bits = elem_bits(e), since = bits == 1 ? INT_MAX : bits == 2 ? 25 : bits == 4 ? 21 : 0;
    bool has = since == 0 || (bits > 1 && (!b->opset || b->opset >= since));
    return has ? e : e == ELEM_INT1 || elem_is_signed(e) ? ELEM_INT8 : ELEM_UINT8;
}

ElemType onnx_scale_type(const Quant *q) {
    return q->expressed == ELEM_FLOAT ? ELEM_FLOAT : q->scale_type;
}

const Quant *onnx_quant(QuantBuild *b, const Quant *q) {
    ElemType e = onnx_storage(b, q->storage);
    ElemType scale = onnx_scale_type(q);
    if (e == q->storage && scale == q->scale_type)
        return q;
    Quant *wide = quant_copy(b->a, q);
    wide->storage = e;
    wide->scale_type = scale;
    wide->alias = q->alias;
    if (e != q->storage && !q->has_range) {
        wide->has_range = true;
        wide->lo = elem_min(q->storage);
        wide->hi = elem_max(q->storage);
    }
    return wide;
}

Type real_type(Type t) {
    t.elem = type_real_elem(t);
    t.quant = NULL;
    t.tilde = false;
    return t;
}

Type integer_type(Type t, const Quant *q, bool keep) {
    keep = keep && quant_is_integers(q);
    t.elem = q->storage;
    t.quant = keep ? q : NULL;
    t.tilde = keep;
    return t;
}

/* ---- scales and zero points ---- */

/* The axis that ONNX's block_size is about: the last one with real blocks, else the last. */
static int blocked_axis(const Quant *q) {
    int at = q->n_axes - 1;
    for (int i = 0; i < q->n_axes; i++)
        if (q->block[i] > 1)
            at = i;
    return at;
}

/* Shape of the parameters in ONNX: scalar, vector, or the tensor's with one axis in blocks. */
static int params_shape(const Quant *q, Type t, int64_t *dims) {
    if (q->n_axes == 0)
        return 0;
    if (!quant_is_blocked(q)) {
        dims[0] = (int64_t)q->n_scale;
        return 1;
    }
    int k = blocked_axis(q);
    for (int i = 0; i < t.rank; i++)
        dims[i] = t.dims[i].value;
    int64_t block = q->block[k];
    dims[q->axis[k]] = (dims[q->axis[k]] + block - 1) / block;
    return t.rank;
}

/* Whether the parameters follow each other as ONNX's `count` do: one of each, row by row. */
static bool same_order(const Quant *q, size_t count) {
    bool rows = q->n_scale == count;
    for (int i = 1; i < q->n_axes; i++)
        rows = rows && q->axis[i - 1] < q->axis[i];
    return rows || !quant_is_blocked(q);
}

/* Which of the quantization's parameters stands at place `i` of ONNX's `count`. */
static size_t param_at(const Quant *q, Type t, const int64_t *dims, size_t i, size_t count) {
    if (same_order(q, count))
        return i;
    int64_t tensor[MAX_RANK];
    size_t index = 0, step = 1;
    int k = blocked_axis(q);
    for (int d = t.rank - 1; d >= 0; d--) {
        size_t coord = i % (size_t)dims[d];
        i /= (size_t)dims[d];
        if (d == q->axis[k])
            coord *= (size_t)q->block[k];
        tensor[d] = t.dims[d].value;
        index += coord * step;
        step *= (size_t)tensor[d];
    }
    return quant_index(q, t.rank, tensor, index);
}

static Tensor *make_scales(QuantBuild *b, const Quant *q, Type t, int rank, const int64_t *dims) {
    uint8_t *scale;
    Tensor *s = tensor_begin(b->a, q->scale_type, rank, dims, &scale);
    bool as_is = s->count == q->n_scale && same_order(q, s->count) && q->scale_type == ELEM_FLOAT;
    if (as_is)
        memcpy(scale, q->scale, s->count * sizeof *q->scale);
    for (size_t i = 0; i < s->count && !as_is; i++)
        store_float(q->scale_type, scale, i, quant_scale(q, param_at(q, t, dims, i, s->count)));
    return tensor_end(b->a, s);
}

static Tensor *make_zps(QuantBuild *b, const Quant *q, Type t, int rank, const int64_t *dims) {
    uint8_t *zp;
    Tensor *z = tensor_begin(b->a, q->storage, rank, dims, &zp);
    bool zeros = quant_zp_all_zero(q); /* what tensor_begin leaves */
    for (size_t i = 0; i < z->count && !zeros; i++)
        elem_store_int(q->storage, zp, i, quant_zp(q, param_at(q, t, dims, i, z->count)));
    return tensor_end(b->a, z);
}

static QuantParams make_params(QuantBuild *b, Graph *g, const Quant *q, Type t, Str base) {
    int64_t dims[MAX_RANK];
    int rank = params_shape(q, t, dims);
    Tensor *s = make_scales(b, q, t, rank, dims), *z = make_zps(b, q, t, rank, dims);
    QuantParams p = {.q = q};
    module_release_quant(b->m, q);
    p.scale = build_shared(b, g, base, "_scale", tensor_type(b->a, s), s);
    p.zp = build_shared(b, g, base, "_zero_point", tensor_type(b->a, z), z);
    return p;
}

Str quant_key(Arena *a, const Quant *q) {
    int64_t head[] = {q->kind,
                      q->storage,
                      q->expressed,
                      q->scale_type,
                      quant_is_integers(q) ? quant_lo(q) : 0,
                      quant_is_integers(q) ? quant_hi(q) : 0,
                      (int64_t)q->n_scale,
                      q->n_axes};
    Buf b = buf_new(a);
    buf_put(&b, head, sizeof head);
    if (q->kind == QUANT_ACC) {
        buf_put(&b, q->acc_value, sizeof q->acc_value);
        buf_put(&b, q->acc_quant, sizeof q->acc_quant);
    }
    for (int i = 0; i < q->n_axes; i++) {
        int64_t axis[] = {q->axis[i], q->block[i]};
        buf_put(&b, axis, sizeof axis);
    }
    for (size_t i = 0; i < q->n_scale; i++) {
        struct {
            int64_t zp;
            double scale;
        } one = {quant_zp(q, i), (double)quant_scale(q, i)};
        buf_put(&b, &one, sizeof one);
    }
    return buf_as_str(&b);
}

QuantParams quant_constants(QuantBuild *b, const Quant *q, Type t, Str base) {
    q = onnx_quant(b, q);
    if (q->alias.n)
        base = q->alias;
    if (quant_is_blocked(q)) /* their shape is the tensor's */
        return make_params(b, b->m->graph, q, t, base);
    Str key = quant_key(b->m->scratch, q);
    const QuantParams *known = map_get(b->params, key);
    if (known)
        return *known;
    QuantParams p = make_params(b, b->m->graph, q, t, base);
    map_set(b->params, key, arena_copy(b->m->scratch, &p, sizeof p));
    return p;
}

/* ---- Q and DQ ---- */

/* Of the attributes only what no type says. */
static void clear_attrs(Node *n) {
    bool keeps = leaves_range(n);
    n->n_attrs = 0;
    n->attrs = NULL;
    if (keeps)
        node_set_int(n, "saturate", 0);
}

void state_params(QuantBuild *b, Node *n, const Quant *q, Type t, Str base) {
    q = onnx_quant(b, q);
    const Value *x = n->in[0];
    /* onnxruntime fuses a product with the weights of a body, and looks for their scale there. */
    bool inside = value_is_const(x) && x->graph != b->m->graph;
    QuantParams p = inside ? make_params(b, x->graph, q, t, q->alias.n ? q->alias : base)
                           : quant_constants(b, q, t, base);
    n->n_in = 1;
    clear_attrs(n);
    node_add_input(n, p.scale);
    node_add_input(n, p.zp);
    if (quant_is_blocked(q)) {
        int k = blocked_axis(q);
        node_set_int(n, "axis", q->axis[k]);
        node_set_int(n, "block_size", q->block[k]);
    } else if (q->n_axes) {
        node_set_int(n, "axis", q->axis[0]);
    }
    if (node_conversion(n) == CONVERT_DEQUANTIZE && q->expressed != q->scale_type)
        node_set_int(n, "output_dtype", q->expressed);
    op_resolve(n, b->d);
}

void drop_params(Node *n, Diags *d) {
    n->n_in = 1;
    n->domain = STR_NONE;
    clear_attrs(n);
    op_resolve(n, d);
}
