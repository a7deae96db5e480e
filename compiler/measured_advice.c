/* What may help where a measurement says little (compiler/measured.h): only what works for this
 * kind of result, the likeliest cause first. */
#include "compiler/measured.h"

typedef struct Causes {
    bool narrow_weights;    /* of less than 8 bits */
    bool wide;              /* some computed value has more than 8 bits */
    bool scales_its_inputs; /* before the first product: the model normalizes by itself */
    bool *behind;           /* by value id: behind a product */
} Causes;

static bool is_product(const Node *n) {
    return n->def && n->def->quant.kind == QUANT_MAC;
}

static bool scales_by_constants(const Node *n) {
    size_t computed = 0;
    for (size_t i = 0; i < n->n_in; i++)
        computed += n->in[i] && !value_is_const(n->in[i]);
    return n->def && n->def->affine && !is_product(n) && computed == 1;
}

static void look_at_node(Causes *c, const Node *n) {
    bool behind = is_product(n);
    for (size_t i = 0; i < n->n_in; i++)
        behind = behind || (n->in[i] && c->behind[n->in[i]->id]);
    const Value *w = is_product(n) ? n->in[n->def->quant.mac.weight] : NULL;
    if (w && w->type.quant && elem_bits(w->type.quant->storage) < 8)
        c->narrow_weights = true;
    if (!behind && scales_by_constants(n))
        c->scales_its_inputs = true;
    for (size_t i = 0; i < n->n_out; i++) {
        const Value *v = n->out[i];
        if (!v)
            continue;
        c->behind[v->id] = behind;
        c->wide = c->wide || (v->type.quant && elem_bits(v->type.quant->storage) > 8);
    }
}

static void layers_to_keep(Buf *to, const Job *j, const Measured *x) {
    if (j->o->weight_only || j->o->dynamic) /* which -min-sqnr is not about */
        buf_text(to, "more bits or smaller blocks lose less");
    else
        buf_fmt(to, "-min-sqnr=%d leaves float the layers that need it", MEASURED_LITTLE);
    for (size_t i = 0; i < x->n_layers; i++) {
        buf_text(to, i ? "," : "; those with the worst results are -keep=");
        buf_text(to, diag_name(j->d, scheme_glob_of(j->kept->arena, x->layers[i].name)));
    }
}

static void join(Buf *to, bool *any, const char *text) {
    if (*any)
        buf_text(to, "; ");
    buf_text(to, text);
    *any = true;
}

/* No float is allowed: there are only more bits, and another model. */
static void more_bits(Buf *to, const Causes *c, bool *any) {
    if (c->narrow_weights)
        join(to, any, "-weights=int8 gives weights more bits");
    if (!c->wide)
        join(to, any, "-activations=int16 gives 16 bits to what is computed");
    if (c->scales_its_inputs)
        join(to, any,
             "the model normalizes its inputs itself, which integers keep badly: better do it "
             "before the model");
    if (!*any)
        join(to, any, "without -integer-only layers can stay float");
}

const char *measured_advice(const Job *j, Module *m, const Measured *x) {
    Buf to = buf_new(j->kept->arena);
    Causes c = {.behind = NEW_ARRAY(m->arena, bool, m->n_values)};
    bool any = false;
    FOR_NODES(n, m->graph)
    look_at_node(&c, n);
    if (j->calib.method == CALIB_MOVING_AVERAGE) {
        buf_fmt(&to,
                "-calib-method=%s is a likely cause, as it cuts off what lies beyond the average "
                "range of %zu samples, where the default keeps all",
                j->o->calib_method, j->calibrated.samples);
        any = true;
    }
    if (j->o->integer_only) {
        more_bits(&to, &c, &any);
    } else {
        join(&to, &any, "");
        layers_to_keep(&to, j, x);
    }
    return buf_as_str(&to).s;
}
