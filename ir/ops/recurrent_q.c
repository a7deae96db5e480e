/* RNN, GRU and LSTM on integers (kernels/recurrent). What they compute
 * is the real operator of the numbers that operands stand for: the state stays in fixed point of 32
 * bits from step to step, 16 of which meet R, and a result is rounded once. Sums of x . W and of h
 * . R become fixed point of 24 bits behind the point by a multiplier for each row, where bias, zero
 * point and peepholes are added; Sigmoid and Tanh come from one table. */
#include "ir/ops/recurrent.h"

#include <math.h>

enum {
    GATE_BITS = 24,  /* behind the point of what a function is taken of */
    STATE_BITS = 30, /* of h, less those before the point */
    CELL_BITS = 20,  /* of c and peepholes */
    PRODUCT_BITS = 15,
    MOST_STATE_BITS = 5, /* initial_h may reach up to 2^5, as one that shares the grid of a cell:
                          * more would leave too few bits behind */
};

static const double MOST_CELL = 1 << 11;

/* ---- what has no integer kernel ---- */

static const char *weights_refusal(const Value *w) {
    const Quant *q = w ? w->type.quant : NULL;
    if (!w || !value_data(w))
        return "its weights are no constants";
    if (!q)
        return NULL; /* not yet chosen */
    if (q->kind != QUANT_PARAMS || elem_bits(q->storage) > 8 || !elem_is_signed(q->storage) ||
        !quant_zp_all_zero(q))
        return "its integer kernels take weights of up to 8 signed bits with zero point 0";
    bool rows = q->n_axes == 0 || (q->n_axes == 1 && q->axis[0] <= 1) ||
                (q->n_axes == 2 && q->axis[0] == 0 && q->axis[1] == 1);
    for (int i = 0; i < q->n_axes; i++)
        rows = rows && q->block[i] <= 1;
    return rows ? NULL : "its weights are quantized along an axis that it sums over";
}

static const char *functions_refusal(const Node *n, const RecurAttrs *a) {
    int32_t f[3];
    for (int d = 0; d < recur_directions(a); d++) {
        recur_functions(n, a, d, f);
        for (int i = 0; i < cell_of(n).functions; i++)
            if (f[i] != RECUR_SIGMOID && f[i] != RECUR_TANH)
                return "its integer kernels have Sigmoid and Tanh alone";
        if (node_is(n, "GRU") && f[0] != RECUR_SIGMOID)
            return "its integer kernel takes Sigmoid alone for gates";
    }
    return NULL;
}

/* The largest number of a constant; where its integers are still to come, rounding may add half a
 * step. */
static double reach_of_constant(const Value *v, const Tensor *t) {
    double most = 0;
    for (size_t i = 0; i < t->count; i++)
        most = fmax(most, fabs(op_real(v, i)));
    bool rounded = op_quant(v) != NULL || !v->type.quant;
    return rounded ? most : most + fabs((double)quant_scale(v->type.quant, 0)) / 2;
}

static double reach_of_type(const Quant *q) {
    if (!q || !quant_plain(q))
        return NAN;
    double zp = (double)quant_zp(q, 0), scale = fabs((double)quant_scale(q, 0));
    return fmax(zp - (double)quant_lo(q), (double)quant_hi(q) - zp) * scale;
}

static bool only_moves(const Node *n) {
    const QuantRule *r = n && n->def ? &n->def->quant : NULL;
    return r && !r->move.interpolates && !r->move.fills_anew && !r->move.fill &&
           (r->kind == QUANT_MOVE || (r->kind == QUANT_JOIN && !r->selects && !r->exceeds));
}

/* The largest number that `v` can be, NaN where it is not known. Of numbers that are only moved and
 * joined it is that of what they were: exporters make a first state of zeros by Expand, Unsqueeze
 * and Concat. */
static double reach_within(const Value *v, int moves) {
    enum { MOST_MOVES = 8 };
    const Tensor *t = value_data(v);
    if (t && t->data)
        return reach_of_constant(v, t);
    double most = 0;
    bool moved = moves < MOST_MOVES && only_moves(v->def);
    for (size_t i = 0; moved && i < v->def->n_in; i++) {
        if (!v->def->in[i] || !quant_rule_is_data(&v->def->def->quant, i))
            continue;
        double x = reach_within(v->def->in[i], moves + 1);
        moved = !isnan(x);
        most = fmax(most, x);
    }
    return moved ? most : reach_of_type(v->type.quant);
}

