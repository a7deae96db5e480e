/* See mac.h. */
#include "ir/ops/mac.h"

#include <math.h>
#include <stdlib.h>

static bool blocked(const Quant *q) {
    for (int i = 0; q && i < q->n_axes; i++)
        if (q->block[i] > 1)
            return true;
    return false;
}

bool mac_fits(const Value *x, const Value *w) {
    return !blocked(op_quant(x)) && !blocked(op_quant(w));
}

bool mac_floats(Binder *b, const Node *n, const Value *bias, int buffers[4]) {
    const Value *y = n->out[0];
    const Value *in[] = {n->in[0], n->in[1], bias};
    for (int i = 0; i < 3; i++) {
        if (in[i] && !op_quant(in[i]) && in[i]->type.elem != bind_real(b))
            return bind_unsupported(b, n, "operand %d is %s", i, elem_name(in[i]->type.elem));
        buffers[i] = bind_dequantized(b, n, in[i]);
        if (in[i] && buffers[i] < 0)
            return false;
    }
    buffers[3] = op_quant(y) ? bind_temp(b, ELEM_FLOAT, (size_t)bind_count(y)) : bind_value(b, y);
    return true;
}

bool mac_store(Binder *b, const Node *n, const int buffers[4]) {
    return !op_quant(n->out[0]) || bind_quantized(b, n, buffers[3], n->out[0]);
}

/* int32q with the accumulator's scale and zero point 0 takes the sum as it is. */
static bool is_raw(const Mac *m) {
    const Quant *y = m->y;
    size_t n = m->m_step ? m->channels : 1;
    if (!y || y->storage != ELEM_INT32 || !quant_zp_all_zero(y) || m->alpha != 1.0f)
        return false;
    if (!quant_is_known(y) || (y->n_scale != n && y->n_scale != 1))
        return false;
    for (size_t i = 0; i < n; i++)
        if (quant_scale(y, i) != m->scale[i])
            return false;
    return true;
}

/* One scale for each accumulator, on both sides in at most 16 bits. */
static bool check_quant(const Mac *m, int axis) {
    if (!(m->dynamic ? !m->y : quant_plain(m->x)) || !m->w || m->w->kind != QUANT_PARAMS ||
        quant_is_blocked(m->w))
        return false;
    if (m->w->n_axes == 1 && (m->w->axis[0] != axis || m->w->n_scale != m->channels))
        return false;
    return elem_bits(m->types[0]) <= 16 && elem_bits(m->types[1]) <= 16;
}

int64_t mac_reach(const Quant *q) {
    int64_t most = 0;
    for (size_t i = 0; i < (q->n_zp ? q->n_zp : 1); i++) {
        int64_t below = quant_zp(q, i) - quant_lo(q), above = quant_hi(q) - quant_zp(q, i);
        most = below > most ? below : most;
        most = above > most ? above : most;
    }
    return most;
}

/* The largest sum of |w - zp| over what one channel multiplies. */
static int64_t largest_sum(Arena *a, const Mac *m, const Value *w, int axis, int64_t terms) {
    const Tensor *t = value_data(w);
    int64_t bound = mac_reach(m->w) * terms, most = 0;
    if (!t || !t->data || axis < 0 || axis >= t->rank || t->dims[axis] != (int64_t)m->channels)
        return bound;
    int64_t *sum = NEW_ARRAY(a, int64_t, m->channels + 1);
    size_t inner = dims_step(t->rank, t->dims, axis);
    for (size_t i = 0; i < t->count; i++) {
        size_t c = i / inner % m->channels;
        sum[c] += llabs(tensor_int(t, i) - quant_zp(m->w, m->w->n_axes ? c : 0));
        most = sum[c] > most ? sum[c] : most;
    }
    return most < bound ? most : bound;
}

/* int32 holds every sum of 8-bit products; that of wider ones is int64, which no tensor fills. */
static bool sums_fit(Arena *a, const Mac *m, const Value *w, int axis, int64_t terms) {
    int64_t x = mac_reach(m->x);
    return m->acc != ELEM_INT32 || x * mac_reach(m->w) * terms <= INT32_MAX ||
           x * largest_sum(a, m, w, axis, terms) <= INT32_MAX;
}

