/* See conv_float.h. */
#include "ir/ops/conv_float.h"
#include "ir/ops/overlay.h"

enum { X, W, B };
enum {
    BLOCK = 16,
    PART = 256,
    CHAIN = 64,
    SHORT_CHAIN = 32,
    LEAST_ROWS = 12,
    DIRECT_ROWS = 96,
    MOST_BYTES = 64 * 1024,
    FIRST_LEVEL_CACHE = 32 * 1024,
    FEW_CHANNELS = 8,
    LONG_LINE = 16
}; /* of the kernels */

static bool is_depthwise(const Spatial *s, int32_t group) {
    return group > 1 && group == s->ic && s->oc == s->ic;
}

static int32_t padded(int32_t columns) {
    return (columns + BLOCK - 1) / BLOCK * BLOCK;
}

static bool is_float_const(const Value *v) {
    const Tensor *t = value_data(v);
    return t && t->data && t->elem == ELEM_FLOAT && v->type.elem == ELEM_FLOAT && !op_quant(v);
}

static bool is_float(const Value *v) {
    return v->type.elem == ELEM_FLOAT && !op_quant(v);
}

/* As the program has them: rounded where the type says so (`float ~`). */
static const RowFloat *floats_of(Binder *b, const Value *v) {
    return bind_buffer(b, bind_value(b, v))->data;
}

static bool is_packable(const Binder *b, const Node *n) {
    bool bias = n->n_in > B && n->in[B];
    return bind_real(b) == ELEM_FLOAT && is_float(n->in[X]) && is_float(n->out[0]) &&
           is_float_const(n->in[W]) && (!bias || is_float_const(n->in[B]));
}

/* Whether blocks of columns with k elements each are not much larger than the weights. */
static bool pays(int64_t group, int64_t columns, int64_t k) {
    int64_t plain = group * columns * k, packed = group * padded((int32_t)columns) * k;
    return k > 0 && columns > 0 && packed <= plain + plain / 2 + 1024;
}

static bool columns_pay(const Spatial *s, int32_t group) {
    return pays(group, s->oc / group, (int64_t)s->ic / group * s->kh * s->kw);
}

/* Whether what a row of taps reads fills vectors better than output channels do. */
static bool lines_pay(const Spatial *s, int32_t group) {
    return group == 1 && s->dw == 1 && s->oc <= FEW_CHANNELS && !columns_pay(s, group) &&
           (int64_t)s->kw * s->ic >= LONG_LINE;
}

bool conv_float_fits(const Binder *b, const Node *n, const Spatial *s, int32_t group) {
    return is_packable(b, n) &&
           (is_depthwise(s, group) || columns_pay(s, group) || lines_pay(s, group));
}

bool convtranspose_float_fits(const Binder *b, const Node *n, const Spatial *s, int32_t group) {
    int64_t columns = (int64_t)s->oc / group * s->kh * s->kw;
    return is_packable(b, n) && columns <= INT32_MAX - BLOCK && pays(group, columns, s->ic / group);
}

/* [oc][ic / group][taps] to [oc / 16][taps][ic / group][16], by groups, filled up with zeros. */
static int packed_weights(Binder *b, const RowFloat *w, int32_t groups, int32_t ocg, int32_t icg,
                          int32_t taps) {
    int32_t all = padded(ocg);
    size_t k = (size_t)icg * (size_t)taps, count = (size_t)groups * (size_t)all * k;
    float *out = NEW_ARRAY(binder_arena(b), float, count);
    for (int32_t g = 0; g < groups; g++)
        for (int32_t j = 0; j < ocg; j++) {
            float *to = out + (size_t)(g * all + j) / BLOCK * BLOCK * k + (size_t)(j % BLOCK);
            for (int32_t i = 0; i < icg; i++)
                for (int32_t t = 0; t < taps; t++)
                    to[((size_t)t * (size_t)icg + (size_t)i) * BLOCK] = *w++;
        }
    return bind_made(b, ELEM_FLOAT, count, out, "weights, packed");
}

