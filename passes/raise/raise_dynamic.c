/* Products with parameters computed at run time, as lower_dynamic.c and onnxruntime's
 * quantize_dynamic write them, to types: QuantizeLinear to `uint8q<dynamic>`, then Conv or MatMul
 * on the integers.
 *
 *   DynamicQuantizeLinear -> MatMulInteger or ConvInteger -> Cast -> Mul by Mul of the scales
 *   DynamicQuantizeLinear -> com.microsoft::MatMulIntegerToFloat
 *   com.microsoft::DynamicQuantizeMatMul
 *
 * and com.microsoft's other operators with an input quantized at run time (raise_form.c). What does
 * not fit stays as it is; nothing fails. */
#include "ir/ops/qop.h"
#include "passes/edit.h"
#include "passes/raise/raise.h"

typedef struct Found {
    Value *x, *w;        /* the float input, the integer weights */
    Value *scale, *zp;   /* constants of w; zp may be NULL */
    Value *bias;         /* added behind, or NULL */
    Node *last;          /* whose result the product's is; it goes */
    const Node *product; /* has the attributes */
    Node *dynamic;       /* DynamicQuantizeLinear, or NULL */
    bool conv;
} Found;

typedef struct RaiseDynamic {
    Raise *r;
    Map *inputs; /* by float value: its QuantizeLinear's result */
} RaiseDynamic;

static Node *def_of(const Value *v, const char *op) {
    return v && v->def && node_is(v->def, op) ? v->def : NULL;
}

static bool is_output(const Node *n, size_t i, const Value *v) {
    return n && v && n->n_out > i && n->out[i] == v;
}

/* Of the product's result: what scales it must not have more dimensions. */
static int lowest_rank(const Node *product) {
    Type y = product->out[0]->type, w = product->in[1] ? product->in[1]->type : TYPE_UNKNOWN;
    if (y.kind == TYPE_TENSOR && y.rank >= 0)
        return y.rank;
    if (w.kind != TYPE_TENSOR || w.rank < 2)
        return 0;
    return node_is(product, "ConvInteger") ? w.rank : w.rank - 1;
}

/* Cast to float, Mul by Mul(scale of x, scale of w), in any order of operands. */
static bool find_scales(const Raise *r, const Node *product, Found *f) {
    Node *cast = uses_only_node(r->uses, product->out[0]);
    bool is_float = cast && node_cast(cast) == ELEM_FLOAT;
    Node *mul = is_float ? uses_only_node(r->uses, cast->out[0]) : NULL;
    if (!mul || !node_is(mul, "Mul") || mul->graph != product->graph)
        return false;
    Node *both = def_of(mul->in[mul->in[0] == cast->out[0]], "Mul");
    if (!both)
        return false;
    bool second = is_output(f->dynamic, 1, both->in[1]);
    if (!second && !is_output(f->dynamic, 1, both->in[0]))
        return false;
    f->scale = both->in[!second];
    f->last = mul;
    const Tensor *t = value_data(f->scale);
    return t && t->rank <= lowest_rank(product);
}

static bool find(const Raise *r, Node *n, Found *f) {
    *f = (Found){.product = n, .last = n, .conv = node_is(n, "ConvInteger")};
    if (f->conv || node_is(n, "MatMulInteger")) {
        f->dynamic = n->in[0] ? def_of(n->in[0], "DynamicQuantizeLinear") : NULL;
        if (!is_output(f->dynamic, 0, n->in[0]) || !is_output(f->dynamic, 2, node_input(n, 2)) ||
            !find_scales(r, n, f))
            return false;
        f->zp = node_input(n, 3);
    } else if (node_is_in(n, "com.microsoft", "MatMulIntegerToFloat")) {
        f->dynamic = n->in[0] ? def_of(n->in[0], "DynamicQuantizeLinear") : NULL;
        if (!is_output(f->dynamic, 0, n->in[0]) || !is_output(f->dynamic, 1, node_input(n, 2)) ||
            !is_output(f->dynamic, 2, node_input(n, 4)))
            return false;
        f->scale = node_input(n, 3);
        f->zp = node_input(n, 5);
        f->bias = node_input(n, 6);
    } else if (node_is_in(n, "com.microsoft", "DynamicQuantizeMatMul")) {
        f->scale = node_input(n, 2);
        f->zp = node_input(n, 3);
        f->bias = node_input(n, 4);
    } else {
        return false;
    }
    f->x = f->dynamic ? f->dynamic->in[0] : n->in[0];
    f->w = node_input(n, 1);
    return f->x && f->w && f->scale && n->n_out == 1;
}

/* Whether a vector of `n` numbers stands along the axis that is `behind` axes before the last. */
static bool is_along(const Tensor *t, size_t n, int behind) {
    if (t->count == 1)
        return true;
    return t->count == n && t->rank > behind && t->dims[t->rank - 1 - behind] == (int64_t)n;
}