bool mac_refuse(Mac *m, const char *why) {
    m->why = why;
    return false;
}

static bool out_tables(Binder *b, const Node *n, Mac *m) {
    size_t count = m->m_step ? m->channels : 1;
    if (m->raw)
        return true;
    if (!m->y) {
        m->out_args[m->n_out_args++] =
            bind_const(b, ELEM_FLOAT, count, m->scale, "accumulator scales");
        return true;
    }
    if (!quant_plain(m->y) || elem_bits(m->types[2]) > 16)
        return mac_refuse(m, "its result has several scales or more than 16 bits");
    Multiplier *mult = NEW_ARRAY(binder_arena(b), Multiplier, count);
    for (size_t i = 0; i < count; i++) {
        double product = (double)m->alpha * (double)quant_scale(m->x, 0);
        mult[i].rounded = m->scale[i] / quant_scale(m->y, 0);
        mult[i].real = product * (double)quant_scale(m->w, i) / (double)quant_scale(m->y, 0);
    }
    m->n_out_args = 2;
    m->rounding = bind_rounding(b);
    bind_multipliers(b, n, m->rounding, mult, count, &m->out_args[0], &m->out_args[1]);
    m->yz = quant_zero(m->y);
    quant_range(m->y, &m->lo, &m->hi);
    return true;
}

bool mac_prepare(Binder *b, const Value *x, const Value *w, const Value *y, int axis,
                 size_t channels, int64_t terms, float alpha, Mac *m) {
    *m = (Mac){
        .x = op_quant(x),
        .w = op_quant(w),
        .y = op_quant(y),
        .types = {bind_elem(x), bind_is_packed(w) ? w->type.elem : bind_elem(w), bind_elem(y)},
        .channels = channels,
        .alpha = alpha};
    m->dynamic = m->x && m->x->kind == QUANT_DYNAMIC;
    if (m->dynamic)
        m->types[0] = ELEM_INT16;
    bool narrow = elem_bits(m->types[0]) == 8 && elem_bits(m->types[1]) <= 8;
    m->wbits = bind_is_packed(w) ? elem_bits(m->types[1]) : 0;
    m->wsign = m->wbits && elem_is_signed(m->types[1]) ? 1 << (m->wbits - 1) : 0;
    m->acc = narrow ? ELEM_INT32 : ELEM_INT64;
    if (!check_quant(m, axis))
        return mac_refuse(
            m, "its operands have more than 16 bits, or scales that one sum cannot have");
    if (!sums_fit(binder_arena(b), m, w, axis, terms))
        return mac_refuse(m, "its sums of 8-bit products do not fit int32");
    m->expand = narrow ? ELEM_INT16 : ELEM_INT32;
    m->m_step = m->w->n_axes == 1;
    m->xz = quant_zero(m->x);
    size_t count = m->m_step ? channels : 1;
    m->scale = NEW_ARRAY(binder_arena(b), float, count);
    for (size_t i = 0; i < count; i++)
        m->scale[i] = alpha * (m->dynamic ? 1.0F : quant_scale(m->x, 0)) * quant_scale(m->w, i);
    if (m->dynamic)
        return true;
    m->raw = is_raw(m);
    return out_tables(b, y->def, m);
}

int mac_weight_zp(Binder *b, const Mac *m, int32_t bias, int32_t *step, bool *all_zero) {
    size_t count = m->w->n_zp > 1 ? m->w->n_zp : 1;
    int32_t *zp = NEW_ARRAY(binder_arena(b), int32_t, count);
    *all_zero = true;
    for (size_t i = 0; i < count; i++) {
        zp[i] = (int32_t)quant_zp(m->w, i) - bias;
        *all_zero = *all_zero && zp[i] == 0;
    }
    *step = count > 1;
    return bind_const(b, ELEM_INT32, count, zp, "zero points of the weights");
}

bool mac_call(Binder *b, const Node *n, const Mac *m, const char *kernel, const void *params,
              size_t params_size, MacBuffers at, int n_scratch, const int *scratch) {
    int args[CALL_MAX_ARGS] = {at.x, at.w, at.bias, at.wz}, count = 4;
    for (int i = 0; i < m->n_out_args; i++)
        args[count++] = m->out_args[i];
    args[count++] = at.y;
    for (int i = 0; i < n_scratch; i++)
        args[count++] = scratch[i];
    return bind_rounded(b, n, m->rounding, bind_kernel(b, kernel, 3, m->types), params, params_size,
                        count, args);
}

