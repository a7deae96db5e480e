/* Rules in the text that speak of nothing but what is decided otherwise: what is written stays, so
 * they do nothing. A text that was decided by its own scheme obeys it, and nothing is said. */
#include "compiler/doubtful.h"

#include "passes/quantize/decide.h"
#include "passes/quantize/open.h"

typedef struct Heed { /* of one rule: the type that it states */
    size_t obeyed, other;
    Map *others;        /* values: several nodes may read a weight */
    const Value *first; /* of these */
    const Node *node;
    size_t floats; /* that stay so as they are written */
    const Value *first_float;
} Heed;

typedef struct Look {
    PassContext own; /* with the rules that are judged */
    const Uses *uses;
    const Scheme *rules;
    Heed *of; /* by index of the rule */
    Arena *arena;
} Look;

static bool is_obeyed(const Choice *x, const Quant *q) {
    return x->fixed ? quant_equal(x->fixed, q) : !x->is_float && x->storage == q->storage;
}

/* Of the rule that states its type, if that is one of those which are judged. */
static Heed *heed_of(Look *l, const Choice *x) {
    const SchemeRule *r = x->by[CHOICE_TYPE];
    bool judged = r && r >= l->rules->rules && r < l->rules->rules + l->rules->n;
    return judged ? &l->of[r - l->rules->rules] : NULL;
}

static void count(Look *l, const Choice *x, const Value *v) {
    const Quant *q = v->type.quant;
    Heed *h = heed_of(l, x);
    if (!h || !q->storage)
        return;
    if (is_obeyed(x, q)) {
        h->obeyed++;
        return;
    }
    h->others = h->others ? h->others : map_new(l->arena);
    if (map_get_at(h->others, v))
        return;
    map_set_at(h->others, v, h);
    h->first = h->other++ ? h->first : v;
}

static bool is_decided(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && v->type.quant;
}

/* A float value that an operator could take or give as integers, unless it is kept float. */
static bool could_be_integer(const Look *l, const Value *v) {
    return v->type.kind == TYPE_TENSOR && type_real_elem(v->type) == ELEM_FLOAT &&
           !(v->def && (why_never_integer(v->def) || choice_why_kept(&l->own, v->def)));
}

static void count_float(Look *l, const Choice *x, const Value *v) {
    Heed *h = heed_of(l, x);
    if (h && !x->is_float && x->by[CHOICE_TYPE]->of != SCHEME_ALL && could_be_integer(l, v) &&
        !h->floats++)
        h->first_float = v;
}

static void look_at_value(Value *v, void *ctx) {
    Look *l = ctx;
    if (v->kind == VALUE_CONST)
        return;
    Choice x = choice_of_value(&l->own, l->uses, v);
    (is_decided(v) ? count : count_float)(l, &x, v);
}

static void look_at_weights(Graph *g, void *ctx) {
    Look *l = ctx;
    FOR_NODES(n, g) {
        const QuantRule *r = n->def ? &n->def->quant : NULL;
        const Value *w = r && r->kind == QUANT_MAC ? node_input(n, (size_t)r->mac.weight) : NULL;
        if (!w || w->kind != VALUE_CONST || choice_why_kept(&l->own, n))
            continue;
        Choice x = choice_of_weight(&l->own, n, w);
        (is_decided(w) ? count : count_float)(l, &x, w);
    }
}

/* What stands there may be a type that is left open, `uint4q<?>`. */
static void tell(Module *m, const SchemeRule *r, const Heed *h, const PassContext *c) {
    const OpenValue *open = opening_of(c, h->first);
    bool marked = c->open && open && open->marked && open->line;
    const Quant *q = marked ? open->line : h->first->type.quant;
    Diags *d = c->d;
    Buf is = buf_new(m->arena);
    if (marked || q->n_scale == 1)
        quant_print(&is, q);
    else
        buf_fmt(&is, "%sq", elem_name(q->storage));
    diag_warning(d, r->loc,
                 "the type that this rule states has no effect on '%s', which is " STR_FMT
                 " as written%s; %s",
                 diag_name(d, h->first->name), STR_ARG(buf_as_str(&is)),
                 arena_others(m->arena, ", and ", h->other - 1, ""),
                 marked ? "`~ ?` leaves the type to the rule" : "-redecide=GLOB decides anew");
}

/* Where there is no data, what the text leaves float is decided where it is marked. */
static void tell_float(Module *m, const SchemeRule *r, const Heed *h, Diags *d) {
    diag_warning(d, r->loc,
                 "the type that this rule states has no effect on '%s'%s, which this text leaves "
                 "float; `~ ?` behind the type of a value leaves the decision to its rule",
                 diag_name(d, h->first_float->name),
                 arena_others(m->arena, ", and ", h->floats - 1, ""));
}

/* ---- options about what is not decided ---- */

typedef struct Kinds {
    const PassContext *c;
    Map *weights; /* constants that something takes as its weight */
    size_t n_weights, n_values;
} Kinds;

