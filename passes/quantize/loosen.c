/* Makes decisions of quantized types, as true-quant's inverse: int8q<...> becomes float ~
 * int8q<...>, constants the real numbers that their integers stand for, which give the same
 * integers again. Then what was left float beside them can be decided, too. */
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/quant_build.h"
#include "passes/quantize/loosen.h"

static const char PASS_NAME[] = "loosen";

/* ---- whether it can be done ---- */

static bool is_typed(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && type_is_quantized(v->type);
}

/* What `~` can say of it, or of a bias, which follows by itself. */
static bool can_be_real(const Value *v) {
    const Quant *q = v->type.quant;
    if (q->kind == QUANT_UNKNOWN && v->kind != VALUE_CONST)
        return true;
    if (q->kind != QUANT_PARAMS || !quant_is_integers(q) || q->expressed != ELEM_FLOAT ||
        quant_is_wide(q))
        return false;
    return v->kind == VALUE_CONST || (quant_is_per_tensor(q) && elem_bits(q->storage) <= 16);
}

typedef struct Check {
    const Graph *main;
    bool typed;
    const Value *first; /* that stands against it, NULL: none */
    const char *why;
} Check;

static void stands_against(Check *c, const Value *v, const char *why) {
    c->first = c->why ? c->first : v;
    c->why = c->why ? c->why : why;
}

static void check_value(Value *v, void *ctx) {
    Check *c = ctx;
    if (!is_typed(v))
        return;
    c->typed = true;
    if (v->kind == VALUE_INPUT)
        stands_against(c, v, "takes integers from outside");
    else if (v->graph != c->main)
        stands_against(c, v, "holds integers in a body");
    else if (v->kind == VALUE_CONST && v->type.quant->kind == QUANT_UNKNOWN)
        stands_against(c, v, "holds integers without a scale");
    else if (!can_be_real(v))
        stands_against(c, v, "has parameters that no decision states");
}

/* What a body reads of the graph around it: only the nodes of that become float. */
static void check_body(Graph *g, void *ctx) {
    Check *c = ctx;
    if (g == c->main)
        return;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && is_typed(n->in[i]))
            stands_against(c, n->in[i], "is read in a body");
    for (size_t i = 0; i < g->n_out; i++)
        if (g->out[i] && is_typed(g->out[i]))
            stands_against(c, g->out[i], "is read in a body");
}

static Check check(Module *m) {
    Check c = {.main = m->graph};
    module_each_value(m, check_value, &c);
    module_each_graph(m, check_body, &c);
    for (size_t i = 0; i < m->graph->n_out; i++)
        if (is_typed(m->graph->out[i]))
            stands_against(&c, m->graph->out[i], "gives integers to the outside");
    FOR_NODES(n, m->graph)
    if (is_reinterpret(n))
        stands_against(&c, n->out[0], "takes integers for others");
    return c;
}

bool can_loosen(Module *m) {
    Check c = check(m);
    return c.typed && !c.why;
}

const char *why_not_loosen(Module *m, const Value **at) {
    Check c = check(m);
    *at = c.first;
    return c.why;
}

/* ---- conversions ---- */

typedef struct Loosen {
    Module *m;
    PassContext *c;
    const Uses *uses;
    UniqueNames *names;
} Loosen;

/* Whether what is converted here is converted to the same wherever it is, and does not go out. */
static bool has_one_grid(const Loosen *l, const Value *x, const Quant *q) {
    const Use *use;
    size_t n = uses_of(l->uses, x, &use);
    for (size_t i = 0; i < n; i++) {
        const Node *to = use[i].node;
        if (!to || (is_typed_quantize(to) && !quant_equal(to->out[0]->type.quant, q)))
            return false;
    }
    return x->type.elem == ELEM_FLOAT && (!x->type.quant || quant_equal(x->type.quant, q));
}

static void quantize(Loosen *l, Node *n) {
    Value *x = n->in[0], *y = n->out[0];
    const Quant *q = y->type.quant;
    if (!has_one_grid(l, x, q)) {
        edit_pass_on(n, PASS_NAME, l->c->d);
        return;
    }
    if (!x->type.quant)
        x->type = type_tilde(x->type, q);
    value_replace(l->m, l->uses, y, x);
    node_remove(n);
}

static void dequantize(Loosen *l, Node *n) {
    Value *y = n->in[0], *z = n->out[0];
    if (value_is_output(z) && (value_is_output(y) || !y->def)) {
        edit_pass_on(n, PASS_NAME, l->c->d);
        return;
    }
    if (value_is_output(z))
        edit_take_name(z, y);
    value_replace(l->m, l->uses, z, y);
    node_remove(n);
}

static void convert(Loosen *l, Node *n) {
    if (is_typed_quantize(n))
        quantize(l, n);
    else if (is_typed_dequantize(n))
        dequantize(l, n);
    else if (is_requantize(n))
        edit_pass_on(n, PASS_NAME, l->c->d);
}

/* Floats of 24 bits may round what has 32. */
static void check_integers(const Value *v, const Tensor *real, Diags *d) {
    const Quant *q = v->type.quant;
    const Tensor *t = v->data;
    for (size_t i = 0; elem_bits(q->storage) > 16 && i < t->count; i++) {
        int64_t was = tensor_int(t, i);
        float x = (float)tensor_float(real, i);
        int64_t is = quant_of_real(q, quant_index(q, t->rank, t->dims, i), x);
        if (was == is)
            continue;
        diag_warning(d, v->loc,
                     "element %zu of \"%s\" is %lld as a float and %lld as an integer: the next of "
                     "24 bits",
                     i, diag_name(d, v->name), (long long)is, (long long)was);
        return;
    }
}

static void make_real(Value *v, void *ctx) {
    Loosen *l = ctx;
    const Quant *q = v->type.quant;
    if (!is_typed(v))
        return;
    if (v->data) {
        Tensor *real = const_dequantize(l->m->arena, v->data, q);
        check_integers(v, real, l->c->d);
        v->data = real;
    }
    bool bias = v->kind == VALUE_CONST && elem_bits(q->storage) > 16;
    if (bias && pass_made(&v->from, PASS_true_quant))
        v->name = unique_name(l->names, base_name(v->name)); /* it is to be named anew */
    v->type = bias ? real_type(v->type) : type_tilde(real_type(v->type), q);
    v->stated = NULL;
}

bool pass_loosen(Module *m, PassContext *c) {
    if (!can_loosen(m))
        return true;
    c->on_grids = true;
    /* What takes a value's place was made before it, so readers that it gets are not asked for. */
    Arena *outer = scratch_begin(m);
    Loosen l = {.m = m, .c = c, .uses = uses_new(m)};
    for (Node *n = m->graph->first, *next; n; n = next) {
        next = n->next;
        convert(&l, n);
    }
    scratch_end(m, outer);
    l.names = unique_names_new(m);
    module_each_value(m, make_real, &l);
    edit_sweep(m);
    drop_unused_quants(m);
    return true;
}
