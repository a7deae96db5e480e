/* See packed.h. */
#include "ir/ops/packed.h"

enum { BLOCK = 16, STEP = 4, MOST_FAR = 33025, SLACK = 16 }; /* MOST_FAR * 255 * 255 < 2^31 */

static int32_t padded(int32_t columns) {
    return (columns + BLOCK - 1) / BLOCK * BLOCK;
}

/* Of 4 bits only: those of fewer would take more flash than they do as they are. */
static bool takes(const Mac *m) {
    return (m->dynamic || elem_bits(m->types[0]) == 8) &&
           (m->wbits ? m->wbits == 4 : elem_bits(m->types[1]) == 8);
}

/* Constant floats, one for each column or for all. */
static bool is_row(const Mac *m, const Value *v) {
    const Tensor *t = value_data(v);
    return !v || (t && t->data && (t->count == m->channels || t->count == 1) &&
                  v->type.elem == ELEM_FLOAT && !type_is_quantized(v->type));
}

bool packed_takes(const Mac *m, const Beside *o) {
    return takes(m) && is_row(m, o->real);
}

int packed_small(Binder *b, const Mac *m, const Value *w, int axis) {
    const Tensor *t = value_data(w);
    if (!m->wbits || !takes(m))
        return -1;
    int8_t *out = NEW_ARRAY(binder_arena(b), int8_t, t->count);
    size_t inner = dims_step(t->rank, t->dims, axis);
    for (size_t i = 0; i < t->count; i++) {
        size_t channel = m->w->n_zp > 1 ? i / inner % m->channels : 0;
        int64_t v = tensor_int(t, i) - quant_zp(m->w, channel);
        if (v < -8 || v > 7)
            return -1;
        out[i] = (int8_t)v;
    }
    return bind_const(b, ELEM_INT8, t->count, out, "weights less their zero points");
}

int packed_signed(Binder *b, const Mac *m, const Value *w, int axis, int *zeros) {
    const Tensor *t = value_data(w);
    *zeros = -1;
    if (!t || !t->data || m->wbits || !takes(m))
        return -1;
    int32_t moved = elem_is_signed(m->w->storage) ? 0 : 128;
    int8_t *out = NEW_ARRAY(binder_arena(b), int8_t, t->count);
    int32_t *z = NEW_ARRAY(binder_arena(b), int32_t, m->channels);
    bool fits = true;
    size_t inner = dims_step(t->rank, t->dims, axis);
    for (size_t i = 0; i < m->channels; i++)
        z[i] = (int32_t)quant_zp(m->w, m->w->n_zp > 1 ? i : 0) - moved;
    for (size_t i = 0; i < t->count && fits; i++) {
        int64_t v = tensor_int(t, i) - moved - z[i / inner % m->channels];
        fits = v >= INT8_MIN && v <= INT8_MAX;
        out[i] = (int8_t)v;
    }
    if (!fits && !m->dynamic)
        return -1;
    for (size_t i = 0; i < t->count && !fits; i++)
        out[i] = (int8_t)(tensor_int(t, i) - moved);
    if (!fits)
        *zeros = bind_const(b, ELEM_INT32, m->channels, z, "zero points of the weights");
    return bind_const(b, ELEM_INT8, t->count, out, "weights, signed");
}

bool packed_fits(Binder *b, const Mac *m, int32_t groups, int32_t columns, int32_t k,
                 const Beside *o) {
    int64_t plain = (int64_t)groups * columns * k;
    int64_t packed = (int64_t)groups * padded(columns) * ((k + STEP - 1) / STEP * STEP);
    return packed_takes(m, o) && k > 0 && k <= (o->zeros < 0 ? PACKED_MOST_TERMS : MOST_FAR) &&
           packed <= plain + plain / 2 + 4096 &&
           (o->bias < 0 || bind_buffer(b, o->bias)->kind == BUF_CONST);
}

/* As they are, or each eight of 4 bits in four bytes, from -8 on: the first four as low halves. */
static int bind_weights(Binder *b, const Mac *m, const int8_t *w, size_t n, const char *comment) {
    if (!m->wbits)
        return bind_made(b, ELEM_INT8, n, w, comment);
    uint8_t *out = NEW_ARRAY(binder_arena(b), uint8_t, n / 2);
    for (size_t i = 0; i < n / 2; i++) {
        const int8_t *low = w + i / 4 * 8 + i % 4;
        out[i] = (uint8_t)((low[0] + 8) | (low[4] + 8) << 4);
    }
    return bind_made(b, ELEM_UINT8, n / 2, out, comment);
}

