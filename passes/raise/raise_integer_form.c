/* Networks whose operators compute on plain integers, as Aidge writes them
 * (ir/ops/plain_integer.c), become float ones whose numbers are those integers:
 *
 *   int8 = QuantizeLinear(x, s, 0)        Div(x, s), Round, Clip
 *   int32 = Conv(int8, int8, int32)       Conv of floats; exact up to sums of 2^24
 *   int8 = QuantizeLinear(int32, m, 0)    Mul(x, 1 / m), Round, Clip
 *   int8 = QuantizeLinear(int32, 2^k, 0)  Mul(x, 2^-k), Add(0.5), Floor, Clip: Aidge's single shift
 *   int32 = BitShift(int32, k)            Mul(x, 2^-k), Floor; to the left it wraps around
 *   DequantizeLinear(int8, s, 0)          Mul(x, s)
 *   zero points other than 0              Add behind Round, Sub before Mul; products read the
 *                                         integers as they are
 *   int8 = GlobalAveragePool(int8)        itself, Mul(1 + 2^-19), Round, Clip; AveragePool too
 *   Relu, MaxPool, Add, Clip, Cast ...    themselves
 *
 * That is what raise-scaling gives types. Each integer value that becomes float stays, as a Cast of
 * its twin, for whoever else reads it. What cannot be converted stays as it is, with a remark. */
#include <math.h>

#include "passes/raise/integer_reals.h"
#include "passes/raise/raise_scaling.h"

/* ---- operators ---- */

static void warn_of_double(const Reals *r, const Node *n, const Value *fill) {
    if (node_fills_from_double(n))
        diag_warning(r->b.d, n->loc,
                     "%s: '%s' is double beside floats, which is not in ONNX: it is taken as float",
                     diag_name(r->b.d, n->op), diag_name(r->b.d, fill->name));
}

/* The operands that hold what in[0] holds, and all results that do. */
static void convert_mover(Reals *r, Node *n) {
    ElemType e = n->in[0]->type.elem;
    size_t fill = fill_operand(n);
    for (size_t i = 0; i < n->n_in; i++) {
        bool data = quant_rule_is_data(&n->def->quant, i) || (fill && i == fill) ||
                    n->def->quant.kind == QUANT_CLAMP;
        if (is_int(n->in[i]) && n->in[i]->type.elem == e && data)
            n->in[i] = real_of(r, n->in[i], n);
        else if (fill && i == fill && n->in[i] && n->in[i]->type.elem == ELEM_DOUBLE &&
                 value_data(n->in[i])) {
            warn_of_double(r, n, n->in[i]);
            n->in[i] = real_const(r, n->in[i]);
        }
    }
    for (size_t i = 0; i < n->n_out; i++)
        if (is_int(n->out[i]) && n->out[i]->type.elem == e)
            make_real(r, n, i);
}

/* Sums that go out as integers are rounded to them: with scales they are whole but for an error of
 * floats, and a Cast cuts off. */
static void round_before_cast(Reals *r, Node *cast) {
    Value *real = cast->in[0];
    Node *round = node_of(r, cast, "Round", real, NULL);
    cast->in[0] = node_add_output(round, 0, derived_name(&r->b, real->name, "_Round"), real->type);
    node_insert_before(cast, round);
    op_resolve(round, r->b.d);
    ARENA_PUSH(r->b.a, r->casts, r->n_casts, r->cap_casts, round);
}

static void convert_sum(Reals *r, Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (is_int(n->in[i]))
            n->in[i] = real_of(r, n->in[i], n);
    Value *ints = n->out[0];
    make_real(r, n, 0);
    if (uses_is_output(r->uses, ints))
        round_before_cast(r, ints->def);
}

/* The elements that what reads y, alone, quantizes it to. */
static ElemType elements_behind(const Reals *r, const Value *y) {
    for (int steps = 0; y && steps < 16; steps++) {
        const Node *n = uses_only_node(r->uses, y);
        if (!n || !n->n_out || !n->out[0])
            break;
        y = n->out[0];
        if (is_int(y) && elem_bits(y->type.elem) <= 16)
            return y->type.elem;
    }
    return ELEM_INT8;
}

