/* Cast, CastLike and BitCast. Cast: 13 bfloat16; 19 saturate and float8; 24 round_mode. Kernels
 * exist between integers of 8 bits and more, bool and float. */
#include "ir/ops/bind.h"

typedef struct CastAttrs {
    int64_t to, saturate;
    Str round_mode; /* of float8e8m0, whose results are rounded behind (bind_half.c) */
} CastAttrs;

static const AttrSpec attrs[] = {
    A_INT_REQUIRED(CastAttrs, to),
    A_FLAG(CastAttrs, saturate, 1),
    A_WORD(CastAttrs, round_mode, "up", "up down nearest"),
    A_END,
};

static bool verify(const OpCtx *c) {
    const CastAttrs *a = c->attrs;
    return (a->to > 0 && a->to < 1000 && elem_known((int)a->to)) ||
           op_error_attr(c, "to", "there is no element type %lld", (long long)a->to);
}

static bool infer(OpCtx *c) {
    const CastAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    if (!verify(c))
        return false;
    if (x.kind == TYPE_TENSOR || x.kind == TYPE_NONE)
        c->out[0] = type_tensor((ElemType)a->to, x.rank, x.dims);
    return true;
}

static bool passes_on(const OpCtx *c) {
    const CastAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    return x.kind == TYPE_TENSOR && x.elem == (ElemType)a->to && !type_is_quantized(x);
}

/* What int32 and int64 hold, int64 does. */
static const Value *element(const OpCtx *c, int64_t *at) {
    const CastAttrs *a = c->attrs;
    ElemType from = op_type(c, 0).elem;
    (void)at;
    return a->to == ELEM_INT64 && (from == ELEM_INT32 || from == ELEM_INT64) ? op_in(c, 0) : NULL;
}

/* What a byte holds, modulo the range of fewer bits. */
static bool narrow(Binder *b, const Node *n, ElemType e, ElemType held, int bytes) {
    uint8_t by = (uint8_t)(8 - elem_bits(e));
    Broadcast s = {.rank = 1, .dim = {bind_count(n->out[0])}, .as = {1}};
    int shift = bind_const(b, held, 1, &by, "bits"), y = bind_value(b, n->out[0]);
    return bind_binary(b, n, "left", held, s, (int[]){bytes, shift, y}) &&
           bind_binary(b, n, "right", held, s, (int[]){y, shift, y});
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    ElemType from = bind_elem(n->in[0]), to = bind_elem(n->out[0]), e = n->out[0]->type.elem;
    if (bind_any_quant(n))
        return bind_unsupported(b, n, "its operand or result is quantized");
    if (n->in[0]->type.elem == e)
        return bind_alias(b, n, n->out[0], n->in[0]);
    if (e != to) { /* fewer than 8 bits */
        int bytes = bind_temp(b, to, (size_t)bind_count(n->out[0]));
        qk_cast_params p = {.n = bind_count(n->in[0])};
        return bind_call(b, n, bind_kernel(b, "cast", 2, (ElemType[]){from, to}), &p, sizeof p, 2,
                         (int[]){bind_value(b, n->in[0]), bytes}) &&
               narrow(b, n, e, to, bytes);
    }
    int args[] = {bind_value(b, n->in[0]), bind_value(b, n->out[0])};
    if (to == ELEM_BOOL) {
        qk_truth_params p = {.n = bind_count(n->in[0])};
        return bind_call(b, n, bind_kernel(b, "truth", 1, &from), &p, sizeof p, 2, args);
    }
    qk_cast_params p = {.n = bind_count(n->in[0])};
    return bind_call(b, n, bind_kernel(b, "cast", 2, (ElemType[]){from, to}), &p, sizeof p, 2,
                     args);
}

