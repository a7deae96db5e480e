/* How QuantizeLinear and DequantizeLinear run, and what operators with integers and floats take of
 * them. */
#include "ir/ops/overlay.h"
#include "ir/ops/quantize.h"

enum { X = LINEAR_X, SCALE = LINEAR_SCALE, ZP = LINEAR_ZP };

/* ---- where a parameter stands ---- */

static Grid whole(Type t) {
    return (Grid){.outer = 1, .axis = 1, .inner = bind_extent(t, 0, t.rank), .block = 1};
}

static Grid along(Type t, int axis, int64_t block, bool blocked) {
    Grid g = {.outer = bind_extent(t, 0, axis),
              .axis = (int32_t)t.dims[axis].value,
              .inner = bind_extent(t, axis + 1, t.rank),
              .block = block > 1 ? (int32_t)block : 1,
              .s_axis = 1};
    if (blocked) {
        g.s_axis = g.inner;
        g.s_inner = 1;
        g.s_outer = (int32_t)dim_parts(g.axis, g.block) * g.inner;
    }
    return g;
}

/* Operands of the ONNX form. */
static Grid operand_grid(const OpCtx *c, Type x) {
    const LinearAttrs *a = c->attrs;
    Type s = op_type(c, SCALE);
    int axis = 0;
    if (s.rank < 1 || (s.rank == 1 && s.dims[0].value == 1 && !a->block_size) || x.rank == 0)
        return whole(x);
    op_axis(c, a->axis, x.rank, &axis); /* verified */
    return along(x, axis, a->block_size, a->block_size > 0);
}

/* Two axes next to each other, blocks along one of them, nothing before: the usual grid of blocks,
 * where the tables need not be written out. */
static bool grid_of_blocks(const Quant *q, Type t, Grid *g) {
    int first = q->axis[0], second = q->n_axes == 2 ? q->axis[1] : -1;
    if (second != first + 1 || bind_extent(t, 0, first) != 1)
        return false;
    int32_t rows = (int32_t)t.dims[first].value, columns = (int32_t)t.dims[second].value;
    if (q->block[0] <= 1) { /* [rows, blocks] */
        *g = along(t, second, q->block[1], false);
        g->s_outer = (int32_t)dim_parts(g->axis, g->block);
        return true;
    }
    if (q->block[1] > 1 || second + 1 != t.rank)
        return false;
    *g = (Grid){.outer = 1, /* [blocks, columns] */
                .axis = rows,
                .inner = columns,
                .block = (int32_t)q->block[0],
                .s_axis = columns,
                .s_inner = 1};
    return true;
}

