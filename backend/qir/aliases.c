/* Names of quantizations. Those of the module's own lines persist; others get one from the value
 * that has them when they hold a vector or serve several values. */
#include "backend/qir/print.h"
#include "ir/ops/op.h"

typedef struct QuantUse {
    const Quant *quant;
    const Value *first;
    size_t n;
} QuantUse;

static Quant *find(const Printer *p, const Quant *q) {
    return map_get_at(p->quants, q);
}

const Quant *printed_quant(const Printer *p, const Quant *q) {
    const Quant *named = find(p, q);
    return named ? named : q;
}

/* Gives `q` a line of its own, after those it refers to. */
static void add_line(Printer *p, const Quant *q, Str base) {
    if (find(p, q))
        return;
    Quant *named = arena_copy(p->arena, q, sizeof *q);
    for (int i = 0; i < 2; i++)
        if (q->acc_quant[i]) {
            add_line(p, q->acc_quant[i], base);
            named->acc_quant[i] = find(p, q->acc_quant[i]);
        }
    named->alias = names_make(p->names, base.n ? base : STR("q"));
    map_set(p->named, named->alias, named);
    map_set_at(p->quants, q, named);
    ARENA_PUSH(p->arena, p->lines, p->n_lines, p->cap_lines, named);
}

/* A copy of a quantization that has a line, by its name: printed by that name too. */
static bool is_copy_of_line(Printer *p, const Quant *q) {
    Quant *line = q->alias.s ? map_get(p->named, q->alias) : NULL;
    if (!line)
        return false;
    Buf x = buf_new(p->arena), y = buf_new(p->arena);
    quant_print(&x, line);
    quant_print(&y, q);
    if (!str_eq(buf_as_str(&x), buf_as_str(&y)))
        return false;
    map_set_at(p->quants, q, line);
    return true;
}

/* ---- collecting ---- */

typedef struct Collector {
    Printer *printer;
    Map *uses;
} Collector;

static void collect_type(Collector *c, Type t, const Value *v) {
    for (; t.sub; t = *t.sub)
        ;
    const Quant *q = t.quant;
    Printer *p = c->printer;
    if (!q || find(p, q) || is_copy_of_line(p, q))
        return;
    QuantUse *use = map_get_at(c->uses, q);
    if (!use) {
        use = NEW(p->arena, QuantUse);
        use->quant = q;
        use->first = v;
        map_set_at(c->uses, q, use);
    }
    use->n++;
}

static void collect_graph(Graph *g, void *ctx) {
    for (size_t i = 0; i < g->n_in; i++)
        collect_type(ctx, g->in[i]->type, g->in[i]);
    for (size_t i = 0; i < g->n_consts; i++)
        collect_type(ctx, g->consts[i]->type, g->consts[i]);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            collect_type(ctx, n->out[i]->type, n->out[i]);
}

/* ---- biases ---- */

typedef struct Product { /* of a product whose bias has its scales */
    const Quant *bias, *of[2];
    const Value *operand[2];
    size_t n; /* values of that quantization, and rules of the scheme that name it */
} Product;

typedef struct Products {
    Printer *printer;
    Map *of; /* Product by its bias's Quant */
} Products;

static const Quant *typed(const Value *v) {
    const Quant *q = v && v->type.kind == TYPE_TENSOR && !v->type.tilde ? v->type.quant : NULL;
    return q && q->kind == QUANT_PARAMS && quant_is_integers(q) ? q : NULL;
}

static void note_product(Products *all, const Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    if (!r || r->kind != QUANT_MAC || !r->mac.bias)
        return;
    const Value *x = node_input(n, 0), *w = node_input(n, (size_t)r->mac.weight);
    const Value *b = node_input(n, (size_t)r->mac.bias);
    const Quant *q = typed(b);
    bool many = q && b->kind == VALUE_CONST && q->n_scale > all->printer->few;
    if (!many || !typed(x) || !typed(w) || !quant_is_per_tensor(typed(x)) ||
        quant_is_blocked(typed(w)) || map_get_at(all->of, q) ||
        !quant_equal(q, quant_product(all->printer->arena, typed(x), typed(w))))
        return;
    Product *p = NEW(all->printer->arena, Product);
    *p = (Product){.bias = q, .of = {typed(x), typed(w)}, .operand = {x, w}};
    map_set_at(all->of, q, p);
}

