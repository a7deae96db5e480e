/* com.microsoft's Attention and FusedMatMul become what they stand for, products that are quantized
 * one by one: for targets that have operators of ONNX alone, and where integers are asked for
 * everywhere. Runs before quantization.
 *
 * split-unbound does the same of those that have no kernel, where the model is to run or to be C.
 */
#include "passes/split_products.h"

#include <float.h>
#include <math.h>

#include "passes/edit.h"
#include "passes/enclose.h"
#include "passes/expand.h"

enum { RESULT, PRESENT };

/* ---- FusedMatMul ---- */

/* `batch` moves axis 0 to where rows are; `turn` makes columns of rows after that. */
static Value *transposed(Expand *e, Value *x, bool batch, bool turn) {
    int64_t perm[MAX_RANK];
    int rank = x->type.rank;
    for (int i = 0; i < rank; i++)
        perm[i] = !batch || i == rank - 1 ? i : i == rank - 2 ? 0 : i + 1;
    if (turn) {
        int64_t row = perm[rank - 2];
        perm[rank - 2] = perm[rank - 1];
        perm[rank - 1] = row;
    }
    return batch || turn ? expand_ints(e, "Transpose", x, "perm", perm, (size_t)rank) : x;
}

static void split_matmul(Expand *e) {
    const Node *n = e->n;
    float alpha = node_float(n, "alpha", 1);
    Value *x = transposed(e, n->in[0], node_int(n, "transBatchA", 0), node_int(n, "transA", 0));
    Value *w = transposed(e, n->in[1], node_int(n, "transBatchB", 0), node_int(n, "transB", 0));
    Value *y = expand(e, "MatMul", x, w);
    if (alpha != 1)
        y = expand(e, "Mul", y, expand_number(e, "_alpha", (double)alpha));
    expand_yield(e, RESULT, y);
}

/* ---- Attention ---- */

typedef struct Heads {
    int64_t heads, qk, v; /* numbers of all heads: queries or keys, and values */
} Heads;

static Heads heads_of(const Node *n) {
    const Attr *sizes = node_attr(n, "qkv_hidden_sizes");
    int64_t third = n->in[ATTENTION_WEIGHTS]->type.dims[1].value / 3;
    Heads h = {node_int(n, "num_heads", 1), third, third};
    if (sizes && sizes->kind == ATTR_INTS && sizes->n == 3) {
        h.qk = sizes->v.i[0];
        h.v = sizes->v.i[2];
    }
    return h;
}

/* One of queries, keys and values, [B,S,heads*size] before: [B,heads,S,size]. */
static Value *by_head(Expand *e, Value *x, Heads h, int64_t size) {
    static const int64_t perm[] = {0, 2, 1, 3};
    int64_t shape[] = {0, 0, h.heads, size / h.heads};
    Value *y = expand(e, "Reshape", x, expand_list(e, "_by_head", shape, 4));
    return expand_ints(e, "Transpose", y, "perm", perm, 4);
}

/* Numbers `from` to `to` of the last axis. */
static Value *part(Expand *e, Value *x, int64_t from, int64_t to) {
    int64_t last = -1;
    return expand(e, "Slice", x, expand_list(e, "_from", &from, 1), expand_list(e, "_to", &to, 1),
                  expand_list(e, "_last", &last, 1));
}

/* One index of the first axis, which goes. */
static Value *pick(Expand *e, Value *x, int64_t index) {
    return expand_int(e, "Gather", x, build_int(&e->b, e->base, "_index", ELEM_INT64, index),
                      "axis", 0);
}

/* Keys or values of the past [2,B,heads,T,size] before the new ones. */
static Value *behind_past(Expand *e, int64_t which, Value *now) {
    Value *past = node_input(e->n, ATTENTION_PAST);
    return past ? expand_int(e, "Concat", pick(e, past, which), now, "axis", 2) : now;
}

