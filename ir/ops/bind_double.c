/* Nodes that no integer kernel serves, bound in double precision. The operator's own bind function
 * runs on stand-ins for the operands and results, of type double; bind_call takes the f64 form of
 * each kernel. See bind_in_double in ir/ops/bind.h. */
#include <assert.h>
#include <math.h>

#include "ir/ops/bind_node.h"

enum { WIDEST_KERNEL = 16 }; /* bits of what integer kernels take and give */

static bool is_wide(const Value *v) {
    const Quant *q = v ? op_quant(v) : NULL;
    return q && elem_bits(q->storage) > WIDEST_KERNEL;
}

/* Movers take integers of any width. A Conv or Gemm may give its accumulator; it decides itself. */
bool binder_needs_double(const Node *n) {
    QuantClass kind = n->def->quant.kind;
    bool mac = kind == QUANT_MAC, wide = false, equal = true;
    if ((!mac && kind != QUANT_COMPUTE && kind != QUANT_CLAMP && kind != QUANT_JOIN) ||
        op_adds_integers(n))
        return false;
    for (size_t i = 0; i < n->n_in; i++) {
        bool weight = mac && i == (size_t)n->def->quant.mac.weight;
        if (!n->in[i] || !(weight || quant_rule_is_data(&n->def->quant, i)))
            continue;
        wide = wide || is_wide(n->in[i]);
        equal = equal && bind_equal_quant(n->in[i], n->out[0]);
    }
    return (wide || (!mac && is_wide(n->out[0]))) && !(kind == QUANT_JOIN && equal);
}

/* ---- operands ---- */

static Value *stand_in(Binder *b, const Value *v) {
    Value *s = arena_copy(b->arena, v, sizeof *v);
    s->type = type_tensor(ELEM_DOUBLE, v->type.rank, v->type.dims);
    s->id = binder_new_slot(b);
    return s;
}

static int widened_const(Binder *b, const Tensor *t) {
    double *data = NEW_ARRAY(b->arena, double, t->count);
    for (size_t i = 0; i < t->count; i++)
        data[i] = tensor_float(t, i);
    return bind_const(b, ELEM_DOUBLE, t->count, data, "widened");
}

static bool dequantized(Binder *b, const Node *n, const Value *v, const Quant *q, int to) {
    int scale, zp;
    ElemType e = bind_elem(v);
    Grid g = bind_grid(b, q, v->type, true, &scale, &zp);
    qk_dequantize_f64_params p = {g.outer,   g.axis,   g.inner,  g.block,
                                  g.s_outer, g.s_axis, g.s_inner};
    return bind_call(b, n, bind_kernel(b, "dequantize_f64", 1, &e), &p, sizeof p, 4,
                     (int[]){bind_value(b, v), scale, zp, to});
}

static bool widened(Binder *b, const Node *n, int from, int to, size_t count) {
    qk_widen_f32_params p = {.n = (int64_t)count};
    return bind_call(b, n, "qk_widen_f32", &p, sizeof p, 2, (int[]){from, to});
}

/* In: a value of the module; out: its stand-in, with its numbers in a buffer. Values that are
 * neither quantized nor float (shapes, axes) stand for themselves. */
static bool operand(Binder *b, const Node *n, Value **v) {
    const Value *x = *v;
    const Quant *q = op_quant(x);
    if (!q && x->type.elem != ELEM_FLOAT) /* doubles, too, are what they are */
        return true;
    if (q && !quant_is_known(q))
        return bind_unsupported(b, n, "the parameters of '%s' are not known",
                                diag_name(b->diags, x->name));
    Value *s = stand_in(b, x);
    bool constant = !q && x->data && x->data->data && !binder_rounds(b, x);
    size_t count = (size_t)bind_count(x);
    int at = constant ? widened_const(b, x->data) : bind_temp(b, ELEM_DOUBLE, count);
    b->program->value_buffer[s->id] = at;
    *v = s;
    if (constant)
        return true;
    s->data = NULL;
    return q ? dequantized(b, n, x, q, at) : widened(b, n, bind_value(b, x), at, count);
}