static int pack_weights(Binder *b, const Mac *m, const int8_t *rows, int32_t groups,
                        int32_t columns, int32_t segments, int32_t k) {
    int32_t all = padded(columns), steps = (k + STEP - 1) / STEP;
    size_t block = (size_t)segments * (size_t)steps * BLOCK * STEP;
    size_t bytes = (size_t)groups * (size_t)all / BLOCK * block;
    int8_t *out = NEW_ARRAY(binder_arena(b), int8_t, bytes);
    for (int32_t g = 0; g < groups; g++)
        for (int32_t j = 0; j < columns; j++) {
            int8_t *to = out + (size_t)(g * all + j) / BLOCK * block + (size_t)(j % BLOCK) * STEP;
            for (int32_t s = 0; s < segments; s++, to += (size_t)steps * BLOCK * STEP)
                for (int32_t i = 0; i < k; i++)
                    to[(size_t)(i / STEP) * BLOCK * STEP + (size_t)(i % STEP)] = *rows++;
        }
    return bind_weights(b, m, out, bytes, "weights, packed");
}

/* How the weights of some groups lie: w[groups * columns][k]. Tables have `all` entries a group. */
typedef struct Columns {
    const int8_t *w;
    int32_t groups, columns, all, k;
} Columns;

/* bias[j] - zero * sum of the weights of column j, less their zero points, wrapping as the sums do.
 */
static int packed_bias(Binder *b, const Columns *c, int32_t zero, const Beside *o,
                       const char *comment) {
    size_t count = (size_t)c->groups * (size_t)c->all;
    int32_t *out = NEW_ARRAY(binder_arena(b), int32_t, count);
    const int32_t *given = o->bias < 0 ? NULL : bind_data(b, o->bias);
    const int32_t *zeros = o->zeros < 0 ? NULL : bind_data(b, o->zeros);
    const int8_t *w = c->w;
    for (int32_t j = 0; j < c->groups * c->columns; j++) {
        int32_t sum = zeros ? -c->k * zeros[j] : 0;
        for (int32_t i = 0; i < c->k; i++)
            sum += *w++;
        uint32_t v = given ? (uint32_t)given[j] : 0;
        out[j / c->columns * c->all + j % c->columns] =
            (int32_t)(v - (uint32_t)zero * (uint32_t)sum);
    }
    return bind_const(b, ELEM_INT32, count, out, comment);
}

/* A table of 32-bit entries, one or one a column, as one a column. What fills a group up is no
 * exception among its columns: vectors take several of them at a time. */
static int packed_table(Binder *b, int table, bool per_column, const Columns *c) {
    Buffer from = *bind_buffer(b, table);
    const int32_t *in = bind_data(b, table);
    size_t count = (size_t)c->groups * (size_t)c->all;
    int32_t *out = NEW_ARRAY(binder_arena(b), int32_t, count);
    for (int32_t g = 0; g < c->groups; g++)
        for (int32_t j = 0; j < c->all; j++) {
            int32_t i = g * c->columns + (j < c->columns ? j : c->columns - 1);
            out[g * c->all + j] = in[per_column ? i : 0];
        }
    return bind_const(b, from.elem, count, out, from.comment);
}

/* The factor times the row, as floats, again and again where there are more columns than channels.
 */
static int real_row(Binder *b, const Beside *o, const Columns *c) {
    const Tensor *t = value_data(o->real);
    size_t columns = (size_t)c->groups * (size_t)c->columns;
    float *out = NEW_ARRAY(binder_arena(b), float, columns);
    for (size_t i = 0; i < columns; i++)
        out[i] = o->factor * (float)tensor_float(t, i % t->count);
    return bind_const(b, ELEM_FLOAT, columns, out, "bias");
}

/* Tables of a node whose parameters of x are computed at run time follow from them. */
static void dynamic_tables(Binder *b, const Node *n, const Mac *m, Packed *p, const Columns *c,
                           const Beside *o) {
    qk_dynbias_params q = {.n = c->groups * c->all};
    int sums = packed_bias(b, c, -1, o, "sums of the weights");
    int scale =
        bind_const(b, ELEM_FLOAT, m->m_step ? m->channels : 1, m->scale, "scales of the weights");
    scale = packed_table(b, scale, m->m_step, c);
    p->params = bind_dynamic(b, n->in[0]);
    p->bias = bind_temp(b, ELEM_INT32, (size_t)q.n);
    p->tables[p->n_tables++] = bind_temp(b, ELEM_FLOAT, (size_t)q.n);
    bind_call(b, n, "qk_dynbias", &q, sizeof q, 5,
              (int[]){p->params, sums, scale, p->bias, p->tables[0]});
}

