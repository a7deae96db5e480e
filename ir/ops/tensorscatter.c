/* TensorScatter: a part of a cache is written over, from another place for each of a batch. */
#include "ir/ops/bind.h"

typedef struct CacheAttrs {
    int64_t axis;
    Str mode;
} CacheAttrs;

static const AttrSpec cache_attrs[] = {
    A_INT(CacheAttrs, axis, -2),
    A_WORD(CacheAttrs, mode, "linear", "linear circular"),
    A_END,
};

enum { CACHE, UPDATE, AT };

static bool cache_verify(const OpCtx *c) {
    const CacheAttrs *a = c->attrs;
    Type x = op_type(c, CACHE), u = op_type(c, UPDATE), at = op_type(c, AT);
    int axis;
    if (x.rank < 0)
        return true;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    if (axis == 0)
        return op_error_attr(c, "axis", "axis 0 is the batch");
    if (u.rank >= 0 && u.rank != x.rank)
        return op_error_in(c, UPDATE, "the update has rank %d, the cache %d", u.rank, x.rank);
    for (int i = 0; i < u.rank; i++) {
        long long have = u.dims[i].value, room = x.dims[i].value;
        if (have >= 0 && room >= 0 && (i == axis ? have > room : have != room))
            return op_error_in(c, UPDATE, "dimension %d is %lld, that of the cache %lld", i, have,
                               room);
    }
    bool fits = at.rank == 1 && (at.dims[0].value < 0 || x.dims[0].value < 0 ||
                                 at.dims[0].value == x.dims[0].value);
    return at.rank < 0 || fits ||
           op_error_in(c, AT, "there must be one place for each of the batch");
}

static bool cache_fits(const Node *n) {
    const Quant *x = op_quant(n->in[CACHE]), *u = op_quant(n->in[UPDATE]), *y = op_quant(n->out[0]);
    return (!x && !u && !y) || (quant_plain(x) && quant_plain(u) && quant_plain(y));
}

static bool cache_bind(Binder *b, const Node *n, const OpCtx *c) {
    const CacheAttrs *a = c->attrs;
    Type x = n->in[CACHE]->type, u = n->in[UPDATE]->type;
    ElemType e = bind_elem(n->out[0]);
    int axis;
    if (!cache_fits(n))
        return bind_in_double(b, n);
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    qk_tensor_scatter_params p = {.batch = (int32_t)x.dims[0].value,
                                  .outer = bind_extent(x, 1, axis),
                                  .steps = (int32_t)u.dims[axis].value,
                                  .length = (int32_t)x.dims[axis].value,
                                  .inner = bind_extent(x, axis + 1, x.rank),
                                  .circular = str_is(a->mode, "circular")};
    int64_t *starts = NEW_ARRAY(binder_arena(b), int64_t, (size_t)p.batch + 1);
    memset(starts, 0, ((size_t)p.batch + 1) * sizeof *starts);
    int at = op_in(c, AT) ? bind_value(b, n->in[AT])
                          : bind_const(b, ELEM_INT64, (size_t)p.batch, starts, "starts");
    bool ok = true;
    int from = bind_joined(b, n, n->in[CACHE], &ok), by = bind_joined(b, n, n->in[UPDATE], &ok);
    int y = bind_value(b, n->out[0]);
    bind_copy(b, n, from, y);
    if (!ok || !bind_call(b, n, bind_kernel(b, "tensor_scatter", 1, &e), &p, sizeof p, 3,
                          (int[]){by, at, y}))
        return false;
    if (!p.circular)
        bind_within(b, op_in(c, AT), false, (int32_t[]){p.length - p.steps + 1}, 1);
    return true;
}

const OpDef op_TensorScatter = {
    .domain = "",
    .name = "TensorScatter",
    .attrs_size = sizeof(CacheAttrs),
    .attrs = cache_attrs,
    .verify = cache_verify,
    .infer = op_same_type,
    .quant = {.kind = QUANT_JOIN,
              .data = 1u << CACHE | 1u << UPDATE,
              .prefers_float = GAINS_NOTHING},
    .picks = 1u << AT,
    .bind = cache_bind,
};
