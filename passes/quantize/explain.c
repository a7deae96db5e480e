#include "passes/quantize/explain.h"

#include "passes/edit.h"
#include "passes/quantize/masks.h"
#include "passes/quantize/spread.h"

/* "my.scheme:4: op Gemm weights int4q", "m.qir:9: ~ int4q<?>", "-weights", "by default" */
static void put_rule(Buf *b, PassContext *c, const SchemeRule *r) {
    if (!r) {
        buf_text(b, "by default");
        return;
    }
    int line = diags_line(c->d, r->loc);
    if (r->flag)
        buf_fmt(b, "%s%s", r->flag, r->said_as ? ", " : "");
    else if (line)
        buf_fmt(b, "%s:%d: ", diags_source_name(c->d, r->loc.source), line);
    else
        buf_fmt(b, "%s: ", diags_source_name(c->d, r->loc.source));
    if (r->said_as)
        buf_text(b, r->said_as);
    else if (!r->flag)
        scheme_rule_print(b, r);
}

static void put_property(Buf *b, PassContext *c, const char *what, const SchemeRule *r) {
    buf_fmt(b, "  %-24s ", what);
    put_rule(b, c, r);
    buf_byte(b, '\n');
}

static void put_type(Buf *b, PassContext *c, const Choice *o) {
    char text[64];
    IntRange r = choice_range(o);
    if (o->is_float)
        snprintf(text, sizeof text, "float");
    else if (o->has_range)
        snprintf(text, sizeof text, "%sq, %lld to %lld", elem_name(o->storage), (long long)r.lo,
                 (long long)r.hi);
    else
        snprintf(text, sizeof text, "%sq", elem_name(o->storage));
    put_property(b, c, text, o->by[CHOICE_TYPE]);
}

static void put_grain(Buf *b, PassContext *c, const Choice *o) {
    char text[64];
    int n = snprintf(text, sizeof text, "%s", SCHEME_WORD(channel, o->channel));
    if (o->block)
        snprintf(text + n, sizeof text - (size_t)n, " block(%lld)", (long long)o->block);
    put_property(b, c, text, o->by[CHOICE_GRAIN]);
}

/* Parameters that follow from the operator alone (Softmax), as decide.c takes them. */
static bool put_fixed(Buf *b, PassContext *c, const Value *v, const Choice *o) {
    const QuantRule *r = v->def && v->def->def ? &v->def->def->quant : NULL;
    const Quant *q = v->type.quant;
    float scale;
    int64_t zp;
    if (!r || !r->fixed_output || o->sym || o->has_range || o->reduce_range)
        return false;
    OpCtx of = op_ctx(v->def, c->d);
    if (!r->fixed_output(&of, q->storage, &scale, &zp) || quant_scale(q, 0) != scale ||
        quant_zp(q, 0) != zp)
        return false;
    buf_fmt(b, "  scale = %.9g, zero point = %lld: fixed for the results of %s\n", (double)scale,
            (long long)zp, v->def->def->name);
    return true;
}

/* The formula of params_from_minmax with the numbers in it. */
static void put_formula(Buf *b, const Uses *uses, const Value *v, const Choice *o) {
    const Quant *q = v->type.quant;
    float min, max;
    bool cut;
    if (!masked_range(uses, v, &min, &max, &cut))
        return;
    IntRange r = choice_range(o);
    double lo = min < 0 ? (double)min : 0, hi = max > 0 ? (double)max : 0;
    buf_text(b, v->kind == VALUE_CONST ? "  its numbers" : "  its statistics");
    if (v->stat && v->stat->assumed)
        buf_fmt(b, ", avg - %d std to avg + %d std", SPREAD_TIMES, SPREAD_TIMES);
    buf_fmt(b, ": %.9g to %.9g\n", (double)min, (double)max);
    if (cut)
        buf_text(b, "  what lies below that only masks elements of a Softmax\n");
    if (v->kind == VALUE_CONST) /* least squares, channels, room for the bias: more than a line */
        return;
    double most = -lo > hi ? -lo : hi;
    if (o->sym)
        buf_fmt(b, "  scale = 2 * %.9g / (%lld - %lld) = ", most, (long long)r.hi, (long long)r.lo);
    else
        buf_fmt(b, "  scale = (%.9g - %.9g) / (%lld - %lld) = ", hi, lo, (long long)r.hi,
                (long long)r.lo);
    buf_f32(b, quant_scale(q, 0));
    buf_fmt(b, "%s\n", o->pow2 ? ", rounded up to a power of two" : "");
    if (o->sym)
        buf_fmt(b, "  zero point = the middle = %lld\n", (long long)quant_zp(q, 0));
    else
        buf_fmt(b, "  zero point = rint(%lld - %.9g / scale) = %lld\n", (long long)r.lo, lo,
                (long long)quant_zp(q, 0));
}