/* `all` entries a group. */
static int packed_bias(Binder *b, const Node *n, int32_t groups, int32_t ocg, int32_t all) {
    const RowFloat *given = n->n_in > B && n->in[B] ? floats_of(b, n->in[B]) : NULL;
    size_t count = (size_t)groups * (size_t)all;
    float *out = NEW_ARRAY(binder_arena(b), float, count);
    for (int32_t c = 0; given && c < groups * ocg; c++)
        out[c / ocg * all + c % ocg] = given[c];
    return bind_const(b, ELEM_FLOAT, count, out, "bias");
}

static int32_t chain_of(int32_t length, int32_t lines) {
    if (lines == 1 || length < 1)
        return CHAIN;
    if (length < CHAIN)
        return CHAIN / length * length;
    for (int32_t chain = CHAIN; chain >= SHORT_CHAIN; chain--)
        if (length % chain == 0)
            return chain;
    return CHAIN;
}

void conv_float_chains(int32_t length, int32_t lines, int32_t *part, int32_t *chain) {
    int32_t k = length * lines, parts = (k + PART - 1) / PART;
    *chain = chain_of(length, lines);
    *part = k < 1 ? 1 : (k + parts - 1) / parts;
    *part = (*part + *chain - 1) / *chain * *chain;
    *part = *part < k ? *part : k < 1 ? 1 : k;
}

static bool reads_one_position(const Spatial *s) {
    return s->kh == 1 && s->kw == 1 && s->sh == 1 && s->sw == 1 && s->pt == 0 && s->pl == 0 &&
           s->oh == s->ih && s->ow == s->iw;
}

/* More positions read the weights less often, up to what stays in the cache. LEAST_ROWS are kept
 * where the weights do not stay in the first one. */
static void bind_more_rows(Binder *b, const Spatial *s, int32_t group, int32_t part, int scratch) {
    size_t row = sizeof(float) * (size_t)part, all = (size_t)s->oh * (size_t)s->ow * row;
    bind_grow(b, scratch, offsetof(qk_conv2d_nhwc_f32_params, col_bytes), row, row,
              all < MOST_BYTES ? all : MOST_BYTES);
    if ((int64_t)s->oc * (s->ic / group) * s->kh * s->kw * (int64_t)sizeof(float) >
        FIRST_LEVEL_CACHE)
        bind_keep(b, LEAST_ROWS * row < all ? LEAST_ROWS * row : all);
}

/* Weights [c][taps] to [taps][c]. */
static bool bind_depthwise(Binder *b, const Node *n, const Spatial *s) {
    const RowFloat *w = floats_of(b, n->in[W]);
    size_t taps = (size_t)s->kh * (size_t)s->kw, c = (size_t)s->ic;
    float *out = NEW_ARRAY(binder_arena(b), float, taps *c);
    for (size_t i = 0; i < taps * c; i++)
        out[i % taps * c + i / taps] = w[i];
    qk_depthwise_nhwc_f32_params p = {WINDOW_PARAMS(s), .c = s->ic};
    int args[] = {bind_last(b, n, n->in[X]),
                  bind_made(b, ELEM_FLOAT, taps * c, out, "weights, channels last"),
                  packed_bias(b, n, 1, s->ic, s->ic), bind_last(b, n, n->out[0])};
    if (!bind_call(b, n, "qk_depthwise_nhwc_f32", &p, sizeof p, 4, args))
        return false;
    bind_over(b, 0, lead_window(s, ELEM_FLOAT, ELEM_FLOAT, 8)); /* positions made at a time */
    return true;
}

/* Weights [oc][ic][taps] to [oc][taps][ic]. */
static bool bind_few(Binder *b, const Node *n, const Spatial *s) {
    const RowFloat *w = floats_of(b, n->in[W]);
    size_t taps = (size_t)s->kh * (size_t)s->kw, ic = (size_t)s->ic,
           count = taps * ic * (size_t)s->oc;
    float *out = NEW_ARRAY(binder_arena(b), float, count);
    for (size_t i = 0; i < count; i++)
        out[i / (taps * ic) * taps * ic + i % taps * ic + i / taps % ic] = w[i];
    qk_conv2d_few_nhwc_f32_params p = {WINDOW_PARAMS(s), .ic = s->ic, .oc = s->oc};
    int args[] = {bind_last(b, n, n->in[X]),
                  bind_made(b, ELEM_FLOAT, count, out, "weights, channels last"),
                  packed_bias(b, n, 1, s->oc, s->oc), bind_last(b, n, n->out[0])};
    if (!bind_call(b, n, "qk_conv2d_few_nhwc_f32", &p, sizeof p, 4, args))
        return false;
    bind_over(b, 0, lead_window(s, ELEM_FLOAT, ELEM_FLOAT, 8)); /* positions made at a time */
    return true;
}