const OpDef op_Cast = {
    .domain = "",
    .name = "Cast",
    .attrs_size = sizeof(CastAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = op_slices_each,
    .passes_on = passes_on,
    .element = element,
    .bind = bind,
};

/* ---- CastLike: to the type of operand 1 ---- */

typedef struct LikeAttrs {
    int64_t saturate;
    Str round_mode;
} LikeAttrs;

static const AttrSpec like_attrs[] = {
    A_FLAG(LikeAttrs, saturate, 1),
    A_WORD(LikeAttrs, round_mode, "up", "up down nearest"),
    A_END,
};

static bool like_infer(OpCtx *c) {
    Type x = op_type(c, 0), like = op_type(c, 1);
    if (x.kind == TYPE_TENSOR && like.kind == TYPE_TENSOR)
        c->out[0] = type_tensor(type_real_elem(like), x.rank, x.dims);
    return true;
}

const OpDef op_CastLike = {
    .domain = "",
    .name = "CastLike",
    .attrs_size = sizeof(LikeAttrs),
    .attrs = like_attrs,
    .infer = like_infer,
    .bind = bind,
};

/* ---- BitCast: the same bits, of another type as wide ---- */

static const AttrSpec bits_attrs[] = {
    A_INT_REQUIRED(CastAttrs, to),
    A_END,
};

static bool bits_verify(const OpCtx *c) {
    const CastAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    if (!verify(c))
        return false;
    if (a->to == ELEM_STRING)
        return op_error_attr(c, "to", "a string has no bits that a number has");
    return x.kind != TYPE_TENSOR || elem_bits(x.elem) == elem_bits((ElemType)a->to) ||
           op_error_attr(c, "to", "%s has %d bits, %s has %d", elem_name((ElemType)a->to),
                         elem_bits((ElemType)a->to), elem_name(x.elem), elem_bits(x.elem));
}

static bool bits_infer(OpCtx *c) {
    return bits_verify(c) && infer(c);
}

/* From the bits of a float16 or bfloat16 to the float that stands for it as it runs, or back. */
static bool half_bits(Binder *b, const Node *n, ElemType e, bool load, int from, int to) {
    qk_load_half_params p = {.n = bind_count(n->in[0]), /* qk_store_half has the same */
                             .mantissa = e == ELEM_FLOAT16 ? 10 : 7};
    return bind_call(b, n, load ? "qk_load_half" : "qk_store_half", &p, sizeof p, 2,
                     (int[]){from, to});
}

static bool bits_bind(Binder *b, const Node *n, const OpCtx *c) {
    const Node *stated = bind_original(b, n);
    ElemType from = stated->in[0]->type.elem, to = stated->out[0]->type.elem;
    bool load = elem_is_float(to) && elem_bits(to) < 32,
         store = elem_is_float(from) && elem_bits(from) < 32;
    if (bind_any_quant(n))
        return bind_unsupported(b, n, "its operand or result is quantized");
    if (elem_bits(to) != elem_bits(from) || ((load || store) && elem_bits(to) < 16))
        return bind_unsupported(b, n, "no kernel takes the bits of %s as %s", elem_name(from),
                                elem_name(to));
    if (elem_bits(to) < 8)
        return bind(b, n, c);
    if (from == to || (!load && !store))
        return bind_alias(b, n, n->out[0], n->in[0]);
    size_t count = (size_t)bind_count(n->in[0]);
    int bits = store && load ? bind_temp(b, ELEM_UINT16, count) : -1;
    int x = bind_value(b, n->in[0]), y = bind_value(b, n->out[0]);
    return (!store || half_bits(b, n, from, false, x, load ? bits : y)) &&
           (!load || half_bits(b, n, to, true, store ? bits : x, y));
}

const OpDef op_BitCast = {
    .domain = "",
    .name = "BitCast",
    .attrs_size = sizeof(CastAttrs),
    .attrs = bits_attrs,
    .verify = bits_verify,
    .infer = bits_infer,
    .slices = op_slices_each,
    .bind = bits_bind,
};
