#include "compiler/emit_scheme.h"
#include "passes/quantize/rules.h"

/* What no rule said. */
static void add_defaults(const Job *j, Scheme *s, Arena *a) {
    bool statically = !j->o->dynamic && !j->o->weight_only;
    SchemeRule r = scheme_rule(SCHEME_ALL, NULL, LOC_NONE);
    SchemeSetting *w = &r.set[SCHEME_WEIGHTS];
    const TargetType *t = &j->ctx.target->weights;
    w->said = w->has_grain = true;
    w->channel = t->channel;
    w->per_tensor = !t->channel;
    w->storage = t->storage;
    w->sym = t->sym;
    scheme_add(s, a, r);
    if (!statically) /* rules about activations do nothing there */
        return;
    r = scheme_rule(SCHEME_ALL, NULL, LOC_NONE);
    SchemeSetting *x = &r.set[SCHEME_ACTIVATIONS];
    x->said = true;
    x->storage = j->ctx.target->activations.storage;
    x->sym = j->ctx.target->activations.sym;
    scheme_add(s, a, r);
}

typedef struct Decisions {
    const Job *j;
    Uses *uses;
    Scheme *s;
    Arena *a;
    Map *known; /* by name: the rule of a value, as index + 1 */
    bool ok;
} Decisions;

Str decision_name(const Job *j, const Value *v) {
    bool made = j->o->dynamic || pass_made(&v->from, PASS_decide) ||
                pass_made(&v->from, PASS_decide_weights);
    bool from = v->kind == VALUE_CONST && made && v->from.n && !v->from.from[0].op.s;
    return from ? v->from.from[0].name : v->name;
}

/* Weights of LSTM and the like are quantized by their own numbers alone. */
static bool is_of_form(const Decisions *d, const Value *v) {
    const Use *use;
    return uses_of(d->uses, v, &use) && use[0].node && use[0].node->def &&
           use[0].node->def->dynamic.op;
}

static void add_value(Value *v, void *ctx) {
    Decisions *d = ctx;
    const Quant *q = v->type.quant;
    if (!q || q->kind != QUANT_PARAMS || (q->storage == ELEM_INT32 && v->kind == VALUE_CONST) ||
        (d->j->o->dynamic && is_of_form(d, v)))
        return;
    Str name = decision_name(d->j, v);
    if (!quant_is_integers(q)) {
        diag_warning(d->j->d, v->loc, "'%s' is left out: no rule quantizes to %s",
                     diag_name(d->j->d, name), elem_name(q->storage));
        return;
    }
    size_t known = (size_t)map_get(d->known, name);
    if (known && quant_equal(d->s->rules[known - 1].set[SCHEME_ITSELF].fixed, q))
        return;
    if (known) {
        d->ok = diag_error(d->j->d, v->loc,
                           "'%s' is quantized in two ways, by two of its readers: a scheme has one "
                           "rule for each value",
                           diag_name(d->j->d, name));
        return;
    }
    SchemeRule r = scheme_rule(SCHEME_VALUE, scheme_glob_of(d->a, name).s, LOC_NONE);
    r.set[SCHEME_ITSELF].said = true;
    r.set[SCHEME_ITSELF].storage = q->storage;
    r.set[SCHEME_ITSELF].fixed = q;
    scheme_add(d->s, d->a, r);
    map_set(d->known, name, (void *)d->s->n);
}

/* A node that computes in float, as what it reads has no integers: its result is quantized for who
 * reads that, and the rule about the result would make the node integer. */
static bool is_float_before_integers(const Node *n) {
    bool quantized = n->n_out && n->out[0] && n->out[0]->type.tilde && n->out[0]->type.quant;
    bool reads_floats = false;
    for (size_t i = 0; quantized && i < n->n_in; i++) {
        const Value *x = n->in[i];
        bool computed = x && x->kind != VALUE_CONST && x->type.kind == TYPE_TENSOR;
        reads_floats = reads_floats || (computed && elem_is_float(x->type.elem) && !x->type.quant);
    }
    return reads_floats;
}

/* A product of floats by weights in integers. */
static bool has_integer_weights(const Node *n) {
    size_t i = n->def && n->def->quant.kind == QUANT_MAC ? (size_t)n->def->quant.mac.weight : 0;
    const Value *w = i ? node_input(n, i) : NULL;
    return w && w->kind == VALUE_CONST && w->type.kind == TYPE_TENSOR && w->type.quant;
}

static void add_floats(Graph *g, void *ctx) {
    Decisions *d = ctx;
    FOR_NODES(n, g) {
        Str name = rule_name(n);
        if (!name.n || !is_float_before_integers(n))
            continue;
        SchemeRule r = scheme_rule(SCHEME_NODE, scheme_glob_of(d->a, name).s, LOC_NONE);
        if (has_integer_weights(n)) /* a node that is kept float has no such weights */
            r.set[SCHEME_IN].said = r.set[SCHEME_IN].is_float = true;
        else
            r.keep = 1;
        scheme_add(d->s, d->a, r);
    }
}

Str scheme_text(const Job *j, Module *m) {
    Scheme s = {0};
    Decisions d = {j, uses_new(m), &s, m->arena, map_new(m->arena), true};
    add_defaults(j, &s, m->arena);
    scheme_append(&s, m->arena, &j->ctx.scheme);
    for (size_t i = 0; i < s.n; i++) /* -keep=conv1: rules say which of the two it is */
        if (s.rules[i].of == SCHEME_OP_OR_NODE && !strpbrk(s.rules[i].pattern, "*?:") &&
            !onnx_schema_find(STR(""), str_from(s.rules[i].pattern), ONNX_MAX_OPSET))
            s.rules[i].of = SCHEME_NODE;
    module_each_graph(m, add_floats, &d);
    module_each_value(m, add_value, &d);
    Buf b = buf_new(m->arena);
    scheme_print(&b, &s);
    return d.ok ? buf_as_str(&b) : STR_NONE;
}