/* A call that the value goes into or comes from may be taken apart around integers. */
static bool is_at_rest(const Node *n, const Value *v) {
    return !n->call || !v->type.quant;
}

/* Nodes that could not become integer around it. */
static void put_remarks(Buf *b, PassContext *c, const Value *v) {
    for (size_t i = 0; i < c->n_remarks; i++) {
        const Node *n = c->remarks[i].node;
        bool touches = v->def == n;
        for (size_t k = 0; !touches && k < n->n_in; k++)
            touches = n->in[k] == v;
        if (touches && is_at_rest(n, v))
            buf_fmt(b, "  %s stays float: %s\n", node_text(n->call ? n->call : n),
                    c->remarks[i].reason);
    }
}

void explain_value(Buf *b, PassContext *c, const Uses *uses, const Value *v, const Value *root,
                   const Choice *o) {
    buf_str(b, v->name);
    buf_text(b, ": ");
    if (v->type.quant)
        quant_print(b, v->type.quant);
    else
        buf_text(b, "float");
    buf_byte(b, '\n');
    if (root != v)
        buf_fmt(b, "  shares the parameters of %s, so that no requantization is needed\n",
                diag_name(c->d, root->name));
    put_type(b, c, o);
    if (o->fixed && v->type.quant)
        put_property(b, c, "these parameters", o->by[CHOICE_TYPE]);
    if (!o->fixed && !o->is_float) {
        const Quant *q = v->kind == VALUE_CONST ? v->type.quant : NULL;
        if (!o->sym && q && q->n_axes && choice_is_symmetric(c, o))
            buf_text(b, "  sym                      onnxruntime's kernels take one zero point for "
                        "all channels, whatever is asked for\n");
        else
            put_property(b, c, SCHEME_WORD(sym, o->sym), o->by[CHOICE_SYM]);
        put_property(b, c, SCHEME_WORD(pow2, o->pow2), o->by[CHOICE_POW2]);
        if (o->reduce_range)
            put_property(b, c, SCHEME_WORD(reduce_range, 1), o->by[CHOICE_REDUCE]);
        if (v->kind == VALUE_CONST)
            put_grain(b, c, o);
    }
    if (!o->fixed && root->type.quant && !put_fixed(b, c, root, o))
        put_formula(b, uses, root, o);
    put_remarks(b, c, v);
}

void explain_bias(Buf *b, PassContext *c, const Value *v, const Node *n) {
    const Value *w = n->in[n->def->quant.mac.weight];
    buf_fmt(b, "%s: ", diag_name(c->d, v->name));
    if (c->target->float_biases) {
        buf_fmt(b, "float\n  %s adds biases in float\n", c->target->runtime);
        return;
    }
    buf_fmt(b, "int32q\n  at the scale of the accumulator of %s, that of '%s'", node_text(n),
            diag_name(c->d, n->in[0]->name));
    buf_fmt(b, " times %s of '%s'\n", w->type.quant && w->type.quant->n_axes ? "those" : "that",
            diag_name(c->d, w->name));
}