static void look_for_products(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    note_product(ctx, n);
}

static void count_use(const Products *all, const Quant *q) {
    Product *p = q ? map_get_at(all->of, q) : NULL;
    if (p)
        p->n++;
}

static void count_bias(Value *v, void *ctx) {
    count_use(ctx, typed(v));
}

/* value "b" !b: its line has to stay. */
static void count_rules(const Products *all, const Scheme *s) {
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < SCHEME_ROLES; k++)
            count_use(all, s->rules[i].set[k].fixed);
}

/* A bias says whose product its scales are, with a checksum: where one of these is edited, its
 * integers are for others. */
static void print_as_product(Printer *p, const Product *b) {
    Quant *acc = arena_copy(p->arena, b->bias, sizeof *acc);
    acc->kind = QUANT_ACC;
    acc->alias = STR_NONE;
    acc->has_sum = true;
    acc->sum = crc32_of(acc->scale, acc->n_scale * sizeof *acc->scale);
    for (int i = 0; i < 2; i++) {
        add_line(p, b->of[i], b->operand[i]->name);
        acc->acc_quant[i] = find(p, b->of[i]);
    }
    map_set_at(p->quants, b->bias, acc);
}

static void collect_products(Products *all) {
    Module *m = (Module *)all->printer->module;
    module_each_graph(m, look_for_products, all);
    module_each_value(m, count_bias, all);
    count_rules(all, &m->rules);
}

/* ---- all ---- */

/* In place: a copy without alias, so that it prints its parameters. */
static void print_in_place(Printer *p, const Quant *q, Str base) {
    Quant *plain = arena_copy(p->arena, q, sizeof *q);
    plain->alias = STR_NONE;
    for (int i = 0; i < 2; i++)
        if (q->acc_quant[i]) {
            add_line(p, q->acc_quant[i], base);
            plain->acc_quant[i] = find(p, q->acc_quant[i]);
        }
    map_set_at(p->quants, q, plain);
}

void name_quants(Printer *p) {
    const Module *m = p->module;
    p->quants = map_new(p->arena);
    p->named = map_new(p->arena);
    p->names = names_new(p->arena, p->arena);
    Products products = {p, map_new(p->arena)};
    collect_products(&products);
    for (size_t i = 0; i < m->n_quants; i++) {
        const Product *b = map_get_at(products.of, m->quants[i]);
        if (!b || b->n > 1)
            add_line(p, m->quants[i], m->quants[i]->alias);
    }
    for (size_t i = 0; i < map_size(products.of); i++) {
        const Product *b = map_value(products.of, i);
        if (b->n == 1)
            print_as_product(p, b);
    }
    Collector c = {p, map_new(p->arena)};
    module_each_graph((Module *)m, collect_graph, &c);
    for (size_t i = 0; i < map_size(c.uses); i++) {
        const QuantUse *use = map_value(c.uses, i);
        const Quant *q = use->quant;
        if (q->kind == QUANT_PARAMS && (q->n_scale > 1 || use->n > 1))
            add_line(p, q, use->first->name);
        else
            print_in_place(p, q, use->first->name);
    }
}

void print_type_named(Printer *p, Type t) {
    Type chain[2] = {t};
    if (t.quant)
        chain[0].quant = printed_quant(p, t.quant);
    if (!t.sub) {
        type_print(&p->b, chain[0]);
        return;
    }
    /* Containers are rare: their parts are copied to name what they hold. */
    Type *copy = arena_copy(p->arena, &t, sizeof t);
    for (Type *at = copy; at->sub; at = (Type *)at->sub) {
        Type *sub = arena_copy(p->arena, at->sub, sizeof t);
        if (sub->quant)
            sub->quant = printed_quant(p, sub->quant);
        at->sub = sub;
    }
    type_print(&p->b, *copy);
}
