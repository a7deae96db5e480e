/* See passes/raise/integer_classes.h. */
#include "passes/raise/integer_classes.h"

Classes classes_new(Raise *r) {
    Classes c = {.r = r, .n = r->m->n_values};
    c.parent = NEW_ARRAY(r->b.a, uint32_t, c.n);
    c.at = NEW_ARRAY(r->b.a, Class, c.n);
    c.wide = NEW_ARRAY(r->b.a, bool, c.n);
    for (uint32_t i = 0; i < c.n; i++) {
        c.parent[i] = i;
        c.at[i].lo = INT64_MAX;
        c.at[i].hi = INT64_MIN;
    }
    return c;
}

static uint32_t root(Classes *c, uint32_t i) {
    while (c->parent[i] != i)
        i = c->parent[i] = c->parent[c->parent[i]];
    return i;
}

Class *class_of(Classes *c, const Value *v) {
    return &c->at[root(c, v->id)];
}

bool class_may_raise(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && !type_is_quantized(v->type) &&
           elem_has_grid(v->type.elem);
}

void class_refuse(Classes *c, const Value *v, const char *why) {
    Class *k = class_of(c, v);
    if (!k->why)
        k->why = why;
}

bool class_equal_in_range(const Classes *c, const Quant *q, const Quant *dq) {
    bool bit = elem_bits(q->storage) == 1;
    if (!quant_is_integers(q) || !quant_is_integers(dq) || dq->has_range || !(q->has_range || bit))
        return false;
    Quant *all = quant_copy(c->r->b.a, q);
    all->has_range = false;
    if (bit)
        all->storage = onnx_storage(&c->r->b, q->storage);
    return quant_equal(all, dq);
}

/* The same integers can be read as numbers of both. */
static bool can_reinterpret(const Quant *x, const Quant *y) {
    return quant_is_integers(x) && quant_is_integers(y) && x->expressed == y->expressed &&
           elem_bits(x->storage) > 1 && elem_bits(y->storage) > 1;
}

void class_say(Classes *c, const Value *v, const Quant *q, bool by_dq) {
    Class *k = class_of(c, v);
    bool equal = !k->q || quant_equal(k->q, q) || (by_dq && class_equal_in_range(c, k->q, q)) ||
                 (k->by_dq && class_equal_in_range(c, q, k->q));
    if (!equal && !((by_dq || k->by_dq) && can_reinterpret(k->q, q))) {
        class_refuse(c, v, "its consumers and producers state different parameters");
    } else if (!k->q || (k->by_dq && !by_dq)) {
        k->q = q;
        k->by_dq = by_dq;
    }
}

void class_put(Class *k, int64_t lo, int64_t hi) {
    k->lo = lo < k->lo ? lo : k->lo;
    k->hi = hi > k->hi ? hi : k->hi;
}

void class_join(Classes *c, const Value *x, const Value *y) {
    uint32_t i = root(c, x->id), j = root(c, y->id);
    if (i == j)
        return;
    Class k = c->at[j];
    c->parent[j] = i;
    c->at[i].moved |= k.moved;
    c->at[i].cut |= k.cut;
    class_put(&c->at[i], k.lo, k.hi);
    if (k.q)
        class_say(c, x, k.q, k.by_dq);
    if (k.why)
        class_refuse(c, x, k.why);
}

const Quant *class_quant(Classes *c, const Value *v) {
    if (!class_may_raise(v) || v->id >= c->n || value_data(v))
        return NULL;
    const Class *k = class_of(c, v);
    return k->why ? NULL : k->q;
}

void class_decide(Value *v, void *classes) {
    Classes *c = classes;
    if (!class_may_raise(v) || value_data(v))
        return;
    uint32_t i = root(c, v->id);
    Class *k = &c->at[i];
    if (k->q && !k->why && k->moved && !quant_is_per_tensor(k->q))
        k->why = "moved integers have parameters per axis";
    if (k->q && !k->why && k->cut && !quant_zp_all_zero(k->q))
        k->why = "a Relu cuts the integers elsewhere than at their zero point";
    if (k->q && !k->why && k->lo <= k->hi && quant_is_integers(k->q) &&
        (k->lo < quant_lo(k->q) || k->hi > quant_hi(k->q)))
        k->why = "constants among them are outside of their range";
    if (k->q && k->why && i == v->id)
        diag_note(c->r->b.d, v->loc, "'%s' stays plain %s: %s", diag_name(c->r->b.d, v->name),
                  elem_is_int(v->type.elem) ? "integers" : elem_name(v->type.elem), k->why);
}
