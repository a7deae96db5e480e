/* QONNX's MultiThreshold: out_scale * (how many thresholds x reaches) + out_bias.
 *
 * Its results are integers k to k + n of the scale out_scale, where k = out_bias / out_scale is
 * one. With equally spaced thresholds, halfway between those integers, it is what Q and DQ are: x
 * lies beyond as many thresholds as rounding it counts. They differ only where x is a threshold:
 * there MultiThreshold rounds up and types to even, so that a warning tells unless the thresholds
 * are those of rounding to even. With other thresholds (a BatchNormalization that went into them)
 * the operator stays, and a conversion to integers and back behind it, which changes nothing, says
 * the type. */
#include <math.h>

#include "ir/ops/op.h"
#include "passes/edit.h"
#include "passes/raise/raise_qonnx.h"

typedef struct Steps {
    const Tensor *t;
    float scale, bias;
    int64_t rows, n, first; /* thresholds; the integer below the first one */
} Steps;

static bool read(const Node *n, Steps *k) {
    const Tensor *t = node_input(n, 1) ? value_data(n->in[1]) : NULL;
    *k = (Steps){
        .t = t, .scale = node_float(n, "out_scale", 1), .bias = node_float(n, "out_bias", 0)};
    if (!t || !t->data || !elem_is_float(t->elem) || t->rank != 2 || !t->count)
        return false;
    k->rows = t->dims[0];
    k->n = t->dims[1];
    return isnormal(k->scale) && k->scale > 0;
}

/* Whether all results are integers of the scale, 0 among them. */
static bool on_grid(Steps *k) {
    float first = rintf(k->bias / k->scale);
    if (!(fabsf(first) <= 65536) || k->n > 65536 || first * k->scale != k->bias)
        return false;
    k->first = (int64_t)first;
    return k->first <= 0 && k->first + k->n >= 0;
}

static double threshold(const Steps *k, int64_t row, int64_t i) {
    return tensor_float(k->t, (size_t)(row * k->n + i));
}

/* How threshold i of a row stands to where rounding steps to the integer first + i + 1. */
typedef enum Fit { ELSEWHERE, ON_A_TIE, EXACT } Fit;

static Fit fit(const Steps *k, int64_t row, int64_t i) {
    float t = (float)threshold(k, row, i);
    double to = (double)(k->first + i + 1);
    bool reaches = rintf(t / k->scale) >= to,
         below = rintf(nextafterf(t, -INFINITY) / k->scale) < to;
    if (!isfinite(t))
        return ELSEWHERE;
    if (reaches && below)
        return EXACT;
    double want = (to - 0.5) * k->scale;
    return fabs(t - want) <= 1e-6 * fmax(fabs(want), k->scale) ? ON_A_TIE : ELSEWHERE;
}

static Fit fit_all(const Steps *k) {
    Fit worst = EXACT;
    for (int64_t row = 0; row < k->rows; row++)
        for (int64_t i = 0; i < k->n && worst != ELSEWHERE; i++) {
            Fit f = fit(k, row, i);
            worst = f < worst ? f : worst;
        }
    return worst;
}

static const Quant *grid(Qonnx *o, const Steps *k) {
    ElemType e = k->first < 0 ? ELEM_INT8 : ELEM_UINT8;
    if (k->first < elem_min(e) || k->first + k->n > elem_max(e))
        e = k->first < 0 ? ELEM_INT16 : ELEM_UINT16;
    if (k->first < elem_min(e) || k->first + k->n > elem_max(e))
        e = ELEM_INT32;
    Quant *q = quant_per_tensor(o->b.a, e, k->scale, 0);
    q->lo = k->first;
    q->hi = k->first + k->n;
    q->has_range = q->lo > elem_min(e) || q->hi < elem_max(e);
    return q;
}

/* One threshold with results -s and s: BIPOLAR, integers -1 and 1. */
static const Quant *bipolar(Qonnx *o, const Steps *k) {
    if (k->n != 1 || k->bias != -k->scale / 2)
        return NULL;
    Quant *q = quant_per_tensor(o->b.a, ELEM_INT8, k->scale / 2, 0);
    q->has_range = true;
    q->lo = -1;
    q->hi = 1;
    return q;
}

static bool is_quantized_already(const Qonnx *o, const Node *n) {
    const Node *user = uses_only_node(o->uses, n->out[0]);
    return user && node_conversion(user) == CONVERT_QUANTIZE;
}

extern const OpDef op_MultiThreshold;

/* It runs as itself, under the name that ops.def knows. */
static Node *kept(Qonnx *o, Node *n) {
    Str domain = str_from(op_MultiThreshold.domain);
    if (!module_opset(o->b.m, domain))
        module_set_opset(o->b.m, domain, 1);
    n->domain = domain;
    op_resolve(n, o->b.d);
    return n;
}

/* n's work by a new node before n, which becomes the pair. */
static void convert_result(Qonnx *o, Node *n, const Quant *q) {
    kept(o, n);
    Value *v = qonnx_node(o, n, "MultiThreshold", 2, n->in, qonnx_float(n->in[0]->type));
    v->def->domain = n->domain;
    v->def->attrs = n->attrs;
    v->def->n_attrs = n->n_attrs;
    op_resolve(v->def, o->b.d);
    n->attrs = NULL;
    n->n_attrs = 0;
    n->n_in = 1;
    qonnx_becomes_pair(o, n, v, q);
}

const char *raise_thresholds(Qonnx *o, Node *n) {
    Steps k;
    if (!read(n, &k)) { /* its verifier says what is wrong */
        kept(o, n);
        return NULL;
    }
    bool whole = on_grid(&k);
    const Quant *q = whole ? grid(o, &k) : bipolar(o, &k);
    Fit f = whole ? fit_all(&k) : ELSEWHERE;
    if (!q || (f == ELSEWHERE && is_quantized_already(o, n))) {
        kept(o, n);
        return NULL;
    }
    if (f == ELSEWHERE) {
        convert_result(o, n, q);
        return NULL;
    }
    if (f == ON_A_TIE)
        diag_warning(o->b.d, n->loc,
                     "%s: numbers that lie on a threshold it rounds up, quantized types to even: "
                     "they may become the integer below",
                     node_text(n));
    n->n_attrs = 0;
    n->n_in = 1;
    qonnx_becomes_pair(o, n, n->in[0], q);
    return NULL;
}
