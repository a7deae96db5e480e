/* RNN, GRU and LSTM: x . W of all steps is one product, a kernel for each direction goes through
 * the steps. Opset 7 dropped output_sequence, 14 added layout, 22 types. Activations are those of
 * the defaults (Sigmoid, Tanh, Relu), in any place. */
#include "ir/ops/recurrent.h"

#include <strings.h>

#define RECUR_ATTRS                                                                                \
    A_FLOATS(RecurAttrs, activation_alpha), A_FLOATS(RecurAttrs, activation_beta),                 \
        A_STRS(RecurAttrs, activations), A_FLOAT(RecurAttrs, clip, 0.0f),                          \
        A_WORD(RecurAttrs, direction, "forward", "forward reverse bidirectional|foward"),          \
        A_INT(RecurAttrs, hidden_size, 0), A_INT(RecurAttrs, layout, 0)

static const AttrSpec rnn_attrs[] = {RECUR_ATTRS, A_END};
static const AttrSpec gru_attrs[] = {RECUR_ATTRS, A_FLAG(RecurAttrs, linear_before_reset, 0),
                                     A_END};
static const AttrSpec lstm_attrs[] = {RECUR_ATTRS, A_FLAG(RecurAttrs, input_forget, 0), A_END};

/* ---- shapes ---- */

Cell cell_of(const Node *n) {
    if (node_is(n, "LSTM"))
        return (Cell){4, 3, 3, {"Sigmoid", "Tanh", "Tanh"}};
    if (node_is(n, "GRU"))
        return (Cell){3, 2, 2, {"Sigmoid", "Tanh"}};
    return (Cell){1, 1, 2, {"Tanh"}};
}

int recur_directions(const RecurAttrs *a) {
    return str_is(a->direction, "bidirectional") ? 2 : 1;
}

/* The dimension at `at` of operand i, -1 where it is not known. */
static int64_t dim_at(const OpCtx *c, size_t i, int at) {
    Type t = op_type(c, i);
    return t.rank > at ? t.dims[at].value : -1;
}

static bool check_operand(const OpCtx *c, size_t i, int rank, const int64_t *want) {
    static const char *const names[] = {"X",         "W",         "R", "B", "sequence_lens",
                                        "initial_h", "initial_c", "P"};
    Type t = op_type(c, i);
    if (t.rank >= 0 && t.rank != rank)
        return op_error_in(c, i, "%s must have rank %d, not %d", names[i], rank, t.rank);
    for (int k = 0; k < rank && t.rank >= 0; k++)
        if (dim_differ(t.dims[k].value, want[k]))
            return op_error_in(c, i, "%s is %s; its dimension %d must be %lld", names[i],
                               type_text(c->arena, t), k, (long long)want[k]);
    return true;
}

static int64_t times(int64_t count, int64_t dim) {
    return dim < 0 ? -1 : dim_mul(count, dim);
}

static bool check_attrs(const OpCtx *c) {
    const RecurAttrs *a = c->attrs;
    size_t functions = (size_t)(cell_of(c->node).functions * recur_directions(a));
    if (a->layout != 0 && a->layout != 1)
        return op_error_attr(c, "layout", "layout is %lld, must be 0 or 1", (long long)a->layout);
    if (!(a->clip >= 0))
        return op_error_attr(c, "clip", "clip is %g, must not be negative", (double)a->clip);
    if (a->activations.n && a->activations.n != functions)
        return op_error_attr(c, "activations", "%zu activations; there must be %zu",
                             a->activations.n, functions);
    return true;
}