/* The same, 0 where it is not there or not known. */
static double reach(const Value *v) {
    double most = v ? reach_within(v, 0) : 0;
    return isnan(most) ? 0 : most;
}

/* A state that holds what `v` may be: how many bits more than a number up to 1 needs; more than
 * MOST_STATE_BITS where that is too many. */
static int bits_before_point(const Value *v) {
    int bits = 0;
    double most = reach(v);
    while (bits <= MOST_STATE_BITS && most > ldexp(1, bits))
        bits++;
    return bits;
}

const char *recur_integer_refusal(const OpCtx *c, const Quant *x) {
    const char *why = functions_refusal(c->node, c->attrs);
    const Value *bias = op_in(c, BIAS), *peep = op_in(c, P);
    if (!why)
        why = weights_refusal(op_in(c, W));
    if (!why)
        why = weights_refusal(op_in(c, R));
    if (!why && ((bias && !value_data(bias)) || (peep && !value_data(peep))))
        why = "its bias or peepholes are no constants";
    if (!why && x && elem_bits(x->storage) > 16)
        why = "its integer kernels take up to 16 bits";
    if (!why && bias && op_quant(bias) && !quant_plain(op_quant(bias)))
        why = "its bias has parameters along an axis";
    if (!why && bits_before_point(op_in(c, H0)) > MOST_STATE_BITS)
        why = "initial_h may be beyond 32, its integer kernels keep a state near 1";
    if (!why && reach(op_in(c, C0)) > MOST_CELL)
        why = "initial_c may be beyond 2048, its integer kernel saturates there";
    return why;
}

/* A result without parameters that nobody reads is none: exporters name all. */
static bool is_asked(const Node *n, size_t i) {
    const Use *use;
    return n->n_out > i && n->out[i] &&
           (op_quant(n->out[i]) || uses_of(uses_new(n->graph->module), n->out[i], &use));
}

static bool supported(Binder *b, const Node *n, const OpCtx *c) {
    static const size_t data[] = {X, H0, C0};
    const char *why = recur_integer_refusal(c, op_quant(n->in[X]));
    for (size_t i = 0; i < 3 && !why; i++) {
        const Value *v = op_in(c, data[i]);
        if (v && !quant_plain(op_quant(v)))
            why = "an operand is float or has no parameters of its own";
    }
    for (size_t i = 0; i < n->n_out && !why; i++)
        if (is_asked(n, i) && !quant_plain(op_quant(n->out[i])))
            why = "a result is float or has no parameters of its own";
    if (!why && (!op_quant(n->in[W]) || !op_quant(n->in[R])))
        why = "its weights are float";
    return !why || bind_unsupported(b, n, "%s", why);
}

/* ---- fixed point ---- */

/* m * 2^*shift as an integer that a factor below 2^bits takes to at most 2^62. */
static int64_t fixed(double m, int bits, int32_t *shift) {
    int e = 0;
    frexp(m, &e);
    int s = 62 - bits - e;
    *shift = s < 0 ? 0 : s > 61 ? 61 : s;
    double most = ldexp(1, 62 - bits), v = ldexp(m, *shift);
    return llrint(fmax(-most, fmin(v, most)));
}

/* Of row `row` of all directions' `count`. */
static double row_scale(const Quant *q, size_t row, size_t count, size_t directions) {
    size_t rows = count / directions;
    size_t k = q->n_axes == 0 ? 0 : q->n_axes == 2 ? row : q->axis[0] ? row % rows : row / rows;
    return (double)quant_scale(q, k);
}

/* What one of the two products needs, a number for each row of each direction. */
typedef struct Rows {
    size_t n;
    double *scale;  /* of a sum, 2^GATE_BITS times */
    int64_t *total; /* of the weights */
    int table;      /* the buffer of multipliers */
    int32_t shift;
} Rows;

