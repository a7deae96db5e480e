/* What binding RNN, GRU and LSTM on floats (recurrent.c) and on integers (recurrent_q.c) share.
 * Nothing is owned; functions without a Binder cannot fail. Shapes are static where steps are asked
 * for. */
#ifndef QXC_IR_OPS_RECURRENT_H
#define QXC_IR_OPS_RECURRENT_H

#include "ir/ops/bind.h"

/* Operands of all three; initial_c and P are LSTM's. */
enum { X, W, R, BIAS, LENS, H0, C0, P };
enum { Y, Y_H, Y_C };

typedef struct RecurAttrs {
    Floats activation_alpha, activation_beta;
    Strs activations;
    float clip;
    Str direction;
    int64_t hidden_size, layout, linear_before_reset, input_forget;
} RecurAttrs;

/* What the three differ in. */
typedef struct Cell {
    int gates, functions, results;
    const char *defaults[3]; /* activations */
} Cell;
Cell cell_of(const Node *n);
int recur_directions(const RecurAttrs *a);

/* Functions of gates, as qk_gate and qk_recur_curve number them. */
enum { RECUR_SIGMOID, RECUR_TANH, RECUR_RELU };
/* Those of one direction, -1 for what has no kernel; and that one's name. */
Str recur_functions(const Node *n, const RecurAttrs *a, int direction, int32_t which[3]);

/* The params that all kernels have, of one direction. */
typedef struct Steps {
    int32_t steps, batch, hidden, gates, reverse, direction;
    int64_t x_at, x_t, x_b, y_at, y_t, y_b, h_at, h_b; /* x: of the gates */
} Steps;
Steps recur_steps(const RecurAttrs *a, const Node *n, int direction);

/* On integers: operands and results are quantized, W and R constants. */
bool recur_bind_integers(Binder *b, const Node *n, const OpCtx *c);
/* QuantRule.integer_refusal. */
const char *recur_integer_refusal(const OpCtx *c, const Quant *x);

#endif
