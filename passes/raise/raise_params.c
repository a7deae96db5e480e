/* From scale and zero point operands to a quantization. */
#include "passes/const_quant.h"
#include "passes/raise/raise.h"

#include <math.h>

typedef struct Stated {
    const Tensor *scale, *zp;
    ElemType storage, expressed;
    int axis; /* as written, may be negative */
    int64_t block;
    Type tensor; /* of the integers */
} Stated;

static bool read_operands(const Node *n, Stated *s, const char **why) {
    bool quantize = node_conversion(n) == CONVERT_QUANTIZE;
    const Value *x = n->in[0], *z = node_input(n, 2);
    bool known = x->type.kind == TYPE_TENSOR;
    int64_t dtype = node_int(n, "output_dtype", 0);
    s->scale = value_data(n->in[1]);
    s->zp = z ? value_data(z) : NULL;
    *why = "its scale is computed";
    if (!s->scale || !s->scale->data)
        return false;
    *why = "its zero point is computed";
    if (z && (!s->zp || !s->zp->data))
        return false;
    s->axis = (int)node_int(n, "axis", 1);
    s->block = node_int(n, "block_size", 0);
    if (quantize) {
        s->storage = s->zp ? s->zp->elem : dtype ? (ElemType)dtype : ELEM_UINT8;
        s->expressed = known && x->type.elem ? x->type.elem : s->scale->elem;
    } else {
        s->storage = x->type.elem;
        s->expressed = dtype ? (ElemType)dtype : s->scale->elem;
    }
    s->tensor = known ? x->type : TYPE_UNKNOWN;
    *why = "the type of its operand is not known";
    return known || quantize;
}

/* Absent, or no bit set. */
static bool is_zero(const Tensor *t) {
    for (size_t i = 0; t && i < t->bytes; i++)
        if (t->data[i])
            return false;
    return true;
}

static bool usable(const Stated *s, const char **why) {
    *why = "qxc has no quantized type on its element types";
    if (!elem_has_grid(s->storage) || !elem_is_float(s->scale->elem) ||
        !elem_is_float(s->expressed) || elem_bits(s->scale->elem) < 16)
        return false;
    *why = "its zero point has another type than its integers";
    if (s->zp && s->zp->elem != s->storage)
        return false;
    *why = "its zero point is not 0, which alone floating-point types have";
    if (elem_is_float(s->storage) && !is_zero(s->zp))
        return false;
    *why = "its scale has no elements";
    if (s->scale->count == 0)
        return false;
    *why = "a scale is not a positive number";
    for (size_t i = 0; i < s->scale->count; i++) {
        float v = (float)tensor_float(s->scale, i);
        if (!isnormal(v) || v < 0)
            return false;
    }
    return true;
}

static Quant *with_params(Raise *r, const Stated *s) {
    size_t n = s->scale->count;
    float *scale = NEW_ARRAY(r->b.a, float, n);
    int64_t *zp = s->zp && elem_is_int(s->storage) ? NEW_ARRAY(r->b.a, int64_t, n) : NULL;
    for (size_t i = 0; i < n; i++) {
        scale[i] = (float)tensor_float(s->scale, i);
        if (zp)
            zp[i] = tensor_int(s->zp, s->zp->count == 1 ? 0 : i);
    }
    Quant *q = quant_per_axis(r->b.a, s->storage, 0, n, scale, zp);
    if (!quant_zp_all_zero(q) || !zp)
        return q;
    q->n_zp = 1; /* one 0 for all reads better than a list of them */
    return q;
}

/* ---- blocks ---- */

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The most neighbours on axis i that share parameters, 0: all do. */
static int64_t shared_by(const Quant *q, const int64_t *grid, int i) {
    size_t step = 1;
    int64_t shared = 0;
    for (int k = i + 1; k < q->n_axes; k++)
        step *= (size_t)grid[k];
    for (size_t e = step; e < q->n_scale; e++) {
        int64_t at = (int64_t)(e / step) % grid[i];
        if (at && (quant_scale(q, e) != quant_scale(q, e - step) ||
                   quant_zp(q, e) != quant_zp(q, e - step)))
            shared = common_divisor(shared, at);
        if (shared == 1)
            break;
    }
    return shared;
}