/* ---- results ---- */

static bool quantized(Binder *b, const Node *n, int from, const Value *y) {
    const Quant *q = op_quant(y);
    int scale, zp;
    if (!quant_is_known(q))
        return bind_unsupported(b, n, "the parameters of its result are not known");
    ElemType e = bind_elem(y);
    Grid g = bind_grid(b, q, y->type, true, &scale, &zp);
    qk_quantize_f64_params p = {
        g.outer,  g.axis,    g.inner,     g.block,     g.s_outer,
        g.s_axis, g.s_inner, quant_lo(q), quant_hi(q), elem_min(q->storage)};
    return bind_call(b, n, bind_kernel(b, "quantize_f64", 1, &e), &p, sizeof p, 4,
                     (int[]){from, scale, zp, bind_value(b, y)});
}

static bool narrowed(Binder *b, const Node *n, int from, const Value *y) {
    if (y->type.elem == ELEM_DOUBLE) {
        bind_copy(b, n, from, bind_value(b, y));
        return true;
    }
    if (y->type.elem != ELEM_FLOAT)
        return bind_unsupported(b, n, "its result is %s", elem_name(y->type.elem));
    qk_narrow_f64_params p = {.n = bind_count(y)};
    return bind_call(b, n, "qk_narrow_f64", &p, sizeof p, 2, (int[]){from, bind_value(b, y)});
}

bool bind_rounded_wide(Binder *b, const Node *n, const Value *v) {
    const Quant *q = v->type.quant;
    int from = bind_value(b, v), scale, zp;
    size_t count = b->program->buffers[from].count;
    ElemType e = q->storage;
    Grid g = bind_grid(b, q, v->type, true, &scale, &zp);
    qk_quantize_f64_params in = {
        g.outer,  g.axis,    g.inner,     g.block,     g.s_outer,
        g.s_axis, g.s_inner, quant_lo(q), quant_hi(q), elem_min(q->storage)};
    qk_dequantize_f64_params out = {g.outer,   g.axis,   g.inner,  g.block,
                                    g.s_outer, g.s_axis, g.s_inner};
    qk_narrow_f64_params narrow = {.n = (int64_t)count};
    int real = bind_temp(b, ELEM_DOUBLE, count), ints = bind_temp(b, e, count);
    int back = bind_temp(b, ELEM_DOUBLE, count);
    int to = binder_replace(b, v);
    return widened(b, n, from, real, count) &&
           bind_call(b, n, bind_kernel(b, "quantize_f64", 1, &e), &in, sizeof in, 4,
                     (int[]){real, scale, zp, ints}) &&
           bind_call(b, n, bind_kernel(b, "dequantize_f64", 1, &e), &out, sizeof out, 4,
                     (int[]){ints, scale, zp, back}) &&
           bind_call(b, n, "qk_narrow_f64", &narrow, sizeof narrow, 2, (int[]){back, to});
}

/* A node for stand-ins, which lives as long as the program: what it refuses is told at the end. */
static Node *node_of_stand_ins(Binder *b, const Node *n) {
    Node *s = arena_copy(b->arena, n, sizeof *n);
    s->in = arena_copy(b->arena, n->in, n->n_in * sizeof *n->in);
    s->out = arena_copy(b->arena, n->out, n->n_out * sizeof *n->out);
    return s;
}

/* Q and DQ change the domain and no more; what is left is a copy. */
static bool compute(Binder *b, const Node *n, const Node *s) {
    OpCtx c = op_ctx(s, b->diags);
    b->in_double = n;
    bool ok = s->def->own_form && s->def->own_form(s) ? bind_alias(b, s, s->out[0], s->in[0])
                                                      : s->def->bind(b, s, &c);
    b->in_double = NULL;
    return ok;
}

void binder_forget_stand_ins(Binder *b, size_t first) {
    Program *p = b->program;
    for (size_t i = first; i < p->n_buffers; i++)
        if (p->buffers[i].value && p->buffers[i].value->id >= p->module->n_values)
            p->buffers[i].value = NULL;
}