/* ---- bias ---- */

/* Integers at the accumulator's scale already: the usual case, and exact. */
static bool same_units(const Mac *m, const Quant *q, float beta) {
    if (!q || q->storage != ELEM_INT32 || !quant_zp_all_zero(q) || beta != m->alpha)
        return false;
    size_t n = m->m_step ? m->channels : 1;
    if (!quant_is_known(q) || (q->n_scale != n && q->n_scale != 1 && n != 1))
        return false;
    for (size_t i = 0; i < m->channels; i++)
        if (quant_scale(q, i % q->n_scale) != quant_scale(m->x, 0) * quant_scale(m->w, i % n))
            return false;
    return true;
}

/* Element of a bias that broadcasts to [rows, channels]. */
static size_t bias_index(Type t, size_t row, size_t channel) {
    size_t last = t.rank > 0 ? (size_t)t.dims[t.rank - 1].value : 1;
    size_t rows = t.rank > 1 ? (size_t)t.dims[t.rank - 2].value : 1;
    return (rows > 1 ? row : 0) * last + (last > 1 ? channel : 0);
}

static double bias_real(const Quant *q, const Tensor *t, size_t i) {
    if (!q)
        return tensor_float(t, i);
    size_t k = quant_index(q, t->rank, t->dims, i);
    return (double)(tensor_int(t, i) - quant_zp(q, k)) * (double)quant_scale(q, k);
}

/* False where the accumulator does not hold it. */
static bool to_acc(const Mac *m, double v, size_t channel, int64_t *to) {
    double r = rint(v / (double)m->scale[m->m_step ? channel : 0]);
    double most = m->acc == ELEM_INT32 ? (double)INT32_MAX : 0x1p62;
    *to = fabs(r) <= most ? (int64_t)r : 0;
    return fabs(r) <= most;
}

/* One that is computed can only be added where it is on the accumulator's grid. */
static bool runtime_bias(Binder *b, Mac *m, const Value *bias, float beta, int *buffer) {
    if (m->acc != ELEM_INT32 || !same_units(m, op_quant(bias), beta))
        return mac_refuse(m, "its bias is computed, and not on the grid of its sums");
    *buffer = bind_value(b, bias);
    return true;
}

/* Floats beside a float result are added as they are, not in units of the sum, and so is whatever
 * stands beside a dynamic x. */
static bool is_apart(const Mac *m, const Value *bias, float beta) {
    bool real = !op_quant(bias) && bias->type.elem == ELEM_FLOAT &&
                (beta == 1.0f || (value_data(bias) && value_data(bias)->data));
    return m->dynamic || (real && !m->y && m->types[2] == ELEM_FLOAT);
}

bool mac_bias(Binder *b, Mac *m, const Value *bias, int32_t rows, float beta, int *buffer) {
    *buffer = -1;
    if (bias && is_apart(m, bias, beta))
        m->real = bias;
    if (!bias || m->real)
        return true;
    const Tensor *t = value_data(bias);
    const Quant *q = op_quant(bias);
    if (!t || !t->data)
        return runtime_bias(b, m, bias, beta, buffer);
    if (q && !quant_is_known(q))
        return mac_refuse(m, "the parameters of its bias are not known");
    bool direct = same_units(m, q, beta);
    size_t count = (size_t)rows * m->channels;
    uint8_t *table = arena_alloc(binder_arena(b), elem_bytes(m->acc, count));
    for (size_t i = 0; i < count; i++) {
        size_t at = bias_index(bias->type, i / m->channels, i % m->channels);
        int64_t v = direct ? tensor_int(t, at) : 0;
        if (!direct && !to_acc(m, (double)beta * bias_real(q, t, at), i % m->channels, &v))
            return mac_refuse(m, "its bias does not fit the accumulator at the scale of its sums");
        elem_store_int(m->acc, table, i, v);
    }
    *buffer = bind_const(b, m->acc, count, table, "bias");
    return true;
}