static Node *clip_of(Reals *r, const Node *n, Value *x, ElemType e) {
    Value *lo = build_float(&r->b, x->name, "_lo", (float)elem_min(e));
    Node *to = node_of(r, n, "Clip", x, lo);
    node_add_input(to, build_float(&r->b, x->name, "_hi", largest_float(e)));
    return to;
}

static Value *clip(Reals *r, Node *n, Value *x, ElemType e) {
    if (elem_bits(e) > 32)
        return x;
    return build_before(&r->b, n, clip_of(r, n, x, e), n->out[0]->name, "_Clip",
                        real_of_type(x->type));
}

/* The same numbers as float, of what is float16, say. */
static Node *float_of(Reals *r, const Node *n, Value *x) {
    Node *cast = node_of(r, n, "Cast", x, NULL);
    node_set_int(cast, "to", ELEM_FLOAT);
    return cast;
}

static bool is_wider_or_narrower(const Value *x) {
    return x->type.kind == TYPE_TENSOR && elem_is_float(x->type.elem) && x->type.elem != ELEM_FLOAT;
}

/* Floats that meet integers: Aidge feeds integers there, but has its input stated as float. */
static Value *integers_of_floats(Reals *r, Node *n, Value *x) {
    Value *known = twin(r, x);
    if (known || floats_within(x, ELEM_INT32, false))
        return known ? known : x;
    ElemType e = elements_behind(r, n->out[0]);
    diag_note(r->b.d, n->loc,
              "%s multiplies floats by integers: '%s' is taken for integers of %s and rounded",
              node_text(n), diag_name(r->b.d, x->name), elem_name(e));
    Value *real = is_wider_or_narrower(x) ? behind(r, n, float_of(r, n, x), "_real") : x;
    Value *rounded = behind(r, n, node_of(r, n, "Round", real, NULL), "_Round");
    Value *ints = behind(r, n, clip_of(r, n, rounded, e), "_Clip");
    map_set(r->twins, value_key(x), ints);
    return ints;
}

static void convert_product(Reals *r, Node *n) {
    if (!is_int(n->in[0]))
        n->in[0] = integers_of_floats(r, n, n->in[0]);
    convert_sum(r, n);
}

/* ---- conversions ---- */

/* Aidge's single shift: integers divided by a power of two, (x + 2^(k-1)) >> k, so ties go up. */
static bool is_shift(const Node *n) {
    const Tensor *t = value_data(n->in[1]);
    bool shift = is_int(n->in[0]) && elem_is_int(t->elem);
    for (size_t i = 0; shift && i < t->count; i++)
        shift = (tensor_int(t, i) & (tensor_int(t, i) - 1)) == 0;
    return shift;
}

/* Round alone where the zero point is a float, which says nothing of a range. */
static const char *convert_quantize(Reals *r, Node *n) {
    bool sums = is_int(n->in[0]);
    RealParams p;
    const char *why = real_params(r, n, sums, &p);
    if (why)
        return why;
    Value *x = sums ? real_of(r, n->in[0], n) : n->in[0], *y = n->out[0];
    if (is_wider_or_narrower(x))
        x = build_before(&r->b, n, float_of(r, n, x), x->name, "_real", real_of_type(x->type));
    x = before(r, n, sums ? "Mul" : "Div", x, p.scale);
    if (!is_int(y)) {
        x = p.zp ? before(r, n, "Round", x, NULL) : x;
        becomes(r, n, p.zp ? "Add" : "Round", x, p.zp);
        op_resolve(n, r->b.d);
        pass_remark(r->c, n, "its zero point was a float, so nothing says how many bits it has");
        return NULL;
    }
    bool shift = is_shift(n);
    if (shift)
        x = before(r, n, "Add", x, build_float(&r->b, x->name, "_half", 0.5F));
    x = before(r, n, shift ? "Floor" : "Round", x, NULL);
    x = p.zp ? before(r, n, "Add", x, p.zp) : x;
    x = clip(r, n, x, y->type.elem);
    becomes_cast(r, n, x, y->type.elem);
    map_set(r->twins, value_key(y), x);
    return NULL;
}

