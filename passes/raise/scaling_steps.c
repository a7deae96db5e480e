/* How much one step of each quantizer is worth. Chains of Round and Clip became types of scale 1;
 * here they get the scales that make their numbers real again, as far as the network says:
 *
 *   Mul(x, k), Q of a real x        the step is 1 / k (Div: the divisor), and the Mul goes
 *   DQ, Mul(k)                      the step is k, and the Mul goes
 *   DQ of step a, Mul(k), Q         the step is a / k, and the Mul goes: a requantization
 *   Add of DQs, Mul(k), Q           both operands have one step a; that of the sum is a / k
 *   a product of integer weights    none: its weights make up for any step (scaling_mac.c)
 *   what computes on the numbers    the step is 1, unless another is known: then it gets a
 *                                   reinterpretation of the same integers (scaling_numbers.c)
 *
 * These are ratios between steps: a forest in which each step is a multiple of its root's. A tree
 * that nothing ties to real numbers has step 1 at its root; one with contradictions has 1
 * everywhere and keeps its Muls. */
#include <math.h>

#include "passes/edit.h"
#include "passes/raise/raise_scaling.h"

typedef struct Step {
    Node *q;      /* the QuantizeLinear */
    Node *scaler; /* Mul or Div before it that goes, or NULL */
    Value *x;     /* what it scales */
    size_t parent;
    double times; /* the parent's step is to be multiplied by; of a root: its step, 0: any */
    bool broken;  /* of a root: contradictions */
    bool nearly;  /* it multiplied by a reciprocal */
} Step;

/* Who reads the integers as they are, v holding them as floats. */
typedef struct Reader {
    size_t i;
    Value *v;
    const Use *use;
    bool whole; /* nothing on the way makes fractions */
} Reader;

typedef struct Steps {
    Scaling *s;
    Map *at; /* place in `all`, by the integers' value */
    Step *all;
    size_t n, cap;
    Map *sums; /* Adds that are accounted for, by their results */
    Node **behind;
    size_t n_behind, cap_behind;
    Reader *readers;
    size_t n_readers, cap_readers;
} Steps;

/* ---- the forest ---- */

static size_t root(const Steps *t, size_t i, double *times) {
    *times = 1;
    for (; t->all[i].parent != i; i = t->all[i].parent)
        *times *= t->all[i].times;
    return i;
}

/* But for errors of floats, and some factors that make ties go up. */
static bool close_to(double x, double y) {
    return fabs(x / y - 1) < 0x1p-17;
}

static void fix(Steps *t, size_t i, double step) {
    double times;
    Step *r = &t->all[root(t, i, &times)];
    if (r->times != 0 && !close_to(r->times * times, step))
        r->broken = true;
    else if (r->times == 0)
        r->times = step / times;
}

/* The step of i is that of j, times `ratio`. */
static void relate(Steps *t, size_t i, size_t j, double ratio) {
    double ti, tj;
    size_t a = root(t, i, &ti), b = root(t, j, &tj);
    if (a == b) {
        t->all[a].broken |= !close_to(ti, tj * ratio);
        return;
    }
    double known = t->all[a].times;
    t->all[b].broken |= t->all[a].broken;
    t->all[a].parent = b;
    t->all[a].times = tj * ratio / ti;
    if (known != 0)
        fix(t, a, known);
}

/* ---- through nodes ---- */

/* Where k times the operand gives k times the result, for each k above 0. */
static bool is_homogeneous(const Node *n) {
    return scaling_commutes(n) || scaling_is_average(n) || node_is(n, "ReduceMean");
}

static bool is_join(const Node *n) {
    return n->def && n->def->quant.kind == QUANT_JOIN && n->n_out == 1;
}

static bool step_at(const Steps *t, const Value *ints, size_t *i) {
    const size_t *at = map_get(t->at, value_key(ints));
    if (at)
        *i = *at;
    return at != NULL;
}

typedef struct Tied {
    Steps *t;
    size_t first;
    bool any;
} Tied;

static bool tie_one(void *ctx, Value *ints) {
    Tied *all = ctx;
    size_t i;
    if (!step_at(all->t, ints, &i))
        return false;
    if (all->any)
        relate(all->t, i, all->first, 1);
    else
        all->first = i;
    return all->any = true;
}