Grid bind_grid(Binder *b, const Quant *q, Type t, bool wide, int *scale, int *zp) {
    Grid g = {0};
    bool spread = q->n_axes > 1 && !grid_of_blocks(q, t, &g);
    size_t count = spread ? (size_t)bind_extent(t, 0, t.rank) : q->n_scale;
    ElemType e = wide ? ELEM_INT64 : ELEM_INT32;
    int64_t dims[MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dims[i] = t.dims[i].value;
    float *scales = NEW_ARRAY(binder_arena(b), float, count);
    uint8_t *zps = arena_alloc(binder_arena(b), elem_bytes(e, count));
    for (size_t i = 0; i < count; i++) {
        size_t k = spread ? quant_index(q, t.rank, dims, i) : i;
        scales[i] = quant_scale(q, k);
        elem_store_int(e, zps, i, quant_zp(q, k));
    }
    *scale = bind_const(b, ELEM_FLOAT, count, scales, "scale");
    *zp = bind_const(b, e, count, zps, "zero point");
    if (spread)
        return (Grid){.outer = 1, .axis = (int32_t)count, .inner = 1, .block = 1, .s_axis = 1};
    return q->n_axes > 1 ? g : q->n_axes == 0 ? whole(t) : along(t, q->axis[0], q->block[0], false);
}

/* ---- binding ---- */

static bool convert(Binder *b, const Node *n, int from, ElemType e, int to, int32_t count) {
    static const float one[] = {1.0f};
    static const int32_t zero[] = {0};
    int scale = bind_const(b, ELEM_FLOAT, 1, one, "no scale");
    int zp = bind_const(b, ELEM_INT32, 1, zero, "no zero point");
    int real = bind_temp(b, ELEM_FLOAT, (size_t)count);
    qk_dequantize_params d = {.outer = 1, .axis = 1, .inner = count, .block = 1};
    qk_quantize_params q = {.outer = 1,
                            .axis = 1,
                            .inner = count,
                            .block = 1,
                            .lo = INT32_MIN,
                            .hi = INT32_MAX,
                            .nan = INT32_MIN};
    ElemType wide = ELEM_INT32;
    return bind_call(b, n, bind_kernel(b, "dequantize", 1, &e), &d, sizeof d, 4,
                     (int[]){from, scale, zp, real}) &&
           bind_call(b, n, bind_kernel(b, "quantize", 1, &wide), &q, sizeof q, 4,
                     (int[]){real, scale, zp, to});
}

/* Zero points as int32: a table where they are constant; else converted through float, which is
 * exact for all that have a kernel (16 bits). */
static bool operand_zp(Binder *b, const Node *n, const OpCtx *c, int *buffer) {
    const Value *v = op_in(c, ZP), *s = op_in(c, SCALE);
    const Tensor *t = value_data(v);
    size_t count = (size_t)bind_count(v && !t ? v : s);
    int32_t *zps = NEW_ARRAY(binder_arena(b), int32_t, count);
    if (v && !t) {
        *buffer = bind_temp(b, ELEM_INT32, count);
        return convert(b, n, bind_value(b, v), bind_elem(v), *buffer, (int32_t)count);
    }
    for (size_t i = 0; t && t->data && i < count; i++)
        zps[i] = (int32_t)tensor_int(t, t->count == 1 ? 0 : i);
    *buffer = bind_const(b, ELEM_INT32, count, zps, "zero point");
    return true;
}

/* Parameters from the numbers themselves (DynamicQuantizeLinear). */
static bool quantize_dynamic(Binder *b, const Node *n) {
    const Value *x = n->in[X], *y = n->out[0];
    if (y->type.elem != ELEM_UINT8)
        return bind_unsupported(b, n, "only uint8q<dynamic> has parameters computed at run time");
    int from, to, params = bind_temp(b, ELEM_FLOAT, 2);
    bind_each(b, n, x, y, &from, &to);
    qk_dynparams_params p = {.n = bind_count(x)};
    qk_dynquant_params q = {.n = bind_count(x)};
    bind_set_dynamic(b, y, params);
    return bind_call(b, n, "qk_dynparams", &p, sizeof p, 2, (int[]){from, params}) &&
           bind_call(b, n, "qk_dynquant", &q, sizeof q, 3, (int[]){from, params, to});
}

/* args: x, scale, zero point, y */
static bool call_quantize(Binder *b, const Node *n, ElemType e, Grid g, int32_t lo, int32_t hi,
                          int32_t nan, const int args[4]) {
    qk_quantize_params p = {g.outer,  g.axis,    g.inner, g.block, g.s_outer,
                            g.s_axis, g.s_inner, lo,      hi,      nan};
    if (!bind_call(b, n, bind_kernel(b, "quantize", 1, &e), &p, sizeof p, 4, args))
        return false;
    bind_over_each(b, 0, (int64_t)g.outer * g.axis * g.inner, ELEM_FLOAT, e);
    return true;
}

/* To and from floating-point types of 8 bits and less, which the binder keeps as floats and rounds:
 * no zero point but 0. */
static bool rescale(Binder *b, const Node *n, const OpCtx *c, bool divides) {
    const Value *x = n->in[X], *y = n->out[0];
    const Tensor *zp = value_data(op_in(c, ZP));
    bool zero = !op_in(c, ZP) || (zp && zp->data);
    for (size_t i = 0; zp && zp->data && i < zp->count; i++)
        zero &= tensor_float(zp, i) == 0;
    if (!zero)
        return bind_unsupported(b, n, "floating-point types have no zero point but 0");
    if (!linear_own_form(n) && n->in[SCALE]->type.elem != ELEM_FLOAT)
        return bind_unsupported(b, n, "its scale is not float");
    int scale, no_zp;
    Grid g = linear_own_form(n)
                 ? bind_grid(b, op_quant(divides ? y : x), x->type, false, &scale, &no_zp)
                 : operand_grid(c, x->type);
    if (!linear_own_form(n))
        scale = bind_value(b, n->in[SCALE]);
    qk_rescale_f32_params p = {g.outer,   g.axis,   g.inner,   g.block,
                               g.s_outer, g.s_axis, g.s_inner, divides};
    return bind_call(b, n, "qk_rescale_f32", &p, sizeof p, 3,
                     (int[]){bind_value(b, x), scale, bind_value(b, y)});
}

bool quantize_bind(Binder *b, const Node *n, const OpCtx *c) {
    const LinearAttrs *a = c->attrs;
    const Value *x = n->in[X], *y = n->out[0];
    ElemType e = bind_elem(y);
    int scale, zp;
    Grid g;
    if (x->type.elem == ELEM_DOUBLE && linear_own_form(n))
        return bind_in_double(b, n);
    if (x->type.elem != ELEM_FLOAT)
        return bind_unsupported(b, n, "from %s", elem_name(x->type.elem));
    if (!elem_is_int(y->type.elem))
        return rescale(b, n, c, true);
    int64_t lo = elem_min(y->type.elem), hi = elem_max(y->type.elem), nan = lo;
    if (linear_own_form(n)) {
        const Quant *q = op_quant(y);
        if (q && q->kind == QUANT_DYNAMIC)
            return quantize_dynamic(b, n);
        if (!q || !quant_is_known(q))
            return bind_unsupported(b, n, "its parameters are not known");
        if (elem_bits(q->storage) > 16)
            return bind_in_double(b, n);
        g = bind_grid(b, q, y->type, false, &scale, &zp);
        lo = quant_lo(q);
        hi = quant_hi(q);
        nan = elem_min(q->storage);
    } else {
        if (n->in[SCALE]->type.elem != ELEM_FLOAT || (a->precision && a->precision != ELEM_FLOAT))
            return bind_unsupported(b, n, "its scale is not float");
        g = operand_grid(c, x->type);
        scale = bind_value(b, n->in[SCALE]);
        if (!operand_zp(b, n, c, &zp))
            return false;
    }
    return call_quantize(b, n, e, g, (int32_t)lo, (int32_t)hi, (int32_t)nan,
                         (int[]){bind_value(b, x), scale, zp, bind_value(b, y)});
}

static bool call_dequantize(Binder *b, const Node *n, const Value *x, Grid g, int scale, int zp,
                            int to) {
    bool packed = elem_is_int(x->type.elem) && bind_is_packed(x);
    ElemType e = packed ? x->type.elem : bind_elem(x);
    int32_t bits = packed ? elem_bits(e) : 0,
            sign = packed && elem_is_signed(e) ? 1 << (bits - 1) : 0;
    qk_dequantize_params p = {g.outer,  g.axis,    g.inner, g.block, g.s_outer,
                              g.s_axis, g.s_inner, bits,    sign};
    if (!bind_call(b, n, bind_kernel(b, "dequantize", 1, &e), &p, sizeof p, 4,
                   (int[]){packed ? bind_packed(b, x) : bind_value(b, x), scale, zp, to}))
        return false;
    if (!packed)
        bind_over_each(b, 0, (int64_t)g.outer * g.axis * g.inner, e, ELEM_FLOAT);
    return true;
}

bool dequantize_bind(Binder *b, const Node *n, const OpCtx *c) {
    const Value *x = n->in[X], *y = n->out[0];
    int scale, zp;
    Grid g;
    if (y->type.elem == ELEM_DOUBLE && linear_own_form(n))
        return bind_in_double(b, n);
    if (y->type.elem != ELEM_FLOAT)
        return bind_unsupported(b, n, "to %s", elem_name(y->type.elem));
    if (!elem_is_int(x->type.elem))
        return rescale(b, n, c, false);
    if (linear_own_form(n)) {
        const Quant *q = op_quant(x);
        if (!q || !quant_is_known(q))
            return bind_unsupported(b, n, "its parameters are not known");
        if (q->storage == ELEM_UINT32 || (q->storage == ELEM_INT32 && !quant_zp_all_zero(q)))
            return bind_in_double(b, n); /* x - zp does not fit int32 */
        g = bind_grid(b, q, x->type, false, &scale, &zp);
    } else {
        if (n->in[SCALE]->type.elem != ELEM_FLOAT)
            return bind_unsupported(b, n, "its scale is not float");
        g = operand_grid(c, x->type);
        scale = bind_value(b, n->in[SCALE]);
        if (!operand_zp(b, n, c, &zp))
            return false;
    }
    return call_dequantize(b, n, x, g, scale, zp, bind_value(b, y));
}

int bind_dequantized(Binder *b, const Node *n, const Value *v) {
    const Quant *q = op_quant(v);
    int scale, zp;
    if (!v || !q)
        return bind_value(b, v);
    if (!quant_is_known(q)) {
        bind_unsupported(b, n, "the parameters of '%s' are not known",
                         diag_name(binder_diags(b), v->name));
        return -1;
    }
    Grid g = bind_grid(b, q, v->type, false, &scale, &zp);
    int real = bind_temp(b, ELEM_FLOAT, (size_t)bind_count(v));
    return call_dequantize(b, n, v, g, scale, zp, real) ? real : -1;
}

bool bind_quantized(Binder *b, const Node *n, int from, const Value *y) {
    const Quant *q = op_quant(y);
    int scale, zp;
    int32_t lo, hi;
    if (!q || !quant_is_known(q))
        return bind_unsupported(b, n, "the parameters of its result are not known");
    quant_range(q, &lo, &hi);
    ElemType e = bind_elem(y);
    Grid g = bind_grid(b, q, y->type, false, &scale, &zp);
    return call_quantize(b, n, e, g, lo, hi, (int32_t)elem_min(q->storage),
                         (int[]){from, scale, zp, bind_value(b, y)});
}
