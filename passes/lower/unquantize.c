/* The float model behind a quantized one: every value is the real number that it stands for, and
 * nothing is rounded. Constants keep the numbers of their integers, which is all that is left of
 * the weights that the model was made from. Quantizers let a Relu or Clip go where integers end at
 * its bounds; it is written again there. */
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/quant_build.h"

#include <math.h>

static const char PASS_NAME[] = "unquantize";

typedef struct Cut { /* a result whose integers end where a Relu or a Clip would */
    Node *n;
    float high; /* INFINITY of a Relu */
} Cut;

typedef struct Unquantize {
    Module *m;
    PassContext *c;
    QuantBuild b;
    Uses *uses;
    Cut *cuts;
    size_t n_cuts, cap_cuts;
    bool ok;
} Unquantize;

/* ---- where integers end ---- */

/* What an activation is quantized to, be it true or `~`; NULL where no end is that of all. */
static const Quant *grid_of(const Value *v) {
    const Quant *q =
        v && v->type.kind == TYPE_TENSOR && v->kind != VALUE_CONST ? v->type.quant : NULL;
    bool ends = q && q->kind == QUANT_PARAMS && quant_is_integers(q) && quant_is_per_tensor(q);
    return ends && elem_bits(q->storage) <= 16 ? q : NULL;
}

static bool is_never_negative(const Value *v) {
    const Quant *q = grid_of(v);
    return q && quant_zp(q, 0) == quant_lo(q);
}

/* The end of the integers where that is 6, as Relu6 has it. */
static float high_end(const Quant *q) {
    double end = (double)quant_scale(q, 0) * (double)(quant_hi(q) - quant_zp(q, 0));
    return fabs(end - 6) <= 6 * 0x1p-20 ? 6 : INFINITY;
}

/* Whether operands that are never negative, as all of `n` are, make such a result. */
static bool keeps_sign(const Node *n) {
    const QuantRule *r = &n->def->quant;
    bool one = rule_single_data(n) >= 0;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(r, i) && !is_never_negative(n->in[i]))
            return false;
    return r->adds || r->scaled.multiplies || (one && r->scaled.homogeneous);
}

static bool cuts(const Node *n, float high) {
    float lo, hi;
    if (!n->def || n->def->quant.kind != QUANT_CLAMP || !n->def->quant.clamp)
        return false;
    OpCtx c = op_ctx(n, NULL);
    return n->def->quant.clamp(&c, &lo, &hi) && lo >= 0 && hi <= high;
}

static bool is_cut_behind(const Unquantize *u, const Value *y, float high) {
    const Use *use;
    size_t n = uses_of(u->uses, y, &use);
    for (size_t i = 0; i < n; i++)
        if (!use[i].node || !cuts(use[i].node, high))
            return false;
    return n > 0;
}

/* Whether a product or a sum that `n` computes may be below 0. Behind a function of one number
 * nobody has a Relu. */
static bool may_be_negative(const Node *n) {
    const QuantRule *r = n && n->def ? &n->def->quant : NULL;
    if (!r || r->fixed_output)
        return false;
    return r->kind == QUANT_MAC || (r->kind == QUANT_COMPUTE && !r->curve && !keeps_sign(n));
}

static void look_for_cut(Unquantize *u, Node *n) {
    const Value *y = n->n_out == 1 ? n->out[0] : NULL;
    if (!y || !is_never_negative(y))
        return;
    float high = high_end(y->type.quant);
    bool sums = may_be_negative(n) || (high < INFINITY && n->def && n->def->quant.adds);
    if (!sums || is_cut_behind(u, y, high))
        return;
    Cut cut = {n, high};
    ARENA_PUSH(u->m->arena, u->cuts, u->n_cuts, u->cap_cuts, cut);
}