static const char *convert_dequantize(Reals *r, Node *n) {
    RealParams p;
    const char *why = real_params(r, n, false, &p);
    if (why)
        return why;
    Value *x = is_int(n->in[0]) ? real_of(r, n->in[0], n) : n->in[0], *y = n->out[0];
    if (p.zp)
        x = before(r, n, "Sub", x, p.zp);
    if (is_wider_or_narrower(y)) {
        becomes_cast(r, n, before(r, n, "Mul", x, p.scale), y->type.elem);
        return NULL;
    }
    becomes(r, n, "Mul", x, p.scale);
    op_resolve(n, r->b.d);
    return NULL;
}

/* Numbers of up to 2^24, which floats hold, times 2^k: are they beyond e? */
static bool may_wrap(ElemType e, int64_t k) {
    return elem_bits(e) - elem_is_signed(e) < 24 + k;
}

/* n becomes x wrapped around at the ends of e: x - 2^bits * floor((x - least) / 2^bits). */
static void becomes_wrapped(Reals *r, Node *n, Value *x, ElemType e) {
    float all = ldexpf(1, elem_bits(e));
    Value *from = x;
    if (elem_is_signed(e))
        from = before(r, n, "Add", x, build_float(&r->b, x->name, "_half", all / 2));
    Value *turns = before(r, n, "Mul", from, build_float(&r->b, x->name, "_part", 1 / all));
    turns = before(r, n, "Floor", turns, NULL);
    Value *over = before(r, n, "Mul", turns, build_float(&r->b, x->name, "_all", all));
    becomes(r, n, "Sub", x, over);
}

static const char *convert_shift(Reals *r, Node *n) {
    const Tensor *t = n->n_in > 1 ? value_data(n->in[1]) : NULL;
    const Attr *a = node_attr(n, "direction");
    if (!t || !t->data || !t->count || !a)
        return "it does not shift by a constant";
    bool left = str_is(a->v.s[0], "LEFT"), wraps = false;
    ElemType e = n->in[0]->type.elem;
    float *f = NEW_ARRAY(r->b.a, float, t->count);
    for (size_t i = 0; i < t->count; i++) {
        int64_t k = tensor_int(t, i);
        if (k < 0 || k > 31)
            return "it shifts by less than 0 or more than 31 bits";
        f[i] = ldexpf(1, left ? (int)k : -(int)k);
        wraps |= left && k > 0 && may_wrap(e, k);
    }
    bool one = t->count == 1;
    Value *factor =
        build_floats(&r->b, n->in[1]->name, "_factor", ELEM_FLOAT, one ? 0 : t->rank, t->dims, f);
    Value *x = before(r, n, "Mul", real_of(r, n->in[0], n), factor);
    x->type = real_of_type(n->out[0]->type); /* the factors may be more than the numbers */
    if (wraps)
        becomes_wrapped(r, n, x, e);
    else
        becomes(r, n, "Floor", x, NULL);
    op_resolve(n, r->b.d);
    make_real(r, n, 0);
    return NULL;
}

/* An average, rounded with ties away from 0, as Aidge does: Round has them go to even, so a little
 * is put on them. */
static void convert_average(Reals *r, Node *n) {
    Value *y = n->out[0];
    Node *average =
        node_of(r, n, arena_strf(r->b.a, STR_FMT, STR_ARG(n->op)).s, real_of(r, n->in[0], n), NULL);
    average->attrs = n->attrs;
    average->n_attrs = n->n_attrs;
    node_add_output(average, 0, derived_name(&r->b, y->name, "_average"), real_of_type(y->type));
    node_insert_before(n, average);
    op_resolve(average, r->b.d);
    Value *x = average->out[0];
    float more = scaling_mean_up(average, largest_float(y->type.elem));
    if (more != 1)
        x = before(r, n, "Mul", x, build_float(&r->b, x->name, "_factor", more));
    else
        pass_inexact(r->c, n,
                     "its windows are or may be so large that ties go to even, not away from 0");
    x = clip(r, n, before(r, n, "Round", x, NULL), y->type.elem);
    becomes_cast(r, n, x, y->type.elem);
    map_set(r->twins, value_key(y), x);
}

/* x takes the place of the float that n, a Cast, yields; what the graph yields keeps its name. */
static void cast_no_more(Reals *r, Node *n, Value *x) {
    Value *y = n->out[0];
    if (uses_is_output(r->uses, y) && (!x->def || x->graph != y->graph || value_is_output(x))) {
        becomes(r, n, "Identity", x, NULL);
        op_resolve(n, r->b.d);
        return;
    }
    if (uses_is_output(r->uses, y))
        edit_take_name(y, x);
    value_replace(r->m, NULL, y, x);
    ARENA_PUSH(r->b.a, r->casts, r->n_casts, r->cap_casts, n);
}