static void yield_present(Expand *e, Value *keys, Value *values) {
    int64_t first = 0;
    if (!expand_has_result(e, PRESENT))
        return;
    Value *axis = expand_list(e, "_first", &first, 1);
    Value *k = expand(e, "Unsqueeze", keys, axis), *v = expand(e, "Unsqueeze", values, axis);
    expand_yield(e, PRESENT, expand_int(e, "Concat", k, v, "axis", 0));
}

/* ---- masks: what is hidden, as truth values that broadcast to the scores [B,heads,S,T] ---- */

/* 0, 1, ... along an axis of `x`, int32. */
static Value *positions(Expand *e, Value *x, int64_t axis) {
    Value *size =
        expand_int(e, "Cast", pick(e, expand(e, "Shape", x), axis), NULL, "to", ELEM_INT32);
    return expand(e, "Range", build_int(&e->b, e->base, "_zero", ELEM_INT32, 0), size,
                  build_int(&e->b, e->base, "_one", ELEM_INT32, 1));
}

static Value *unsqueezed(Expand *e, Value *x, int64_t first, int64_t second, size_t n) {
    int64_t axes[] = {first, second};
    return expand(e, "Unsqueeze", x, expand_list(e, "_axes", axes, n));
}

/* [B] of the mask's numbers [2,B], or of [B], to compare positions with: [B,1,1,1]. */
static Value *limits(Expand *e, Value *mask, bool of_two, int64_t which) {
    int64_t rows[] = {2, -1}, all[] = {-1, 1, 1, 1};
    if (of_two) {
        mask = expand(e, "Reshape", mask, expand_list(e, "_spans", rows, 2));
        mask = pick(e, mask, which);
    }
    return expand(e, "Reshape", mask, expand_list(e, "_limits", all, 4));
}

static Value *hidden(Expand *e, Mask kind, Value *scores) {
    Value *mask = node_input(e->n, ATTENTION_MASK);
    if (kind == MASK_STEPS || kind == MASK_PAIRS) {
        Value *none = build_int(&e->b, e->base, "_none", ELEM_INT32, 0);
        Value *hide = expand(e, "LessOrEqual", mask, none);
        return kind == MASK_STEPS ? unsqueezed(e, hide, 1, 2, 2) : unsqueezed(e, hide, 1, 0, 1);
    }
    Value *at = positions(e, scores, 3);
    Value *hide = expand(e, "GreaterOrEqual", at, limits(e, mask, kind == MASK_SPANS, 0));
    if (kind == MASK_ENDS)
        return hide;
    Value *early = expand(e, "Less", at, limits(e, mask, true, 1));
    return expand(e, "Or", hide, early);
}

/* What lies behind each step: column T - S + row is the last that it sees. */
static Value *behind(Expand *e, Value *scores) {
    int64_t axis[] = {1};
    Value *columns = positions(e, scores, 3), *rows = positions(e, scores, 2);
    if (node_input(e->n, ATTENTION_PAST)) {
        Value *shape = expand(e, "Shape", scores);
        Value *past = expand(e, "Sub", pick(e, shape, 3), pick(e, shape, 2));
        past = expand_int(e, "Cast", past, NULL, "to", ELEM_INT32);
        rows = expand(e, "Add", rows, past);
    }
    rows = expand(e, "Unsqueeze", rows, expand_list(e, "_rows", axis, 1));
    return expand(e, "Greater", columns, rows);
}

static Value *masked(Expand *e, Value *scores) {
    const Node *n = e->n;
    Mask kind = attention_mask(n);
    double filter = (double)node_float(n, "mask_filter_value", -10000.0f);
    double lowest = e->elem == ELEM_FLOAT16 ? -65504 : -(double)FLT_MAX;
    if (node_input(n, ATTENTION_SCORES))
        scores = expand(e, "Add", scores, node_input(n, ATTENTION_SCORES));
    Value *plain = scores;
    if (kind != MASK_NONE) {
        Value *add = expand(e, "Where", hidden(e, kind, plain), expand_number(e, "_filter", filter),
                            expand_number(e, "_kept", 0));
        scores = expand(e, "Add", scores, add);
    }
    if (node_int(n, "unidirectional", 0))
        scores = expand(e, "Where", behind(e, plain), expand_number(e, "_lowest", lowest), scores);
    return scores;
}