/* `factor` is the scale of what meets the weights, which is at most `most`. */
static bool rows_of(Binder *b, const Node *n, const Value *w, double factor, double most,
                    const char *what, Rows *r) {
    Arena *a = binder_arena(b);
    const Tensor *t = value_data(w);
    size_t dirs = (size_t)w->type.dims[0].value, len = (size_t)w->type.dims[2].value;
    int least = 62, e = 0;
    *r = (Rows){.n = dirs * (size_t)w->type.dims[1].value};
    r->scale = NEW_ARRAY(a, double, r->n);
    r->total = NEW_ARRAY(a, int64_t, r->n);
    int32_t *m = NEW_ARRAY(a, int32_t, r->n);
    for (size_t i = 0; i < r->n; i++) {
        double sum = 0;
        for (size_t k = 0; k < len; k++) {
            r->total[i] += tensor_int(t, i * len + k);
            sum += fabs((double)tensor_int(t, i * len + k)) * most;
        }
        r->scale[i] = ldexp(factor * row_scale(op_quant(w), i, r->n, dirs), GATE_BITS);
        frexp(r->scale[i], &e);
        least = 30 - e < least ? 30 - e : least;
        frexp(r->scale[i] * sum, &e);
        least = 61 - e < least ? 61 - e : least;
    }
    if (least < 0)
        return bind_unsupported(b, n, "its scales are too large for fixed point");
    for (size_t i = 0; i < r->n; i++)
        m[i] = (int32_t)llrint(ldexp(r->scale[i], least));
    r->shift = least;
    r->table = bind_const(b, ELEM_INT32, r->n, m, what);
    return true;
}

/* 2^GATE_BITS times bias of W and R, what the zero point of X adds to the sums taken away; -1 after
 * saying why not. GRU has those of R's last part behind, where they are added on their own. */
static int bias_of(Binder *b, const Node *n, const OpCtx *c, const Rows *w) {
    const RecurAttrs *a = c->attrs;
    const Value *bias = op_in(c, BIAS);
    const Quant *x = op_quant(n->in[X]);
    size_t dirs = (size_t)recur_directions(a), rows = w->n / dirs, part = 0;
    if (node_is(n, "GRU"))
        part = rows / 3;
    int64_t *to = NEW_ARRAY(binder_arena(b), int64_t, dirs *(rows + part));
    for (size_t d = 0; d < dirs; d++)
        for (size_t i = 0; i < rows + part; i++) {
            bool alone = part && a->linear_before_reset && i >= rows - part, last = i >= rows;
            size_t row = last ? i - part : i, at = d * 2 * rows + row;
            double v = 0;
            if (bias && !last)
                v = op_real(bias, at) + (alone ? 0 : op_real(bias, at + rows));
            else if (bias && alone)
                v = op_real(bias, at + rows);
            v = ldexp(v, GATE_BITS);
            if (!last)
                v -= w->scale[d * rows + row] * (double)w->total[d * rows + row] *
                     (double)quant_zp(x, 0);
            if (!(fabs(v) < 0x1p61)) {
                bind_unsupported(b, n, "its bias is too large for fixed point");
                return -1;
            }
            to[d * (rows + part) + i] = llrint(v);
        }
    return bind_const(b, ELEM_INT64, dirs * (rows + part), to, "bias in fixed point");
}

/* 2^CELL_BITS times P; -1 without one. */
static bool peepholes(Binder *b, const Node *n, const Value *p, int *to) {
    size_t count = p ? value_data(p)->count : 0;
    int32_t *table = NEW_ARRAY(binder_arena(b), int32_t, count);
    for (size_t i = 0; i < count; i++) {
        double v = op_real(p, i);
        if (!(fabs(v) < MOST_CELL))
            return bind_unsupported(b, n, "its peepholes are too large for fixed point");
        table[i] = (int32_t)llrint(ldexp(v, CELL_BITS));
    }
    *to = p ? bind_const(b, ELEM_INT32, count, table, "peepholes in fixed point") : -1;
    return true;
}

/* ---- states ---- */

/* A state of all directions with `bits` behind the point, made from `v` where it is given. */
static bool state_from(Binder *b, const Node *n, const Value *v, int bits, size_t count, int *to) {
    *to = bind_temp(b, ELEM_INT32, count);
    if (!v)
        return true;
    ElemType e = bind_elem(v);
    qk_to_fixed_params p = {.n = (int64_t)count, .xz = quant_zero(op_quant(v))};
    p.m = fixed(ldexp((double)quant_scale(op_quant(v), 0), bits), 17, &p.shift);
    return bind_call(b, n, bind_kernel(b, "to_fixed", 1, &e), &p, sizeof p, 2,
                     (int[]){bind_value(b, v), *to});
}