static void find_weights(Graph *g, void *ctx) {
    Kinds *k = ctx;
    FOR_NODES(n, g)
    for (size_t i = 0; n->def && i < n->n_in; i++)
        if (takes_weight(n, i) && is_decided(n->in[i]) && n->in[i]->kind == VALUE_CONST)
            map_set_at(k->weights, n->in[i], n);
}

static void count_kind(Value *v, void *ctx) {
    Kinds *k = ctx;
    if (is_decided(v) && was_decided(k->c, v))
        ++*(map_get_at(k->weights, v) ? &k->n_weights : &k->n_values);
}

/* Where nothing at all is decided, others tell. */
static void warn_of_idle_flags(Module *m, const PassContext *c) {
    Kinds k = {.c = c, .weights = map_new(m->arena)};
    module_each_graph(m, find_weights, &k);
    module_each_value(m, count_kind, &k);
    bool any = c->open->n || k.n_weights || k.n_values;
    for (size_t i = 0; any && i < c->scheme.n; i++) {
        const SchemeRule *r = &c->scheme.rules[i];
        bool weights = r->set[SCHEME_WEIGHTS].said, values = r->set[SCHEME_ACTIVATIONS].said;
        if (!r->flag || r->of != SCHEME_ALL || !(weights || values) || (weights && k.n_weights) ||
            (values && k.n_values))
            continue;
        diag_warning(c->d, LOC_NONE, "%s has no effect: nothing that is decided here is %s",
                     r->flag, weights ? "a weight" : "an activation");
    }
}

/* ---- what is to stay float, and does not ---- */

static void look_for_kept(Graph *g, void *ctx) {
    Look *l = ctx;
    FOR_NODES(n, g) {
        const SchemeRule *r = choice_to_keep(&l->own, n);
        if (!r || !r->keep || !r->flag || r->of == SCHEME_ALL || !result_is_written(&l->own, n))
            continue;
        Heed *h = &l->of[r - l->rules->rules];
        h->node = h->other++ ? h->node : n;
    }
}

/* -keep=GLOB of what is quantized as written. */
static void warn_of_keep_unheeded(Module *m, const PassContext *c) {
    Look l = {.own = *c, .rules = &c->scheme};
    l.of = NEW_ARRAY(m->arena, Heed, c->scheme.n);
    module_each_graph(m, look_for_kept, &l);
    for (size_t i = 0; i < c->scheme.n; i++)
        if (l.of[i].other)
            diag_warning(c->d, l.of[i].node->loc,
                         "%s=%s has no effect here%s, where the result is quantized as written; "
                         "-redecide=GLOB decides anew",
                         c->scheme.rules[i].flag, c->scheme.rules[i].pattern,
                         arena_others(m->arena, " and at ", l.of[i].other - 1, ""));
}

bool warn_of_unheeded(Module *m, const PassContext *c) {
    Look l = {.own = *c, .uses = uses_new(m)};
    l.own.scheme = c->open ? c->scheme : m->rules; /* else others are told to be idle as a whole */
    l.own.open = NULL;
    l.own.choices = NULL;
    l.rules = &l.own.scheme;
    l.of = NEW_ARRAY(m->arena, Heed, l.rules->n);
    l.arena = m->arena;
    if (!l.rules->n)
        return true;
    if (c->open) {
        warn_of_idle_flags(m, c);
        warn_of_keep_unheeded(m, c);
    } else if (!choice_check_names(&l.own, l.rules, m)) {
        return false;
    }
    module_each_value(m, look_at_value, &l);
    module_each_graph(m, look_at_weights, &l);
    for (size_t i = 0; i < l.rules->n; i++) {
        const SchemeRule *r = &l.rules->rules[i];
        const Heed *h = &l.of[i];
        if (!r->loc.source || r->flag || h->obeyed)
            continue;
        if (h->other)
            tell(m, r, h, c);
        else if (h->floats)
            tell_float(m, r, h, c->d);
    }
    return true;
}

typedef struct Unkept {
    PassContext *c;
    bool *integer; /* by id of a node */
    const Node *first;
    size_t n;
} Unkept;

static void look_for_unkept(Graph *g, void *ctx) {
    Unkept *u = ctx;
    FOR_NODES(n, g) {
        bool integer = n->n_out && n->out[0] && type_is_quantized(n->out[0]->type);
        if (!integer || node_conversion(n) != CONVERT_NONE || !choice_why_kept(u->c, n))
            continue;
        u->integer[n->id] = true;
        u->first = u->n++ ? u->first : n;
    }
}

void warn_of_unkept(Module *m, PassContext *c) {
    Unkept u = {.c = c, .integer = NEW_ARRAY(m->arena, bool, m->n_nodes)};
    module_each_graph(m, look_for_unkept, &u);
    if (!u.n)
        return;
    diag_warning(c->d, u.first->loc,
                 "%s%s was to stay float, and is computed on integers: what it reads and what it "
                 "gives is quantized for others",
                 node_text(u.first), arena_others(m->arena, " (and ", u.n - 1, ")"));
    pass_forget_remarks(c, u.integer);
}