static bool bind_full(Binder *b, const Node *n, const Spatial *s, int32_t group) {
    int32_t icg = s->ic / group, ocg = s->oc / group, taps = s->kh * s->kw, all = padded(ocg);
    int32_t most = s->oh * s->ow, rows = most < 1 ? 1 : most < LEAST_ROWS ? most : LEAST_ROWS;
    qk_conv2d_nhwc_f32_params p = {WINDOW_PARAMS(s), .ic = s->ic, .oc = s->oc, .group = group};
    bool direct = reads_one_position(s);
    conv_float_chains(s->kw * icg, s->kh, &p.part, &p.chain);
    p.col_bytes = direct ? 0 : rows * p.part * (int32_t)sizeof(float);
    int w = packed_weights(b, floats_of(b, n->in[W]), group, ocg, icg, taps);
    int args[] = {bind_last(b, n, n->in[X]), w, packed_bias(b, n, group, ocg, all),
                  bind_last(b, n, n->out[0]), -1};
    if (!direct)
        args[4] = bind_scratch(b, ELEM_FLOAT, (size_t)p.col_bytes / sizeof(float));
    if (!bind_call(b, n, "qk_conv2d_nhwc_f32", &p, sizeof p, 5, args))
        return false;
    if (!direct)
        bind_more_rows(b, s, group, p.part, args[4]);
    /* Positions are unfolded before any is written; without, DIRECT_ROWS are written while they are
     * read. In several parts they are unfolded again after that. */
    if (group == 1 && (direct || p.part == icg * taps))
        bind_over(b, 0, lead_window(s, ELEM_FLOAT, ELEM_FLOAT, direct ? DIRECT_ROWS : 0));
    return true;
}

/* [ic][oc / group][taps] to [taps * oc / group / 16][ic / group][16], by groups, filled up with
 * zeros. */
static int columns_of_taps(Binder *b, const RowFloat *w, int32_t groups, int32_t ocg, int32_t icg,
                           int32_t taps) {
    int32_t all = padded(taps * ocg);
    size_t k = (size_t)icg, count = (size_t)groups * (size_t)all * k;
    float *out = NEW_ARRAY(binder_arena(b), float, count);
    for (int32_t i = 0; i < groups * icg; i++)
        for (int32_t j = 0; j < ocg; j++)
            for (int32_t t = 0; t < taps; t++) {
                size_t column = (size_t)(i / icg) * (size_t)all + (size_t)(t * ocg + j);
                out[column / BLOCK * BLOCK * k + (size_t)(i % icg) * BLOCK + column % BLOCK] = *w++;
            }
    return bind_made(b, ELEM_FLOAT, count, out, "weights, packed");
}

bool convtranspose_float_bind(Binder *b, const Node *n, const Spatial *s, int32_t group) {
    qk_convtranspose_nhwc_f32_params p = {WINDOW_PARAMS(s), .ic = s->ic, .oc = s->oc,
                                          .group = group};
    int w = columns_of_taps(b, floats_of(b, n->in[W]), group, s->oc / group, s->ic / group,
                            s->kh * s->kw);
    int args[] = {bind_last(b, n, n->in[X]), w, packed_bias(b, n, 1, s->oc, s->oc),
                  bind_last(b, n, n->out[0])};
    return bind_call(b, n, "qk_convtranspose_nhwc_f32", &p, sizeof p, 4, args);
}

bool conv_float_bind(Binder *b, const Node *n, const Spatial *s, int32_t group) {
    if (lines_pay(s, group))
        return bind_few(b, n, s);
    return is_depthwise(s, group) ? bind_depthwise(b, n, s) : bind_full(b, n, s, group);
}