/* The type of the weights; NULL where it is none. */
static const Quant *weight_type(Raise *r, const Found *f) {
    const Tensor *w = value_data(f->w), *s = value_data(f->scale),
                 *z = f->zp ? value_data(f->zp) : NULL;
    if (!w || !w->data || !s || !s->data || s->elem != ELEM_FLOAT || (f->zp && (!z || !z->data)) ||
        w->rank < 2 || (w->elem != ELEM_INT8 && w->elem != ELEM_UINT8))
        return NULL;
    int axis = f->conv ? 0 : w->rank - 1;
    size_t n = (size_t)w->dims[axis];
    if (!is_along(s, n, f->conv ? w->rank - 2 : 0) || (z && z->count != 1 && z->count != n) ||
        (!f->conv && w->rank > 2 && (s->count > 1 || (z && z->count > 1))))
        return NULL;
    size_t count = s->count > 1 || (z && z->count > 1) ? n : 1;
    return raise_weights(r, w->elem, axis, count, s, z, 1);
}

static Value *quantized(RaiseDynamic *d, const Found *f) {
    Raise *r = d->r;
    Str key = {(const char *)&f->x->id, sizeof f->x->id};
    Value *known = map_get(d->inputs, key);
    if (known)
        return known;
    Quant *q = NEW(r->b.a, Quant);
    *q = (Quant){.kind = QUANT_DYNAMIC,
                 .storage = ELEM_UINT8,
                 .hi = 255,
                 .expressed = ELEM_FLOAT,
                 .scale_type = ELEM_FLOAT};
    Node *n = build_node(&r->b, f->dynamic ? f->dynamic : f->product, "QuantizeLinear", STR_NONE,
                         OPERANDS(f->x));
    Type t = f->x->type.kind == TYPE_TENSOR ? f->x->type : type_tensor(ELEM_FLOAT, -1, NULL);
    if (f->dynamic)
        n->name = f->dynamic->name;
    n->loc = f->product->loc;
    node_add_output(n, 0, derived_name(&r->b, f->x->name, "_quantized"), type_quantized(t, q));
    place_behind(f->x, n, f->last);
    op_resolve(n, r->b.d);
    map_set(d->inputs, key, n->out[0]);
    return n->out[0];
}

Str raise_float_name(Str name) {
    size_t n = strlen("_quant");
    return name.n > n && str_ends(name, "_quant") ? (Str){name.s, name.n - n} : name;
}

static void expand(RaiseDynamic *d, const Found *f, const Quant *q) {
    Raise *r = d->r;
    Value *y = f->last->out[0], *x = quantized(d, f);
    Node *n = build_node(&r->b, f->product, f->conv ? "Conv" : "MatMul", STR_NONE,
                         OPERANDS(x, raise_const(r, f->w, q)));
    n->name = raise_float_name(f->product->name);
    if (f->conv) {
        n->n_attrs = f->product->n_attrs;
        n->attrs = arena_copy(r->b.a, f->product->attrs, n->n_attrs * sizeof *n->attrs);
    }
    if (f->bias) {
        Value *product = build_before(&r->b, f->last, n, y->name, "_MatMul", y->type);
        n = build_node(&r->b, f->product, "Add", STR_NONE, OPERANDS(product, f->bias));
    }
    build_in_place(&r->b, f->last, n);
}

static Value *form_input(void *ctx, Node *user, Value *x, Node *dynamic) {
    return quantized(ctx, &(Found){.x = x, .dynamic = dynamic, .product = user, .last = user});
}

static void raise_graph(Graph *g, void *ctx) {
    RaiseDynamic *d = ctx;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        Found f;
        if (raise_form(d->r, n, form_input, d))
            continue;
        const Quant *q = find(d->r, n, &f) ? weight_type(d->r, &f) : NULL;
        if (!q)
            continue;
        if (f.last == next)
            next = next->next;
        expand(d, &f, q);
    }
}

/* What led to a product that went: nobody reads it any more. From the end, as each frees others. */
static bool remove_dead(Graph *g, const Uses *u) {
    bool any = false;
    for (Node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        bool ours = node_is(n, "DynamicQuantizeLinear") || node_is(n, "MatMulInteger") ||
                    node_is(n, "ConvInteger") || node_cast(n) || node_is(n, "Mul");
        bool used = !ours;
        const Use *use;
        for (size_t i = 0; i < n->n_out && !used; i++)
            used = n->out[i] && uses_of(u, n->out[i], &use);
        if (!used) {
            node_remove(n);
            any = true;
        }
    }
    return any;
}

typedef struct Sweep {
    const Uses *u;
    bool any;
} Sweep;

static void sweep_graph(Graph *g, void *ctx) {
    Sweep *s = ctx;
    s->any = remove_dead(g, s->u) || s->any;
}

void raise_dynamic(Raise *r) {
    RaiseDynamic d = {r, map_new(r->b.a)};
    r->uses = uses_new(r->m);
    raise_each_graph(r->m, raise_graph, &d);
    edit_order(r->m);
    Sweep s = {.any = map_size(d.inputs) > 0};
    while (s.any) { /* Mul, Cast, MatMulInteger, DynamicQuantizeLinear */
        s = (Sweep){.u = uses_new(r->m)};
        raise_each_graph(r->m, sweep_graph, &s);
    }
}
