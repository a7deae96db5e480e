/* See packed.h. */
#include "ir/ops/packed.h"

enum { BLOCK = 16, STEP = 4, MOST_K = 65536, SLACK = 16 }; /* MOST_K * 255 * 128 < 2^31 */

static int32_t padded(int32_t columns) {
    return (columns + BLOCK - 1) / BLOCK * BLOCK;
}

bool packed_fits(Binder *b, const Mac *m, int32_t groups, int32_t columns, int32_t k, int bias) {
    const Program *p = binder_program(b);
    int64_t plain = (int64_t)groups * columns * k;
    int64_t packed = (int64_t)groups * padded(columns) * ((k + STEP - 1) / STEP * STEP);
    return elem_bits(m->types[0]) == 8 && m->types[1] == ELEM_INT8 && !m->wbits && !m->dynamic &&
           k > 0 && k <= MOST_K && packed <= plain + plain / 2 + 4096 &&
           (bias < 0 || p->buffers[bias].kind == BUF_CONST);
}

static int pack_weights(Binder *b, const int8_t *rows, int32_t groups, int32_t columns,
                        int32_t segments, int32_t k) {
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
    return bind_const(b, ELEM_INT8, bytes, out, "weights, packed");
}

/* `all` entries a group: bias[j] - (xz + raised) * sum of the weights of column j, wrapping as the
 * sums do. */
static int packed_bias(Binder *b, const int8_t *rows, int32_t groups, int32_t columns, int32_t all,
                       int32_t k, int32_t zero, int bias) {
    int32_t *out = NEW_ARRAY(binder_arena(b), int32_t, (size_t)groups *(size_t)all);
    const int32_t *given = bias < 0 ? NULL : binder_program(b)->buffers[bias].data;
    for (int32_t c = 0; c < groups * columns; c++) {
        int32_t sum = 0;
        for (int32_t i = 0; i < k; i++)
            sum += rows[(size_t)c * (size_t)k + (size_t)i];
        uint32_t v = given ? (uint32_t)given[c] : 0;
        out[c / columns * all + c % columns] = (int32_t)(v - (uint32_t)zero * (uint32_t)sum);
    }
    return bind_const(b, ELEM_INT32, (size_t)groups * (size_t)all, out, "bias");
}

/* A table of 32-bit entries, one or one a column, as one a column, `all` a group. What fills a
 * group up is no exception among its columns: vectors take several of them at a time. */
static int packed_table(Binder *b, int table, bool per_column, int32_t groups, int32_t columns,
                        int32_t all) {
    Buffer from = binder_program(b)->buffers[table];
    const int32_t *in = from.data;
    int32_t *out = NEW_ARRAY(binder_arena(b), int32_t, (size_t)groups *(size_t)all);
    for (int32_t g = 0; g < groups; g++)
        for (int32_t j = 0; j < all; j++) {
            int32_t c = g * columns + (j < columns ? j : columns - 1);
            out[g * all + j] = in[per_column ? c : 0];
        }
    return bind_const(b, from.elem, (size_t)groups * (size_t)all, out, from.comment);
}

Packed packed_bind(Binder *b, const Mac *m, const int8_t *rows, int32_t groups, int32_t columns,
                   int32_t segments, int32_t k, int bias) {
    Packed p = {.steps = (k + STEP - 1) / STEP};
    p.xz = m->xz + (elem_is_signed(m->types[0]) ? 128 : 0);
    p.weights = pack_weights(b, rows, groups, columns, segments, k);
    p.bias = packed_bias(b, rows, groups, columns, padded(columns), segments * k, p.xz, bias);
    for (int i = 0; i < m->n_out_args; i++)
        p.tables[i] = packed_table(b, m->out_args[i], m->m_step, groups, columns, padded(columns));
    return p;
}

Packed packed_depthwise(Binder *b, const Mac *m, const int8_t *columns, int32_t channels, int32_t k,
                        int bias) {
    Packed p = {.steps = (k + 1) / 2, .xz = m->xz};
    size_t bytes = 2 * (size_t)p.steps * (size_t)channels;
    int8_t *out = NEW_ARRAY(binder_arena(b), int8_t, bytes);
    for (int32_t c = 0; c < channels; c++)
        for (int32_t i = 0; i < k; i++)
            out[2 * ((size_t)(i / 2) * (size_t)channels + (size_t)c) + (size_t)(i % 2)] =
                columns[(size_t)c * (size_t)k + (size_t)i];
    p.weights = bind_const(b, ELEM_INT8, bytes, out, "weights, by pairs of taps");
    p.bias = packed_bias(b, columns, 1, channels, channels + SLACK, k, p.xz, bias);
    for (int i = 0; i < m->n_out_args; i++)
        p.tables[i] = packed_table(b, m->out_args[i], m->m_step, 1, channels, channels + SLACK);
    return p;
}

bool packed_call(Binder *b, const Node *n, const char *kernel, const Mac *m, const Packed *p, int x,
                 int y, int scratch, const void *params, size_t size) {
    int args[CALL_MAX_ARGS] = {x, p->weights, p->bias}, n_args = 3;
    for (int i = 0; i < m->n_out_args; i++)
        args[n_args++] = p->tables[i];
    args[n_args++] = y;
    args[n_args++] = scratch;
    ElemType types[] = {m->types[0], m->types[2]};
    return bind_rounded(b, n, m->rounding, bind_kernel(b, kernel, 2, types), params, size, n_args,
                        args);
}