static void split_attention(Expand *e) {
    const Node *n = e->n;
    static const int64_t turned[] = {0, 1, 3, 2}, back[] = {0, 2, 1, 3};
    Heads h = heads_of(n);
    double scale = (double)node_float(n, "scale", 0);
    if (scale == 0)
        scale = 1 / sqrt((double)(h.qk / h.heads));
    Value *x = expand(e, "MatMul", n->in[ATTENTION_INPUT], n->in[ATTENTION_WEIGHTS]);
    if (node_input(n, ATTENTION_BIAS))
        x = expand(e, "Add", x, n->in[ATTENTION_BIAS]);
    Value *q = by_head(e, part(e, x, 0, h.qk), h, h.qk),
          *k = by_head(e, part(e, x, h.qk, 2 * h.qk), h, h.qk),
          *v = by_head(e, part(e, x, 2 * h.qk, 2 * h.qk + h.v), h, h.v);
    k = behind_past(e, 0, k);
    v = behind_past(e, 1, v);
    yield_present(e, k, v);
    k = expand_ints(e, "Transpose", k, "perm", turned, 4);
    Value *scores = expand(e, "MatMul", q, k);
    scores = expand(e, "Mul", scores, expand_number(e, "_scale", scale));
    scores = expand_int(e, "Softmax", masked(e, scores), NULL, "axis", -1);
    Value *y = expand(e, "MatMul", scores, v);
    int64_t shape[] = {0, 0, h.v};
    y = expand_ints(e, "Transpose", y, "perm", back, 4);
    expand_yield(e, RESULT, expand(e, "Reshape", y, expand_list(e, "_joined", shape, 3)));
}

/* ---- the pass ---- */

/* The kernel of Attention has no past, and adds nothing to scores (ir/ops/attention.c). */
static bool has_kernel(const Node *n) {
    return !node_is_attention(n) ||
           !(node_input(n, ATTENTION_PAST) || node_input(n, ATTENTION_SCORES) ||
             (n->n_out > PRESENT && n->out[PRESENT]));
}

typedef struct Split {
    Expand e;
    PassContext *c;
    const char *by;
    bool (*stays)(const Node *n); /* NULL: none does */
    bool ok, any;
} Split;

static void split_graph(Graph *g, void *ctx) {
    Split *s = ctx;
    Expand *e = &s->e;
    FOR_NODES(n, g) {
        if (!holds_products(n) || !n->def || split_refusal(n) || (s->stays && s->stays(n)))
            continue;
        if (!expand_fits(e, n)) {
            s->ok = false;
            continue;
        }
        s->any = true;
        if (s->stays && s->c->keeps_calls && target_has_domain(s->c->target, n->domain))
            enclose_call(n, e->b.names, s->by);
        else
            name_call(n);
        expand_at(e, n);
        (node_is_attention(n) ? split_attention : split_matmul)(e);
        expand_end(e);
    }
}

static bool split(Module *m, PassContext *c, const char *by, bool (*stays)(const Node *n)) {
    Split s = {.e = expand_new(m, c, by), .c = c, .by = by, .stays = stays, .ok = true};
    module_each_graph(m, split_graph, &s);
    if (s.any)
        edit_forget_import(m, STR("com.microsoft"));
    return s.ok;
}

bool pass_split_products(Module *m, PassContext *c) {
    return split(m, c, "split-products", NULL);
}

bool pass_split_unbound(Module *m, PassContext *c) {
    return split(m, c, "split-unbound", has_kernel);
}