static bool state_to(Binder *b, const Node *n, int from, int bits, size_t count, const Value *y) {
    if (!y)
        return true;
    ElemType e = bind_elem(y);
    const Quant *q = op_quant(y);
    qk_from_fixed_params p = {.n = (int64_t)count, RESULT_PARAMS(q)};
    p.m = fixed(ldexp(1 / (double)quant_scale(q, 0), -bits), 31, &p.shift);
    return bind_call(b, n, bind_kernel(b, "from_fixed", 1, &e), &p, sizeof p, 2,
                     (int[]){from, bind_value(b, y)});
}

/* ---- kernels ---- */

typedef struct Bound {
    Binder *b;
    const Node *n;
    const OpCtx *c;
    Rows w, r;
    int bias, peep, h, cell; /* buffers */
    int h_bits;
} Bound;

/* What the params of all three kernels call the same. */
#define INTEGER_PARAMS(s, x, q)                                                                    \
    .steps = (s)->steps, .batch = (s)->batch, .size = (q)->size, .hidden = (s)->hidden,            \
    .reverse = (s)->reverse, .direction = (s)->direction, .x_shift = (x)->w.shift,                 \
    .h_shift = (x)->r.shift, .h_bits = (x)->h_bits, .given_h = op_in((x)->c, H0) != NULL,          \
    .shift = (q)->shift, .yz = (q)->yz, .lo = (q)->lo, .hi = (q)->hi, .m = (q)->m,                 \
    .x_t = (s)->x_t / (s)->gates * (q)->size, .x_b = (s)->x_b / (s)->gates * (q)->size,            \
    .y_at = (s)->y_at, .y_t = (s)->y_t, .y_b = (s)->y_b, .h_at = (s)->h_at, .h_b = (s)->h_b,       \
    .clip = (q)->clip

/* How Y is made of the state, and what else depends on no direction. */
typedef struct Out {
    int32_t size, shift, yz, lo, hi;
    int64_t m, clip;
} Out;

static Out out_of(const Bound *x) {
    const RecurAttrs *a = x->c->attrs;
    Out q = {.size = (int32_t)x->n->in[W]->type.dims[2].value, .clip = INT32_MAX};
    if (a->clip > 0)
        q.clip = llrint(fmin(ldexp((double)a->clip, GATE_BITS), INT32_MAX));
    if (!is_asked(x->n, Y))
        return q;
    const Quant *y = op_quant(x->n->out[Y]);
    q.m = fixed(ldexp(1 / (double)quant_scale(y, 0), x->h_bits - STATE_BITS), 31, &q.shift);
    q.yz = quant_zero(y);
    quant_range(y, &q.lo, &q.hi);
    return q;
}

static bool bind_direction(const Bound *x, int direction) {
    Binder *b = x->b;
    const Node *n = x->n;
    const RecurAttrs *a = x->c->attrs;
    const Value *y = is_asked(n, Y) ? n->out[Y] : NULL;
    ElemType types[] = {bind_elem(n->in[X]), bind_elem(y ? y : n->in[X])};
    Steps s = recur_steps(a, n, direction);
    Out q = out_of(x);
    int32_t f[3];
    recur_functions(n, a, direction, f);
    int args[CALL_MAX_ARGS] = {bind_value(b, n->in[X]),
                               bind_value(b, n->in[W]),
                               bind_value(b, n->in[R]),
                               x->w.table,
                               x->r.table,
                               x->bias};
    int k = 6, narrow = bind_scratch(b, ELEM_INT16,
                                     (size_t)(node_is(n, "GRU") ? 2 : 1) * (size_t)s.hidden);
    if (node_is(n, "LSTM"))
        args[k++] = x->peep;
    args[k++] = bind_value(b, op_in(x->c, LENS));
    args[k++] = x->h;
    if (node_is(n, "LSTM"))
        args[k++] = x->cell;
    args[k++] = narrow;
    args[k++] = y ? bind_value(b, y) : -1;
    if (node_is(n, "LSTM")) {
        qk_lstm_q_params p = {INTEGER_PARAMS(&s, x, &q),
                              .given_c = op_in(x->c, C0) != NULL,
                              .f = f[0],
                              .g = f[1],
                              .h = f[2],
                              .input_forget = a->input_forget != 0};
        return bind_call(b, n, bind_kernel(b, "lstm_q", 2, types), &p, sizeof p, k, args);
    }
    if (node_is(n, "GRU")) {
        qk_gru_q_params p = {INTEGER_PARAMS(&s, x, &q), .g = f[1],
                             .linear_before_reset = a->linear_before_reset != 0};
        return bind_call(b, n, bind_kernel(b, "gru_q", 2, types), &p, sizeof p, k, args);
    }
    qk_rnn_q_params p = {INTEGER_PARAMS(&s, x, &q), .f = f[0]};
    return bind_call(b, n, bind_kernel(b, "rnn_q", 2, types), &p, sizeof p, k, args);
}