/* Of integers that become integers. */
static Plain plain_of(Binder *b, const Mac *m, const Columns *c, const Beside *o) {
    if (m->dynamic || m->wbits || m->n_out_args != 2)
        return (Plain){0};
    return (Plain){.weights = c->w,
                   .bias = o->bias < 0 ? NULL : bind_data(b, o->bias),
                   .mul = bind_data(b, m->out_args[0]),
                   .shift = bind_data(b, m->out_args[1]),
                   .columns = c->groups * c->columns,
                   .k = c->k,
                   .xz = m->xz,
                   .per_column = m->m_step != 0};
}

/* What stands beside the weights. */
static void bind_tables(Binder *b, const Node *n, const Mac *m, Packed *p, Columns c,
                        const Beside *o) {
    p->params = -1;
    memcpy(p->types, m->types, sizeof p->types);
    p->types[1] = m->wbits ? m->types[1] : ELEM_INT8;
    if (m->dynamic) {
        p->types[0] = ELEM_UINT8;
        dynamic_tables(b, n, m, p, &c, o);
    } else {
        p->bias = packed_bias(b, &c, p->xz, o, "bias");
        for (int i = 0; i < m->n_out_args; i++)
            p->tables[p->n_tables++] = packed_table(b, m->out_args[i], m->m_step, &c);
    }
    p->plain = plain_of(b, m, &c, o);
    if (p->types[2] != ELEM_FLOAT)
        return;
    p->tables[p->n_tables++] = o->real ? packed_table(b, real_row(b, o, &c), true, &c) : -1;
    p->tables[p->n_tables++] = o->zeros < 0 ? -1 : packed_table(b, o->zeros, true, &c);
}

Packed packed_bind(Binder *b, const Node *n, const Mac *m, const int8_t *rows, int32_t groups,
                   int32_t columns, int32_t segments, int32_t k, const Beside *o) {
    Packed p = {.steps = (k + STEP - 1) / STEP};
    p.xz = m->xz + (!m->dynamic && elem_is_signed(m->types[0]) ? 128 : 0);
    p.weights = pack_weights(b, m, rows, groups, columns, segments, k);
    bind_tables(b, n, m, &p, (Columns){rows, groups, columns, padded(columns), segments * k}, o);
    return p;
}

Packed packed_depthwise(Binder *b, const Node *n, const Mac *m, const int8_t *columns,
                        int32_t channels, int32_t k, const Beside *o) {
    Packed p = {.steps = (k + 1) / 2, .xz = m->xz};
    size_t row = m->wbits ? (size_t)(channels + 3) / 4 * 4 : (size_t)channels;
    size_t bytes = 2 * (size_t)p.steps * row;
    int8_t *out = NEW_ARRAY(binder_arena(b), int8_t, bytes);
    for (int32_t c = 0; c < channels; c++)
        for (int32_t i = 0; i < k; i++)
            out[2 * ((size_t)(i / 2) * row + (size_t)c) + (size_t)(i % 2)] =
                columns[(size_t)c * (size_t)k + (size_t)i];
    p.weights = bind_weights(b, m, out, bytes, "weights, by pairs of taps");
    bind_tables(b, n, m, &p, (Columns){columns, 1, channels, channels + SLACK, k}, o);
    return p;
}

bool packed_call(Binder *b, const Node *n, const char *kernel, const Mac *m, const Packed *p,
                 bool pads, const int at[3], const void *params, size_t size) {
    int args[CALL_MAX_ARGS] = {at[0], p->weights, p->bias}, n_args = 3;
    for (int i = 0; i < p->n_tables; i++)
        args[n_args++] = p->tables[i];
    if (pads && p->types[2] == ELEM_FLOAT)
        args[n_args++] = p->params;
    args[n_args++] = at[1];
    args[n_args++] = at[2];
    if (!bind_rounded(b, n, m->rounding, bind_kernel(b, kernel, 3, p->types), params, size, n_args,
                      args))
        return false;
    if (p->plain.columns)
        bind_unpacked(b, &p->plain);
    return true;
}