static bool verify(const OpCtx *c) {
    const RecurAttrs *a = c->attrs;
    int64_t dirs = recur_directions(a), gates = cell_of(c->node).gates, hidden = dim_at(c, R, 2);
    if (!check_attrs(c))
        return false;
    if (a->hidden_size > 0)
        hidden = a->hidden_size;
    int64_t batch = dim_at(c, X, a->layout ? 0 : 1), rows = times(gates, hidden);
    const int64_t x[] = {-1, -1, dim_at(c, W, 2)}, w[] = {dirs, rows, -1},
                  r[] = {dirs, rows, hidden}, bias[] = {dirs, times(2, rows)}, lens[] = {batch},
                  state[] = {a->layout ? batch : dirs, a->layout ? dirs : batch, hidden},
                  peep[] = {dirs, times(3, hidden)};
    return check_operand(c, X, 3, x) && check_operand(c, W, 3, w) && check_operand(c, R, 3, r) &&
           check_operand(c, BIAS, 2, bias) && check_operand(c, LENS, 1, lens) &&
           check_operand(c, H0, 3, state) && check_operand(c, C0, 3, state) &&
           check_operand(c, P, 2, peep);
}

static Type shape_of(const OpCtx *c, int rank, const Dim *dims) {
    ElemType e = op_type(c, X).kind == TYPE_TENSOR ? type_real_elem(op_type(c, X)) : ELEM_FLOAT;
    return type_tensor(e, rank, arena_copy(c->arena, dims, (size_t)rank * sizeof *dims));
}

static bool infer(OpCtx *c) {
    const RecurAttrs *a = c->attrs;
    Type x = op_type(c, X), r = op_type(c, R);
    Dim dirs = dim_of(recur_directions(a)), hidden = r.rank == 3 ? r.dims[2] : dim_unknown();
    if (hidden.value < 0 && a->hidden_size > 0)
        hidden = dim_of(a->hidden_size);
    if (x.kind != TYPE_TENSOR)
        return true;
    Dim steps = x.rank == 3 ? x.dims[a->layout ? 1 : 0] : dim_unknown();
    Dim batch = x.rank == 3 ? x.dims[a->layout ? 0 : 1] : dim_unknown();
    const Dim y[] = {steps, dirs, batch, hidden}, y_last[] = {batch, steps, dirs, hidden},
              state[] = {dirs, batch, hidden}, state_last[] = {batch, dirs, hidden};
    for (size_t i = 0; i < c->n_out; i++)
        c->out[i] = i == Y ? shape_of(c, 4, a->layout ? y_last : y)
                           : shape_of(c, 3, a->layout ? state_last : state);
    return true;
}

/* Of floats integer weights make integers of the state, with one scale for the whole batch. */
static bool mixes_batch(const OpCtx *c) {
    const Quant *x = op_quant(op_in(c, X));
    return (op_quant(op_in(c, W)) || op_quant(op_in(c, R))) && !(x && x->kind == QUANT_PARAMS);
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const RecurAttrs *a = c->attrs;
    bool batched = i == X || i == LENS || i == H0 || i == C0;
    int from = i == LENS || a->layout ? 0 : 1, to = a->layout ? 0 : result == Y ? 2 : 1;
    return batched && axis == from && !mixes_batch(c) ? to : -1;
}

/* ---- binding ---- */

#define STEPS_PARAMS(s, a)                                                                         \
    .steps = (s)->steps, .batch = (s)->batch, .hidden = (s)->hidden, .reverse = (s)->reverse,      \
    .direction = (s)->direction, .x_at = (s)->x_at, .x_t = (s)->x_t, .x_b = (s)->x_b,              \
    .y_at = (s)->y_at, .y_t = (s)->y_t, .y_b = (s)->y_b, .h_at = (s)->h_at, .h_b = (s)->h_b,       \
    .has_clip = (a)->clip > 0, .clip = (a)->clip