/* Keeps every `shared`-th entry of axis i. */
static void thin_out(Raise *r, Quant *q, const int64_t *grid, int i, int64_t shared) {
    size_t step = 1, n = 0;
    for (int k = i + 1; k < q->n_axes; k++)
        step *= (size_t)grid[k];
    float *scale = NEW_ARRAY(r->b.a, float, q->n_scale);
    int64_t *zp = NEW_ARRAY(r->b.a, int64_t, q->n_scale);
    for (size_t e = 0; e < q->n_scale; e++)
        if ((int64_t)(e / step) % grid[i] % shared == 0) {
            scale[n] = quant_scale(q, e);
            zp[n++] = quant_zp(q, e);
        }
    q->scale = scale;
    if (q->n_zp > 1) {
        q->zp = zp;
        q->n_zp = n;
    }
    q->n_scale = n;
}

void raise_merge_blocks(Raise *r, Quant *q, const int64_t *grid) {
    int64_t left[MAX_RANK];
    int n = q->n_axes, kept = 0;
    memcpy(left, grid, (size_t)n * sizeof *left);
    for (int i = 0; i < n && n > 1; i++) {
        int64_t shared = q->block[i] > 1 ? 1 : shared_by(q, left, i);
        if (shared == 1)
            continue;
        q->block[i] = shared; /* 0: the axis goes */
        thin_out(r, q, left, i, shared ? shared : left[i]);
        left[i] = shared ? (left[i] + shared - 1) / shared : 1;
    }
    for (int i = 0; i < n; i++) {
        if (q->block[i] == 0)
            continue;
        q->axis[kept] = q->axis[i];
        q->block[kept++] = q->block[i];
    }
    q->n_axes = kept;
}

/* One block's parameters for each place of the scale tensor. */
static bool set_blocks(Raise *r, Quant *q, const Stated *s, int axis) {
    int64_t grid[MAX_RANK];
    if (s->scale->rank != s->tensor.rank)
        return false;
    q->n_axes = 0;
    for (int i = 0; i < s->scale->rank; i++) {
        if (i != axis && s->scale->dims[i] == 1)
            continue;
        grid[q->n_axes] = s->scale->dims[i];
        q->axis[q->n_axes] = i;
        q->block[q->n_axes++] = i == axis ? s->block : 1;
    }
    raise_merge_blocks(r, q, grid);
    return true;
}

const Quant *raise_params(Raise *r, const Node *n, const char **why) {
    Stated s = {0};
    const Quant *emulated = raise_emulated_params(r, n);
    if (emulated)
        return emulated;
    if (!read_operands(n, &s, why) || !usable(&s, why))
        return NULL;
    Quant *q = with_params(r, &s);
    q->expressed = s.expressed;
    q->scale_type = s.scale->elem;
    int axis = s.axis < 0 && s.tensor.rank >= 0 ? s.axis + s.tensor.rank : s.axis;
    *why = "its scale and zero point do not fit its operand";
    if (s.zp && s.zp->count != s.scale->count && s.zp->count != 1)
        return NULL;
    if (s.block)
        return set_blocks(r, q, &s, axis) ? q : NULL;
    if (s.scale->count == 1 && (s.scale->rank == 0 || s.tensor.rank < 0 || axis < 0 ||
                                axis >= s.tensor.rank || s.tensor.dims[axis].value != 1)) {
        q->n_axes = 0;
        return q;
    }
    if (s.scale->rank != 1 || axis < 0 || axis >= s.tensor.rank ||
        (s.tensor.dims[axis].value >= 0 && s.tensor.dims[axis].value != (int64_t)s.scale->count)) {
        if (s.scale->rank > 1 || s.scale->count > 1)
            return NULL;
    }
    q->n_axes = s.scale->count == 1 ? 0 : 1;
    q->axis[0] = axis;
    return q;
}

const Quant *raise_weights(Raise *r, ElemType e, int axis, size_t count, const Tensor *s,
                           const Tensor *z, float times) {
    float *scale = NEW_ARRAY(r->b.a, float, count);
    int64_t *zp = NEW_ARRAY(r->b.a, int64_t, count);
    for (size_t i = 0; i < count; i++) {
        scale[i] = exact_factor(times, (float)tensor_float(s, s->count > 1 ? i : 0));
        zp[i] = z ? tensor_int(z, z->count > 1 ? i : 0) : 0;
        if (scale[i] == 0)
            return NULL;
    }
    if (count == 1)
        return quant_per_tensor(r->b.a, e, scale[0], zp[0]);
    Quant *q = quant_per_axis(r->b.a, e, axis, count, scale, zp);
    q->n_zp = z && z->count > 1 ? count : 1;
    return q;
}