/* `n` cuts its first operand off at 0 and at `high`. */
static void become_cut(Unquantize *u, Node *n, float high) {
    bool relu = high == INFINITY;
    n->op = relu ? STR("Relu") : STR("Clip");
    if (!relu && module_opset(u->m, STR("")) >= 11) {
        set_operand(n, 1, build_float(&u->b, n->out[0]->name, "_min", 0));
        set_operand(n, 2, build_float(&u->b, n->out[0]->name, "_max", high));
    } else if (!relu) {
        node_set_float(n, "min", 0);
        node_set_float(n, "max", high);
    }
    op_resolve(n, u->c->d);
}

static void write_cut(Unquantize *u, const Cut *cut) {
    Value *y = cut->n->out[0];
    Node *to = build_node(&u->b, cut->n, "Relu", STR_NONE, OPERANDS(y));
    node_follow(cut->n, 0, to, derived_name(&u->b, y->name, "_before"), y->type);
    become_cut(u, to, cut->high);
}

/* ---- values and conversions ---- */

static void make_real(Value *v, void *ctx) {
    Unquantize *u = ctx;
    Type t = v->type;
    if (t.kind != TYPE_TENSOR || !t.quant || (t.tilde && !elem_is_float(t.elem)))
        return;
    if (v->data && type_is_quantized(t))
        v->data = const_dequantize(u->m->arena, v->data, t.quant);
    v->type = real_type(t);
    v->stated = NULL;
}

static void pass_on(Unquantize *u, Node *n) {
    node_becomes(n, PASS_NAME);
    n->domain = STR_NONE;
    n->op = STR("Identity");
    n->n_in = 1;
    n->n_attrs = 0;
    op_resolve(n, u->c->d);
}

/* A conversion between types rounds, and cuts off what the new integers do not hold. */
static void convert(Unquantize *u, Node *n) {
    const Value *x = n->in[0], *y = n->out[0];
    const Quant *q = is_never_negative(y) ? y->type.quant : NULL;
    float high = q ? high_end(q) : INFINITY;
    bool cut = q && !is_cut_behind(u, y, high) &&
               (grid_of(x) ? !is_never_negative(x) : may_be_negative(x->def));
    pass_on(u, n);
    if (cut)
        become_cut(u, n, high);
}

/* Integers of one scale that are read as those of another: a factor. */
static void multiply(Unquantize *u, Node *n) {
    const Quant *x = n->in[0]->type.quant, *y = n->out[0]->type.quant;
    bool factor = x && y && quant_is_per_tensor(x) && quant_is_per_tensor(y) &&
                  x->kind == QUANT_PARAMS && y->kind == QUANT_PARAMS &&
                  quant_zp(x, 0) == quant_zp(y, 0);
    if (!factor) {
        u->ok = diag_error(u->c->d, n->loc,
                           "integers are read as those of another zero point or "
                           "of other axes here, which is no factor");
        return;
    }
    float by = (float)((double)quant_scale(y, 0) / (double)quant_scale(x, 0));
    pass_on(u, n);
    n->op = STR("Mul");
    node_add_input(n, build_float(&u->b, n->out[0]->name, "_factor", by));
    op_resolve(n, u->c->d);
}

static void look_at_nodes(Graph *g, void *ctx) {
    Unquantize *u = ctx;
    FOR_NODES(n, g) {
        if (is_reinterpret(n))
            multiply(u, n);
        else if (is_typed_quantize(n) || is_typed_dequantize(n) || is_requantize(n))
            convert(u, n);
        else if (node_conversion(n) != CONVERT_NONE || qop_find(n->domain, n->op))
            u->ok =
                diag_error(u->c->d, n->loc,
                           "%s cannot become float: no type says what it quantizes", node_text(n));
        else
            look_for_cut(u, n);
    }
}

bool pass_unquantize(Module *m, PassContext *c) {
    Unquantize u = {
        .m = m, .c = c, .b = quant_build_new(m, c, PASS_NAME), .uses = uses_new(m), .ok = true};
    module_each_graph(m, look_at_nodes, &u);
    module_each_value(m, make_real, &u);
    for (size_t i = 0; i < u.n_cuts; i++)
        write_cut(&u, &u.cuts[i]);
    drop_unused_quants(m);
    return u.ok;
}