Steps recur_steps(const RecurAttrs *a, const Node *n, int direction) {
    Type x = n->in[X]->type;
    int64_t dirs = recur_directions(a), steps = x.dims[a->layout != 0].value, d = direction;
    int64_t batch = x.dims[a->layout == 0].value, hidden = n->in[R]->type.dims[2].value;
    int64_t row = n->in[W]->type.dims[1].value;
    bool last = a->layout != 0; /* steps after the batch */
    return (Steps){.steps = (int32_t)steps,
                   .batch = (int32_t)batch,
                   .hidden = (int32_t)hidden,
                   .gates = (int32_t)row,
                   .reverse = d == 1 || str_is(a->direction, "reverse"),
                   .direction = direction,
                   .x_at = d * steps * batch * row,
                   .x_t = last ? row : batch * row,
                   .x_b = last ? steps * row : row,
                   .y_at = d * (last ? hidden : batch * hidden),
                   .y_t = last ? dirs * hidden : dirs * batch * hidden,
                   .y_b = last ? steps * dirs * hidden : hidden,
                   .h_at = d * (last ? hidden : batch * hidden),
                   .h_b = last ? dirs * hidden : hidden};
}

Str recur_functions(const Node *n, const RecurAttrs *a, int direction, int32_t which[3]) {
    static const char *const known[] = {"Sigmoid", "Tanh", "Relu"};
    Cell cell = cell_of(n);
    Str unknown = STR_NONE;
    for (int i = 0; i < cell.functions; i++) {
        Str name = a->activations.n ? a->activations.v[direction * cell.functions + i]
                                    : str_from(cell.defaults[i]);
        which[i] = -1;
        for (int k = 0; k < 3; k++)
            if (name.n == strlen(known[k]) && strncasecmp(name.s, known[k], name.n) == 0)
                which[i] = k;
        if (which[i] < 0)
            unknown = name;
    }
    return unknown;
}

/* The numbers of the functions of one direction; false after saying which is not known. */
static bool functions_of(Binder *b, const Node *n, const RecurAttrs *a, int direction,
                         int32_t which[3]) {
    Str unknown = recur_functions(n, a, direction, which);
    return !unknown.s ||
           bind_unsupported(b, n, "activation %s has no kernel; Sigmoid, Tanh and Relu have",
                            diag_name(binder_diags(b), unknown));
}

/* x . W of all steps and directions: [rows of x, directions, gates]. */
static bool bind_gates(Binder *b, const Node *n, int dirs, const Steps *s, int to) {
    int32_t len = (int32_t)n->in[W]->type.dims[2].value;
    qk_matmul_f32_params p = {.m = s->steps * s->batch,
                              .n = dirs * s->gates,
                              .k = len,
                              .am = len,
                              .ak = 1,
                              .bk = 1,
                              .bn = len,
                              .alpha = 1,
                              .beta = 1};
    int args[] = {bind_value(b, n->in[X]), bind_value(b, n->in[W]), -1, to};
    return bind_matmul(b, n, &p, args);
}

/* Where the gates of a direction are then. */
static void beside(Steps *s, int dirs) {
    s->x_at = (int64_t)s->direction * s->gates;
    s->x_t *= dirs;
    s->x_b *= dirs;
}

/* The same on integers, rows of x that DynamicQuantizeLinear made by those of W:
 * [directions, rows of x, gates]. */
static bool bind_gates_dynamic(Binder *b, const Node *n, int dirs, const Steps *s, int to) {
    for (int d = 0; d < dirs; d++) {
        Projection p = {.rows = s->steps * s->batch,
                        .columns = s->gates,
                        .len = (int32_t)n->in[W]->type.dims[2].value,
                        .part = d,
                        .parts = dirs,
                        .weights = bind_value(b, n->in[W])};
        if (!bind_projection(b, n, &p, n->in[X], n->in[W], -1, to))
            return false;
    }
    return true;
}

/* R in blocks of columns (kernels/recurrent/recur_pack.qk): at once, where it is constant. */
static int packed_state(Binder *b, const Node *n, const Steps *s) {
    int from = bind_value(b, n->in[R]);
    int32_t gates = recur_directions(n->typed) * cell_of(n).gates;
    qk_recur_pack_params p = {gates, s->hidden, s->hidden};
    size_t count = (size_t)p.count * (((size_t)p.n + 15) / 16 * 16) * (size_t)p.len;
    const Buffer *r = bind_buffer(b, from);
    if (r->kind == BUF_CONST && r->data) {
        float *out = NEW_ARRAY(binder_arena(b), float, count);
        kernel_invoke(kernel_find("qk_recur_pack"), &p,
                      (void *[]){(void *)(uintptr_t)bind_data(b, from), out});
        return bind_made(b, ELEM_FLOAT, count, out, "weights of the state, in blocks of columns");
    }
    int to = bind_temp(b, ELEM_FLOAT, count);
    bind_call(b, n, "qk_recur_pack", &p, sizeof p, 2, (int[]){from, to});
    return to;
}