/* Integers to integers that hold them, or to float. */
static const char *convert_cast(Reals *r, Node *n) {
    Value *x = twin(r, n->in[0]), *y = n->out[0];
    if (y->type.kind != TYPE_TENSOR || y->type.quant)
        return "its type is not known";
    if (y->type.elem == ELEM_FLOAT) {
        cast_no_more(r, n, x);
        return NULL;
    }
    bool wider =
        elem_bits(y->type.elem) > elem_bits(n->in[0]->type.elem) && elem_is_signed(y->type.elem);
    if (!is_int(y) || !(wider || floats_within(x, y->type.elem, true)))
        return "it may cut integers off at another range";
    n->in[0] = x;
    ARENA_PUSH(r->b.a, r->casts, r->n_casts, r->cap_casts, n);
    map_set(r->twins, value_key(y), x);
    return NULL;
}

/* ---- which nodes ---- */

static bool reads_twin(const Reals *r, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (is_int(n->in[i]) && twin(r, n->in[i]))
            return true;
    return false;
}

bool convert_to_reals(Reals *r, Node *n) {
    const char *why = NULL;
    if (n->n_out == 0 || !n->out[0] || n->out[0]->type.kind != TYPE_TENSOR)
        return false;
    if (is_onnx_quantize(n))
        why = convert_quantize(r, n);
    else if (is_onnx_dequantize(n))
        why = convert_dequantize(r, n);
    else if (node_is(n, "BitShift"))
        why = convert_shift(r, n);
    else if (node_cast(n))
        why = convert_cast(r, n);
    else if (keeps_integers(n) && !node_interpolates(n))
        convert_mover(r, n);
    else if (n->def && n->def->quant.kind == QUANT_MAC)
        convert_product(r, n);
    else if (scaling_is_average(n) && is_int(n->in[0]))
        convert_average(r, n);
    else if (scaling_is_sum(n) || node_is(n, "Mul"))
        convert_sum(r, n);
    else
        why = "it computes on integers, and what that means is not known";
    if (why)
        pass_remark(r->c, n, "%s", why);
    return !why;
}

/* Where integers go on as floats, or where ONNX would have none. */
static bool is_wanted(const Reals *r, const Node *n) {
    if (node_on_integers(n))
        return true;
    if (!reads_twin(r, n))
        return false;
    return is_onnx_quantize(n) || is_onnx_dequantize(n) || node_cast(n) || node_is(n, "BitShift") ||
           (keeps_integers(n) && !node_interpolates(n)) ||
           (scaling_is_sum(n) && elem_bits(n->out[0]->type.elem) >= 32);
}

/* Aidge states int32 for the sums of its quantized branches. */
static void warn_if_wraps(const Reals *r, const Node *n) {
    if (!(scaling_is_sum(n) || node_is(n, "Mul")) || !reads_twin(r, n) || !is_int(n->out[0]) ||
        elem_bits(n->out[0]->type.elem) >= 32)
        return;
    const char *e = elem_name(n->out[0]->type.elem);
    pass_remark(r->c, n, "it computes in %s and wraps around", e);
    diag_warning(r->b.d, n->loc,
                 "%s computes in %s and wraps around at its ends; a result stated as int32 would "
                 "not",
                 node_text(n), e);
}

static void convert_graph(Graph *g, void *ctx) {
    Reals *r = ctx;
    FOR_NODES(n, g)
    if (is_wanted(r, n))
        convert_to_reals(r, n);
}

static void look_at_sums(Graph *g, void *ctx) {
    FOR_NODES(n, g) warn_if_wraps(ctx, n);
}

bool pass_raise_integer_form(Module *m, PassContext *c) {
    Reals r = {.b = quant_build_new(m, c, "raise-integer-form"),
               .c = c,
               .m = m,
               .uses = uses_new(m),
               .twins = map_new(m->scratch)};
    module_each_graph(m, convert_graph, &r);
    module_each_graph(m, look_at_sums, &r);
    edit_order(m);
    edit_drop_unread(m, r.casts, r.n_casts);
    edit_sweep(m);
    return true;
}