/* What the state's fixed point may be off by, and from how many steps of a result on that is told.
 */
enum { ERROR_BITS = 15 };
static const double TOLD_STEPS = 4;

static void warn_of_fine_steps(Binder *b, const Node *n, int h_bits) {
    int bits = ERROR_BITS - h_bits;
    for (size_t i = 0; i < n->n_out; i++) {
        const Quant *q = n->out[i] ? op_quant(n->out[i]) : NULL;
        double step = q ? fabs((double)quant_scale(q, 0)) : 1;
        if (step * TOLD_STEPS < ldexp(1, -bits))
            diag_warning(binder_diags(b), n->loc,
                         "%s: '%s' has steps of %g, its integer form is exact to about 2^-%d: "
                         "results are off by up to %.0f steps; give it a coarser scale, or keep "
                         "the layer float",
                         node_text(n), diag_name(binder_diags(b), n->out[i]->name), step, bits,
                         ldexp(1, -bits) / step);
    }
}

bool recur_bind_integers(Binder *b, const Node *n, const OpCtx *c) {
    const RecurAttrs *a = c->attrs;
    if (!supported(b, n, c))
        return false;
    Bound x = {.b = b, .n = n, .c = c, .h_bits = bits_before_point(op_in(c, H0))};
    warn_of_fine_steps(b, n, x.h_bits);
    const Quant *q = op_quant(n->in[X]);
    double most = fmax(fabs((double)quant_lo(q)), fabs((double)quant_hi(q)));
    double sx = (double)quant_scale(q, 0), sh = ldexp(1, x.h_bits - PRODUCT_BITS);
    int dirs = recur_directions(a), h_bits = STATE_BITS - x.h_bits;
    Steps s = recur_steps(a, n, 0);
    size_t count = (size_t)dirs * (size_t)s.batch * (size_t)s.hidden;
    if (!rows_of(b, n, n->in[W], sx, most, "multipliers of x . W", &x.w) ||
        !rows_of(b, n, n->in[R], sh, INT16_MAX, "multipliers of h . R", &x.r) ||
        (x.bias = bias_of(b, n, c, &x.w)) < 0 || !peepholes(b, n, op_in(c, P), &x.peep) ||
        !state_from(b, n, op_in(c, H0), h_bits, count, &x.h))
        return false;
    bool cell = node_is(n, "LSTM");
    if (cell && !state_from(b, n, op_in(c, C0), CELL_BITS, count, &x.cell))
        return false;
    int64_t terms = n->in[W]->type.dims[2].value + s.hidden;
    bind_macs(b, dim_mul(dim_mul((int64_t)count, s.steps), dim_mul(cell_of(n).gates, terms)));
    for (int d = 0; d < dirs; d++)
        if (!bind_direction(&x, d))
            return false;
    bind_within(b, op_in(c, LENS), false, (int32_t[]){s.steps + 1}, 1);
    return state_to(b, n, x.h, h_bits, count, is_asked(n, Y_H) ? n->out[Y_H] : NULL) &&
           (!cell ||
            state_to(b, n, x.cell, CELL_BITS, count, is_asked(n, Y_C) ? n->out[Y_C] : NULL));
}