/* The step of the integers that v holds as floats; what a join has it ties together. */
static bool step_behind(Steps *t, const Value *v, bool average, size_t *i) {
    Tied all = {t, 0, false};
    bool ok = scaling_behind(v, average ? is_homogeneous : scaling_keeps, tie_one, &all);
    *i = all.first;
    return ok;
}

/* ---- what is before a quantizer ---- */

/* The product that all of v comes from, alone: its Mul is its own affair. */
static const Node *product_before(const Steps *t, const Value *v) {
    for (;;) {
        const Node *n = v->def;
        Value *x;
        if (!n || !uses_only_node(t->s->uses, v))
            return NULL;
        if (scaling_is_product(n))
            return n;
        if (scaling_factor(n, "Mul", &x))
            v = x;
        else if (scaling_commutes(n))
            v = n->in[0];
        else
            return NULL;
    }
}

static void tie_before(Steps *t, size_t i) {
    Step *p = &t->all[i];
    Value *x = p->q->in[0];
    const Node *product = product_before(t, x);
    if (product && scaling_makes_up_for(t->s, product, p->q))
        return;
    const Node *n = x->def;
    const Tensor *mul = scaling_factor(n, "Mul", &p->x);
    const Tensor *div = mul ? NULL : scaling_factor(n, "Div", &p->x);
    const Tensor *by = mul ? mul : div;
    double step = 1; /* of one of the operand */
    if (by && by->count == 1) {
        float f = (float)tensor_float(by, 0);
        int e;
        float part = frexpf(f, &e);
        step = mul ? scaling_reciprocal(t->s, f) : f;
        p->scaler = x->def;
        p->nearly = mul && part > 0.5F * SCALING_MEAN_UP;
        x = p->x;
    }
    while (x->def && is_homogeneous(x->def))
        x = x->def->in[0];
    n = x->def;
    size_t a, b;
    if (step_behind(t, x, true, &a)) {
        relate(t, i, a, step);
    } else if (n && scaling_is_sum(n) && uses_only_node(t->s->uses, x) &&
               step_behind(t, n->in[0], true, &a) && step_behind(t, n->in[1], true, &b)) {
        relate(t, a, b, 1);
        relate(t, i, a, step);
        map_set(t->sums, value_key(x), p);
    } else {
        fix(t, i, step);
    }
}

/* ---- who reads what a quantizer yields ---- */

static void tie_behind(Steps *t, size_t i, Value *v, bool whole);

static void tie_user(Steps *t, size_t i, Value *v, bool whole, const Use *u) {
    Node *n = u->node;
    Value *x;
    size_t j;
    const Tensor *k = n ? scaling_factor(n, "Mul", &x) : NULL;
    Reader reader = {i, v, u, whole};
    if (!n) {
        ARENA_PUSH(t->s->b.a, t->readers, t->n_readers, t->cap_readers, reader);
    } else if ((is_own_quantize(n) && step_at(t, n->out[0], &j)) ||
               map_get(t->sums, value_key(n->out[0])) ||
               (u->index == 0 && scaling_takes_steps(t->s, n))) {
        return;
    } else if (k && k->count == 1 && x == v) {
        const Node *q = uses_only_node(t->s->uses, n->out[0]);
        if (q && is_own_quantize(q) && step_at(t, q->out[0], &j) && t->all[j].scaler == n)
            return;
        fix(t, i, (float)tensor_float(k, 0));
        ARENA_PUSH(t->s->b.a, t->behind, t->n_behind, t->cap_behind, n);
    } else if (is_homogeneous(n) && u->index == 0) {
        tie_behind(t, i, n->out[0], whole && scaling_keeps(n));
    } else if (is_join(n) && step_behind(t, n->out[0], false, &j)) {
        relate(t, i, j, 1);
        tie_behind(t, i, n->out[0], false); /* others may have other ranges */
    } else {
        ARENA_PUSH(t->s->b.a, t->readers, t->n_readers, t->cap_readers, reader);
    }
}

static void tie_behind(Steps *t, size_t i, Value *v, bool whole) {
    const Use *uses;
    size_t n = uses_of(t->s->uses, v, &uses);
    for (size_t k = 0; k < n; k++)
        tie_user(t, i, v, whole, &uses[k]);
}

static void tie_readers(Steps *t, size_t i) {
    const Use *uses;
    size_t n = uses_of(t->s->uses, t->all[i].q->out[0], &uses);
    for (size_t k = 0; k < n; k++)
        if (uses[k].node && is_own_dequantize(uses[k].node))
            tie_behind(t, i, uses[k].node->out[0], true);
}

