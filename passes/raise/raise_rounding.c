/* QONNX's roundings that no quantized type does, spelled with ONNX's operators:
 *
 *   Quant(x, s, z, b)
 *       s * (r(clip(x / s + z)) - z), r being FLOOR, CEIL, UP, ...
 *   Trunc(x, s, z, in, so, out)
 *       so * (r(clip(rint(x / s + z) / t)) - z / t), t = 2^rint(log2(so / s))
 *   Trunc(x, s, z, in, out), version 1
 *       s * (r(rint(x / s + z) / t) - z), t = 2^(in - out)
 *
 * (operator pages of QONNX, Trunc 1 and 2). What they yield lies on a grid, so that a conversion to
 * integers and back behind them changes nothing, and says the type. Version 1 of Trunc states no
 * range and has none. */
#include <math.h>
#include <strings.h>

#include "passes/edit.h"
#include "passes/raise/raise_qonnx.h"

typedef enum Mode { EVEN, FLOOR, CEIL, UP, DOWN, HALF_UP, HALF_DOWN, N_MODES } Mode;

/* UP and DOWN are away from and towards 0, the halves too. */
static const struct {
    const char *name, *also;
} modes[N_MODES] = {
    [EVEN] = {"ROUND", "HALF_EVEN"},
    [FLOOR] = {"FLOOR", ""},
    [CEIL] = {"CEIL", ""},
    [UP] = {"UP", ""},
    [DOWN] = {"DOWN", "ROUND_TO_ZERO"},
    [HALF_UP] = {"HALF_UP", ""},
    [HALF_DOWN] = {"HALF_DOWN", ""},
};

static Mode mode_of(const Node *n) {
    const Attr *a = node_attr(n, "rounding_mode");
    if (!attr_holds(a, ATTR_STRING))
        return str_is(n->op, "Trunc") ? FLOOR : EVEN;
    Str s = a->v.s[0];
    for (Mode m = EVEN; m < N_MODES; m++)
        for (int i = 0; i < 2; i++) {
            const char *name = i ? modes[m].also : modes[m].name;
            if (s.n && s.n == strlen(name) && strncasecmp(s.s, name, s.n) == 0)
                return m;
        }
    return N_MODES;
}

bool rounds_to_even(const Node *n) {
    return mode_of(n) == EVEN;
}

typedef struct Rounding {
    Mode mode;
    Value *scale, *out_scale;
    float zp, out_zp, step; /* step is a power of two */
    bool rint_first, bounded;
    QonnxInts ints; /* of the result */
    Quant *q;       /* that grid */
} Rounding;

/* ---- what the node says ---- */

static const char *read_quant(const Node *n, Rounding *r) {
    const Tensor *z, *bits;
    const char *why = qonnx_const(n, 2, "its zero point is computed", &z);
    why = why ? why : qonnx_const(n, 3, "its bit width is computed", &bits);
    if (!why && !qonnx_integer(bits, 1, 32, &r->ints.bits))
        why = "its bit width is not one integer of 1 to 32";
    if (!why && !qonnx_integer(z, -65536, 65536, &r->ints.zp))
        why = "its zero point is not one integer of the range";
    if (why)
        return why;
    r->bounded = true;
    r->zp = r->out_zp = (float)r->ints.zp;
    return NULL;
}

/* All quotients of the two scales, which must be one power of two. */
static const char *read_step(const Tensor *s, const Tensor *out, Rounding *r) {
    if (s->count != out->count)
        return "its two scales have different shapes";
    for (size_t i = 0; i < s->count; i++) {
        float step = exp2f(rintf(log2f((float)tensor_float(out, i) / (float)tensor_float(s, i))));
        if (i && step != r->step)
            return "its scales do not differ by one power of two";
        r->step = step;
    }
    return NULL;
}

static const char *read_trunc(const Node *n, Rounding *r) {
    const Tensor *s, *out, *z, *bits;
    int64_t from = 0;
    bool first = n->n_in == 5;
    if (!first && n->n_in != 6)
        return "it wants 5 operands (version 1) or 6 (version 2)";
    const char *why = qonnx_const(n, 1, "its scale is computed", &s);
    why = why ? why : qonnx_const(n, 2, "its zero point is computed", &z);
    why = why ? why : qonnx_const(n, 3, "its bit width is computed", &bits);
    if (!why && (!qonnx_integer(bits, 1, 64, &from)))
        why = "its bit width is not one integer";
    why = why ? why : qonnx_const(n, first ? 4 : 5, "its bit width is computed", &bits);
    if (!why && !qonnx_integer(bits, 1, 32, &r->ints.bits))
        why = "its bit width is not one integer of 1 to 32";
    if (!why && z->count != 1)
        why = "it has more than one zero point";
    if (!why && !first)
        why = qonnx_const(n, 4, "its scale is computed", &out);
    why = why || first ? why : qonnx_check_scale(out);
    why = why || first ? why : read_step(s, out, r);
    if (why)
        return why;
    if (first)
        r->step = exp2f((float)(from - r->ints.bits));
    r->rint_first = true;
    r->bounded = !first;
    r->out_scale = n->in[first ? 1 : 4];
    r->zp = (float)tensor_float(z, 0);
    r->out_zp = first ? r->zp : r->zp / r->step;
    r->ints.zp = (int64_t)r->out_zp;
    return NULL;
}

