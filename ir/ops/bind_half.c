/* Values of float16, bfloat16 and the still smaller types. A program keeps them as floats that are
 * numbers of the type: nodes are bound on stand-ins of type float, which share the buffers of the
 * values they stand for, and what computes has its results rounded behind it, once each. Bits in
 * ONNX's form are there at graph inputs and outputs only. */
#include <math.h>

#include "ir/minifloat.h"
#include "ir/ops/bind_node.h"

static bool is_half(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && !type_is_quantized(v->type) &&
           elem_is_half(v->type.elem);
}

/* Of a result: a new one that `def` makes. */
static Value *stand_in(Binder *b, Value *v, Node *def) {
    if (!is_half(v))
        return v;
    Value *s = def ? NULL : map_get(b->floats, binder_key(v));
    if (s)
        return s;
    s = arena_copy(b->arena, v, sizeof *v);
    s->type.elem = ELEM_FLOAT;
    s->def = def ? def : v->def;
    const Tensor *t = def ? NULL : value_data(v);
    if (t && t->data) {
        s->data = tensor_unpacked(b->arena, t);
        s->kind = VALUE_CONST;
    }
    if (!def)
        map_set(b->floats, binder_key(v), s);
    return s;
}

const Node *bind_half_stand_in(Binder *b, const Node *n) {
    bool any = false;
    for (size_t i = 0; i < n->n_in + n->n_out; i++)
        any |= is_half(i < n->n_in ? n->in[i] : n->out[i - n->n_in]);
    if (!any || has_bodies(n))
        return n;
    Node *s = arena_copy(b->arena, n, sizeof *n);
    s->in = NEW_ARRAY(b->arena, Value *, n->n_in);
    s->out = NEW_ARRAY(b->arena, Value *, n->n_out);
    for (size_t i = 0; i < n->n_in; i++)
        s->in[i] = stand_in(b, n->in[i], NULL);
    for (size_t i = 0; i < n->n_out; i++)
        s->out[i] = stand_in(b, n->out[i], s);
    b->stands_for = n;
    return s;
}

void bind_half_done(Binder *b, const Node *n, const Node *stand_in, size_t first_buffer) {
    Program *p = b->program;
    b->stands_for = NULL;
    if (n == stand_in)
        return;
    for (size_t i = first_buffer; i < p->n_buffers; i++)
        for (size_t k = 0; k < n->n_in + n->n_out; k++) {
            bool in = k < n->n_in;
            if (p->buffers[i].value == (in ? stand_in->in[k] : stand_in->out[k - n->n_in]))
                p->buffers[i].value = in ? n->in[k] : n->out[k - n->n_in];
        }
}

/* What interpolates, and what no integers can be (ScatterND that adds), yields other numbers than
 * it reads. */
static bool makes_numbers(const Node *n) {
    OpCtx c = op_ctx(n, NULL);
    const QuantRule *r = &n->def->quant;
    return node_interpolates(n) ||
           (r->kind == QUANT_JOIN && r->integer_refusal && r->integer_refusal(&c, NULL));
}

bool bind_half_moves(const Node *n) {
    QuantClass kind = n->def->quant.kind;
    return has_bodies(n) || n->def->counts ||
           ((kind == QUANT_MOVE || kind == QUANT_ORDER || kind == QUANT_JOIN ||
             kind == QUANT_CLAMP) &&
            n->n_in && is_half(n->in[0]) && !makes_numbers(n));
}

/* What numbers beyond the largest become: ONNX's Cast saturates where the type has no infinity, or
 * with its attribute, and gives NaN else. */
static float beyond(const Node *n, const FloatGrid *g, ElemType e) {
    bool saturates = elem_bits(e) < 16 && node_int(n, "saturate", 1);
    return saturates || !(g->infinity || g->nan) ? g->most
           : g->infinity                         ? (float)INFINITY
                                                 : (float)NAN;
}

/* Powers of two alone: a Cast says which of two it is (24), upwards by default. */
static bool round_power(Binder *b, const Node *n, int from, int to) {
    const Attr *mode = node_attr(n, "round_mode");
    bool nearest = mode && str_is(mode->v.s[0], "nearest"),
         down = mode && str_is(mode->v.s[0], "down");
    qk_round_power_params p = {.n = (int64_t)b->program->buffers[from].count,
                               .direction = nearest ? 0
                                            : down  ? -1
                                                    : 1,
                               .saturates = node_int(n, "saturate", 1) != 0};
    if (!bind_call(b, n, "qk_round_power", &p, sizeof p, 2, (int[]){from, to}))
        return false;
    bind_in_place(b, 0);
    return true;
}

bool bind_half_round(Binder *b, const Node *n, const Value *v) {
    FloatGrid g;
    bool powers = !float_grid(v->type.elem, &g);
    int from = bind_value(b, v), to = binder_replace(b, v);
    if (powers)
        return round_power(b, n, from, to);
    qk_round_float_params p = {.n = (int64_t)b->program->buffers[from].count,
                               .mantissa = g.mantissa,
                               .least = g.least,
                               .unsigned_zero = !g.negative_zero,
                               .no_nan = !g.nan,
                               .most = g.most,
                               .beyond = beyond(n, &g, v->type.elem)};
    if (!bind_call(b, n, "qk_round_float", &p, sizeof p, 2, (int[]){from, to}))
        return false;
    bind_in_place(b, 0);
    return true;
}

static bool port(Binder *b, const Value *v, const char *kernel, int from, int to) {
    FloatGrid g;
    float_grid(v->type.elem, &g);
    if (elem_bits(v->type.elem) != 16) {
        bind_value_error(b, v, "is an input or output of fewer than 16 bits, which cannot run");
        return false;
    }
    qk_load_half_params p = {.n = (int64_t)b->program->buffers[from].count, /* store has the same */
                             .mantissa = g.mantissa};
    return bind_call(b, v->def, kernel, &p, sizeof p, 2, (int[]){from, to});
}

bool bind_half_load(Binder *b, const Value *v, int from, int to) {
    return port(b, v, "qk_load_half", from, to);
}

bool bind_half_store(Binder *b, const Value *v, int from, int to) {
    return port(b, v, "qk_store_half", from, to);
}