/* Whether a step is known that is not 1. */
static bool has_step(const Steps *t, size_t i) {
    double times;
    const Step *r = &t->all[root(t, i, &times)];
    return r->times != 0 && !close_to(r->times * times, 1);
}

/* Those that find another step become what scaling_as_numbers serves. */
static void tie_numbers(Steps *t) {
    size_t kept = 0;
    for (size_t k = 0; k < t->n_readers; k++) {
        const Reader *r = &t->readers[k];
        if (r->whole && has_step(t, r->i))
            t->readers[kept++] = *r;
        else
            fix(t, r->i, 1);
    }
    t->n_readers = kept;
}

/* ---- the scales ---- */

static void find_steps(Graph *g, void *ctx) {
    Steps *t = ctx;
    FOR_NODES(n, g) {
        if (!is_own_quantize(n) || !n->out[0]->type.quant)
            continue;
        const Quant *q = n->out[0]->type.quant;
        if (!quant_is_per_tensor(q) || quant_scale(q, 0) != 1 || !quant_zp_all_zero(q))
            continue;
        size_t *at = NEW(t->s->b.a, size_t);
        *at = t->n;
        Step p = {.q = n, .parent = t->n};
        ARENA_PUSH(t->s->b.a, t->all, t->n, t->cap, p);
        map_set(t->at, value_key(n->out[0]), at);
    }
}

/* 0 where it is to stay 1. */
static double step(const Steps *t, size_t i) {
    double times;
    const Step *r = &t->all[root(t, i, &times)];
    double s = r->times == 0 ? times : r->times * times;
    return r->broken || !isnormal((float)s) ? 0 : s;
}

static void set_step(Steps *t, size_t i) {
    Step *p = &t->all[i];
    double s = step(t, i);
    if (s == 0)
        return;
    Value *y = p->q->out[0];
    Quant *q = quant_copy(t->s->b.a, y->type.quant);
    float scale = (float)s;
    q->scale = arena_copy(t->s->b.a, &scale, sizeof scale);
    y->type = type_quantized(real_type(y->type), q);
    map_set(t->s->steps, value_key(y), y);
    if (!p->scaler)
        return;
    if (p->nearly)
        scaling_by_reciprocal(t->s, p->q);
    node_absorb(p->q, p->scaler, t->s->b.pass);
    p->q->in[0] = p->x;
    scaling_leave(t->s, p->scaler);
}

/* A Mul behind that made the numbers real. */
static void drop_behind(Steps *t, Node *mul) {
    Value *x;
    const Tensor *k = scaling_factor(mul, "Mul", &x);
    size_t i;
    if (!step_behind(t, x, true, &i) || !close_to(step(t, i), (float)tensor_float(k, 0)))
        return;
    if (uses_is_output(t->s->uses, mul->out[0]) && value_is_output(x)) { /* under two names */
        mul->in[0] = x;
        edit_pass_on(mul, t->s->b.pass, t->s->b.d);
        return;
    }
    if (uses_is_output(t->s->uses, mul->out[0]))
        edit_take_name(mul->out[0], x);
    value_replace(t->s->m, t->s->uses, mul->out[0], x);
    scaling_leave(t->s, mul);
}

void scaling_steps(Scaling *s) {
    Steps t = {.s = s, .at = map_new(s->m->scratch), .sums = map_new(s->m->scratch)};
    s->uses = uses_new(s->m);
    s->steps = map_new(s->m->scratch);
    module_each_graph(s->m, find_steps, &t);
    for (size_t i = 0; i < t.n; i++)
        tie_before(&t, i);
    for (size_t i = 0; i < t.n; i++)
        tie_readers(&t, i);
    tie_numbers(&t);
    for (size_t i = 0; i < t.n; i++)
        set_step(&t, i);
    Map *made = map_new(s->m->scratch);
    for (size_t k = 0; k < t.n_readers; k++)
        if (step(&t, t.readers[k].i) != 0)
            scaling_as_numbers(s, made, t.readers[k].v, t.readers[k].use,
                               t.all[t.readers[k].i].q->out[0]->type.quant);
    for (size_t i = 0; i < t.n_behind; i++)
        drop_behind(&t, t.behind[i]);
}