static const char *read(Qonnx *o, const Node *n, Rounding *r) {
    const Tensor *s;
    *r = (Rounding){.mode = mode_of(n), .step = 1};
    r->ints.is_signed = node_int(n, "signed", true);
    r->ints.narrow = node_int(n, "narrow", false);
    r->ints.constant = edit_float_const(n->in[0]) != NULL;
    if (r->mode == N_MODES)
        return arena_strf(o->b.a, "qxc does not know how it rounds, by %s",
                          diag_name(o->b.d, node_attr(n, "rounding_mode")->v.s[0]))
            .s;
    const char *why = qonnx_const(n, 1, "its scale is computed", &s);
    why = why ? why : qonnx_check_scale(s);
    if (why)
        return why;
    r->scale = r->out_scale = n->in[1];
    why = str_is(n->op, "Trunc") ? read_trunc(n, r) : read_quant(n, r);
    if (!why && r->ints.bits == 1 && r->ints.narrow)
        why = "one bit without its last integer leaves one integer";
    if (why)
        return why;
    return qonnx_quant(o, value_data(r->out_scale), n->in[0]->type, r->ints, &r->q);
}

/* ---- the same with ONNX's operators ---- */

static Value *one(Qonnx *o, Node *n, const char *op, Value *x) {
    return qonnx_node(o, n, op, 1, &x, qonnx_float(x->type));
}

static Value *two(Qonnx *o, Node *n, const char *op, Value *x, Value *y) {
    return qonnx_node(o, n, op, 2, (Value *[]){x, y}, qonnx_float(n->in[0]->type));
}

static Value *rounded(Qonnx *o, Node *n, Value *x, Mode mode) {
    if (mode <= CEIL)
        return one(o, n, mode == EVEN ? "Round" : mode == FLOOR ? "Floor" : "Ceil", x);
    Value *sign = one(o, n, "Sign", x), *size = one(o, n, "Abs", x);
    if (mode == HALF_UP || mode == HALF_DOWN)
        size = two(o, n, "Add", size,
                   build_float(&o->b, n->out[0]->name, "_half", mode == HALF_UP ? 0.5F : -0.5F));
    size = one(o, n, mode == UP || mode == HALF_DOWN ? "Ceil" : "Floor", size);
    return two(o, n, "Mul", sign, size);
}

/* All but the last product. */
static Value *spelled(Qonnx *o, Node *n, const Rounding *r) {
    Value *v = two(o, n, "Div", n->in[0], r->scale);
    if (r->zp != 0)
        v = two(o, n, "Add", v, build_float(&o->b, n->out[0]->name, "_zero_point", r->zp));
    if (r->rint_first)
        v = one(o, n, "Round", v);
    if (r->step != 1)
        v = two(o, n, "Mul", v, build_float(&o->b, n->out[0]->name, "_step", 1 / r->step));
    if (r->bounded)
        v = qonnx_node(o, n, "Clip", 3,
                       (Value *[]){v, build_float(&o->b, n->out[0]->name, "_min", (float)r->q->lo),
                                   build_float(&o->b, n->out[0]->name, "_max", (float)r->q->hi)},
                       qonnx_float(n->in[0]->type));
    v = rounded(o, n, v, r->mode);
    return r->out_zp != 0
               ? two(o, n, "Sub", v, build_float(&o->b, n->out[0]->name, "_zero", r->out_zp))
               : v;
}

/* ---- the same here, for constants ---- */

static float round_one(float v, Mode mode) {
    switch (mode) {
    case FLOOR: return floorf(v);
    case CEIL: return ceilf(v);
    case UP: return copysignf(ceilf(fabsf(v)), v);
    case DOWN: return truncf(v);
    case HALF_UP: return copysignf(floorf(fabsf(v) + 0.5F), v);
    case HALF_DOWN: return v == 0 ? v : copysignf(ceilf(fabsf(v) - 0.5F), v);
    default: return rintf(v);
    }
}

static float evaluate(const Rounding *r, float x, float scale, float out_scale) {
    float v = x / scale + r->zp;
    v = (r->rint_first ? rintf(v) : v) / r->step;
    if (r->bounded)
        v = fminf(fmaxf(v, (float)r->q->lo), (float)r->q->hi);
    return (round_one(v, r->mode) - r->out_zp) * out_scale;
}

static Value *evaluated(Qonnx *o, const Node *n, const Rounding *r) {
    const Tensor *t = edit_float_const(n->in[0]), *s = value_data(r->scale);
    float *v = NEW_ARRAY(o->b.a, float, t->count);
    for (size_t i = 0; i < t->count; i++) {
        size_t k = r->q->n_axes ? quant_index(r->q, t->rank, t->dims, i) : 0;
        v[i] = evaluate(r, (float)tensor_float(t, i), (float)tensor_float(s, k), r->q->scale[k]);
    }
    Value *c = build_floats(&o->b, n->in[0]->name, "_rounded", ELEM_FLOAT, t->rank, t->dims, v);
    value_from(c, n->in[0], o->b.pass);
    return c;
}

const char *raise_rounding(Qonnx *o, Node *n) {
    Rounding r;
    const char *why = read(o, n, &r);
    if (why)
        return why;
    bool on_grid =
        r.bounded && (float)r.ints.zp == r.out_zp && r.ints.zp >= r.q->lo && r.ints.zp <= r.q->hi;
    if (!on_grid) { /* the last product, a float */
        Value *v = spelled(o, n, &r);
        node_becomes(n, o->b.pass);
        n->domain = STR_NONE;
        n->op = STR("Mul");
        n->n_in = 2;
        n->n_attrs = 0;
        n->in[0] = v;
        n->in[1] = r.out_scale;
        op_resolve(n, o->b.d);
        return NULL;
    }
    Value *v =
        r.ints.constant ? evaluated(o, n, &r) : two(o, n, "Mul", spelled(o, n, &r), r.out_scale);
    qonnx_becomes_pair(o, n, v, r.q);
    return NULL;
}