static int operand(Binder *b, const OpCtx *c, size_t i) {
    return bind_value(b, op_in(c, i));
}

static int result(Binder *b, const Node *n, size_t i) {
    return i < n->n_out ? bind_value(b, n->out[i]) : -1;
}

static bool bind_lstm(Binder *b, const Node *n, const OpCtx *c, const Steps *s, const int32_t *f,
                      int state, int gates) {
    const RecurAttrs *a = c->attrs;
    const Value *r = n->in[R];
    ElemType e = bind_elem(r);
    int args[CALL_MAX_ARGS], k = 0;
    qk_lstm_params p = {STEPS_PARAMS(s, a), f[0], f[1], f[2], a->input_forget != 0};
    args[k++] = state;
    if (op_quant(r))
        bind_row_params(b, r, (size_t)(recur_directions(a) * s->gates), &args[k], &args[k + 1]);
    k += op_quant(r) ? 2 : 0;
    for (size_t i = 0; i < 5; i++)
        args[k++] = operand(b, c, ((const size_t[]){BIAS, P, H0, C0, LENS})[i]);
    for (size_t i = Y; i <= Y_C; i++)
        args[k++] = result(b, n, i);
    args[k++] = gates; /* which the kernel uses up: it is none of its results, so behind them */
    if (op_quant(r)) {
        args[k++] = bind_scratch(b, ELEM_FLOAT, (size_t)s->batch * (size_t)s->hidden);
        args[k++] = bind_scratch(b, ELEM_INT16, (size_t)s->batch * (size_t)s->hidden);
    }
    return bind_call(b, n, bind_kernel(b, "lstm", 1, &e), &p, sizeof p, k, args);
}

/* An LSTM whose input, W and R are as DynamicQuantizeLSTM has them. */
static bool is_dynamic(const Node *n) {
    const Quant *x = op_quant(n->in[X]);
    return node_is(n, "LSTM") && x && x->kind == QUANT_DYNAMIC &&
           bind_projects(n->in[W], n->in[W]->type.dims[2].value) &&
           bind_projects(n->in[R], n->in[R]->type.dims[2].value);
}

/* `state`: the weights of the state, of all directions. */
static bool bind_direction(Binder *b, const Node *n, const OpCtx *c, int direction, int state,
                           int gates) {
    const RecurAttrs *a = c->attrs;
    Steps s = recur_steps(a, n, direction);
    int32_t f[3];
    if (!is_dynamic(n))
        beside(&s, recur_directions(a));
    if (!functions_of(b, n, a, direction, f))
        return false;
    if (node_is(n, "LSTM"))
        return bind_lstm(b, n, c, &s, f, state, gates);
    int args[8] = {state,
                   operand(b, c, BIAS),
                   operand(b, c, H0),
                   operand(b, c, LENS),
                   result(b, n, Y),
                   result(b, n, Y_H),
                   gates};
    if (node_is(n, "GRU")) {
        qk_gru_f32_params p = {STEPS_PARAMS(&s, a), f[0], f[1], a->linear_before_reset != 0};
        args[7] = bind_scratch(b, ELEM_FLOAT, (size_t)s.hidden);
        return bind_call(b, n, "qk_gru_f32", &p, sizeof p, 8, args);
    }
    qk_rnn_f32_params p = {STEPS_PARAMS(&s, a), f[0]};
    return bind_call(b, n, "qk_rnn_f32", &p, sizeof p, 7, args);
}

