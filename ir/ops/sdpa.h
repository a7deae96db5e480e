/* What Attention of opset 23 (sdpa.c) and its form on integers (sdpa_integer.c) share. */
#ifndef QXC_IR_OPS_SDPA_H
#define QXC_IR_OPS_SDPA_H

#include "ir/ops/bind.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, LENS }; /* operands */
enum { Y, PRESENT_K, PRESENT_V, SCORES };     /* results */

typedef struct SdpaAttrs {
    int64_t is_causal, q_num_heads, kv_num_heads, qk_matmul_output_mode, softmax_precision;
    int64_t left_window_size, right_window_size;
    float scale, softcap;
} SdpaAttrs;

/* Strides as operands have them: but for keys and values of the past, and a mask. */
qk_sdpa_f32_params sdpa_params(const Node *n, const OpCtx *c);
void sdpa_mask_strides(Type t, qk_sdpa_f32_params *p);

/* Where keys (i = K) or values go out with those of the past; NULL: they do not. */
const Value *sdpa_present(const Node *n, size_t i);
/* Writes keys (i = K) or values `now` behind those of the past, where there are any, to `to`. */
bool sdpa_join(Binder *b, const Node *n, const OpCtx *c, size_t i, int old, int now, int to);

/* QuantRule.integer_refusal. */
const char *sdpa_refusal(const OpCtx *c, const Quant *x);
bool sdpa_bind_integers(Binder *b, const Node *n, const OpCtx *c);

#endif