/* What integer kernels refuse, whatever the operator. */
static const char *why_not_integer(const Node *n) {
    const char *why = "no integer kernel takes its types";
    for (size_t i = 0; i < n->n_in + n->n_out; i++) {
        const Value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        const Quant *q = v ? op_quant(v) : NULL;
        bool bias = n->def->quant.mac.bias && i == (size_t)n->def->quant.mac.bias;
        if (is_wide(v) && !bias)
            return "it has integers of more than 16 bits";
        if (q && q->n_axes && n->def->quant.kind != QUANT_MAC)
            why = "an operand or the result has parameters along an axis";
    }
    return why;
}

static bool cast(Binder *b, const Node *n, ElemType types[2], int from, int to, int64_t count) {
    qk_cast_params p = {.n = count};
    return bind_call(b, n, bind_kernel(b, "cast", 2, types), &p, sizeof p, 2, (int[]){from, to});
}

static bool integer_operand(Binder *b, const Node *n, Value **v) {
    Value *s = stand_in(b, *v);
    int64_t count = bind_count(*v);
    int to = bind_temp(b, ELEM_DOUBLE, (size_t)count);
    ElemType types[] = {bind_elem(*v), ELEM_DOUBLE};
    b->program->value_buffer[s->id] = to;
    s->data = NULL;
    int from = bind_value(b, *v);
    *v = s;
    return cast(b, n, types, from, to, count);
}

/* The logarithm of 0 is where a result is outside of its type. */
static bool integer_result(Binder *b, const Node *n, int from, const Value *y) {
    ElemType types[] = {ELEM_DOUBLE, bind_elem(y)};
    qk_clamp_f32_params p = {bind_count(y), -0x1p31F, (float)INFINITY};
    int to = bind_temp(b, ELEM_DOUBLE, (size_t)p.n);
    if (y->type.elem != ELEM_INT32)
        return cast(b, n, types, from, bind_value(b, y), p.n);
    return bind_call(b, n, "qk_clamp_f64", &p, sizeof p, 2, (int[]){from, to}) &&
           cast(b, n, types, to, bind_value(b, y), p.n);
}

bool bind_integers_in_double(Binder *b, const Node *n, unsigned data) {
    Node *s = node_of_stand_ins(b, n);
    if (b->in_double || n->n_out != 1 || !n->out[0])
        return bind_unsupported(b, n, "it has no form in double precision");
    bool ok = true;
    size_t first = b->program->n_buffers;
    for (size_t i = 0; i < n->n_in; i++)
        if (data >> i & 1 && s->in[i])
            ok = integer_operand(b, n, &s->in[i]) && ok;
    b->program->why_double[n->id] = "it makes integers of real numbers";
    s->out[0] = stand_in(b, n->out[0]);
    if (!ok || !compute(b, n, s))
        return false;
    int real = bind_value(b, s->out[0]);
    binder_forget_stand_ins(b, first);
    return integer_result(b, n, real, n->out[0]);
}

bool bind_in_double(Binder *b, const Node *n) {
    return bind_in_double_as(b, n, why_not_integer(n));
}

bool bind_in_double_as(Binder *b, const Node *n, const char *why) {
    Node *s = node_of_stand_ins(b, n);
    assert(why);
    if (b->in_double || n->n_out != 1 || !n->out[0])
        return bind_unsupported(b, n, "it has no form in double precision");
    bool ok = true;
    size_t first = b->program->n_buffers;
    for (size_t i = 0; i < n->n_in; i++)
        ok = (!s->in[i] || operand(b, n, &s->in[i])) && ok;
    b->program->why_double[n->id] = why;
    s->out[0] = stand_in(b, n->out[0]);
    if (!ok || !compute(b, n, s))
        return false;
    int real = bind_value(b, s->out[0]);
    binder_forget_stand_ins(b, first);
    return op_quant(n->out[0]) ? quantized(b, n, real, n->out[0]) : narrowed(b, n, real, n->out[0]);
}