/* X and a result are integers of known parameters. */
static bool on_integers(const Node *n) {
    const Quant *x = op_quant(n->in[X]);
    bool any = false;
    for (size_t i = 0; i < n->n_out; i++)
        any = any || (n->out[i] && op_quant(n->out[i]));
    return x && x->kind == QUANT_PARAMS && any;
}

static bool floats(Binder *b, const Node *n) {
    for (size_t i = is_dynamic(n) ? BIAS : X; i < n->n_in; i++)
        if (n->in[i] && i != LENS && (n->in[i]->type.elem != ELEM_FLOAT || op_quant(n->in[i])))
            return bind_unsupported(b, n, "operand %zu is %s; only float has a kernel", i,
                                    op_quant(n->in[i]) ? "quantized"
                                                       : elem_name(n->in[i]->type.elem));
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const RecurAttrs *a = c->attrs;
    int dirs = recur_directions(a);
    Steps s = recur_steps(a, n, 0);
    if (on_integers(n))
        return recur_bind_integers(b, n, c);
    int64_t rows = dim_mul(s.steps, s.batch), count = dim_mul(dim_mul(dirs, rows), s.gates);
    if (!floats(b, n))
        return false;
    if (count > INT32_MAX)
        return bind_unsupported(b, n, "its gates are more than 2^31 numbers");
    int gates = bind_temp(b, ELEM_FLOAT, (size_t)count);
    int64_t terms = n->in[W]->type.dims[2].value + s.hidden;
    bind_macs(b, dim_mul(count, terms));
    if (!(is_dynamic(n) ? bind_gates_dynamic : bind_gates)(b, n, dirs, &s, gates))
        return false;
    int state = is_dynamic(n) ? bind_value(b, n->in[R]) : packed_state(b, n, &s);
    for (int d = 0; d < dirs; d++)
        if (!bind_direction(b, n, c, d, state, gates))
            return false;
    bind_within(b, op_in(c, LENS), false, (int32_t[]){s.steps + 1}, 1);
    return true;
}

/* com.microsoft DynamicQuantizeLSTM has W and R transposed, and one scale a direction. */
static bool lstm_applies(const OpCtx *c, const char **why) {
    const RecurAttrs *a = c->attrs;
    *why = "DynamicQuantizeLSTM has no layout 1";
    return a->layout == 0;
}

#define LSTM_DYNAMIC                                                                               \
    .dynamic = {.op = "DynamicQuantizeLSTM",                                                       \
                .operands = "0 1 2 3 4 5 6 7 1s 1z 2s 2z",                                         \
                .weights = 1u << W | 1u << R,                                                      \
                .transposed = true,                                                                \
                .applies = lstm_applies}

#define RECURRENT(op, specs, ...)                                                                  \
    const OpDef op_##op = {                                                                        \
        .domain = "",                                                                              \
        .name = #op,                                                                               \
        .family = FAMILY_SEQUENCE,                                                                 \
        .attrs_size = sizeof(RecurAttrs),                                                          \
        .attrs = (specs),                                                                          \
        .verify = verify,                                                                          \
        .infer = infer,                                                                            \
        .slices = slices,                                                                          \
        .quant = {.kind = QUANT_COMPUTE,                                                           \
                  .data = 1u << X | 1u << H0 | 1u << C0,                                           \
                  .mac.bias = BIAS,                                                                \
                  .all_results = true,                                                             \
                  .prefers_float = "runtimes have no integer kernel for it (-weight-only stores "  \
                                   "its weights as integers)",                                     \
                  .integer_refusal = recur_integer_refusal,                                        \
                  .stores.operands = 1u << W | 1u << R,                                            \
                  .stores.axis = 1,                                                                \
                  .stores.summed = 2},                                                             \
        .bind = bind,                                                                              \
        __VA_ARGS__};

RECURRENT(RNN, rnn_attrs, )
RECURRENT(GRU, gru_attrs, )
RECURRENT(LSTM, lstm_attrs, LSTM_DYNAMIC)
