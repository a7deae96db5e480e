#include "passes/quantize/rules.h"

#include "ir/ops/op.h"
#include "ir/scheme_index.h"

#include <stdlib.h>

/* ---- matching ---- */

/* "Gemm", "com.microsoft::Gelu" */
static bool matches_op(const char *pattern, const Node *n) {
    const char *colons = strstr(pattern, "::");
    if (!colons)
        return str_glob(pattern, n->op);
    return domain_equal((Str){pattern, (size_t)(colons - pattern)}, n->domain) &&
           str_glob(colons + 2, n->op);
}

const char *rule_read_as(const char *pattern) {
    const char *colons = strstr(pattern, "::");
    Str domain = {pattern, colons ? (size_t)(colons - pattern) : 0};
    Str op = str_from(colons ? colons + 2 : pattern);
    const OpDef *read = qop_find(domain, op);
    if (!read && !colons)
        read = qop_find(STR("com.microsoft"), op);
    return read ? read->name : NULL;
}

const char *rule_source(Diags *d, const SchemeRule *r) {
    return diag_before(d, r->flag);
}

Str rule_name(const Node *n) {
    bool by_result = !n->name.n && n->n_out && n->out[0];
    return by_result ? n->out[0]->name : n->name;
}

static bool matches_name(const char *pattern, const Node *n) {
    return str_glob(pattern, rule_name(n));
}

/* Borders are no nodes of the model: they stand for the call between. */
static const Node *named_first(const Node *n) {
    return n->call ? n->call : n;
}

static bool matches_itself(const SchemeRule *r, const Node *n) {
    switch (r->of) {
    case SCHEME_OP: return matches_op(r->pattern, n);
    case SCHEME_NODE: return matches_name(r->pattern, n);
    case SCHEME_OP_OR_NODE: return matches_op(r->pattern, n) || matches_name(r->pattern, n);
    default: return false;
    }
}

bool rule_matches_node(const SchemeRule *r, const Node *n) {
    for (n = named_first(n); n; n = n->within)
        if (matches_itself(r, n))
            return true;
    return false;
}

bool rule_matches_value(const SchemeRule *r, const Value *v) {
    if (r->of != SCHEME_VALUE)
        return false;
    if (str_glob(r->pattern, v->name))
        return true;
    for (size_t i = 0; i < v->from.n; i++)
        if (!v->from.from[i].op.s && str_glob(r->pattern, v->from.from[i].name))
            return true;
    return false;
}

bool rule_matches_reader(const SchemeRule *r, const Uses *uses, const Value *v) {
    const Use *use;
    size_t n = uses_of(uses, v, &use);
    for (size_t i = 0; i < n; i++)
        if (use[i].node && rule_matches_node(r, use[i].node))
            return true;
    return false;
}

/* ---- walks ---- */

RuleWalk rules_begin(const Scheme *s) {
    if (s->index)
        s->index->met.n = 0;
    return (RuleWalk){.s = s};
}

/* What many readers are named after is met once for all that stand in a row. */
static void meet(RuleWalk *w, Str name) {
    SchemeIndex *x = w->s->index;
    const RuleNumbers *r = x ? map_get(x->named, name) : NULL;
    if (!r || r == w->last)
        return;
    w->last = r;
    for (size_t i = 0; i < r->n && r->at[i] < w->s->n; i++)
        rule_numbers_add(&x->met, x->arena, r->at[i]);
}

void rules_of_value(RuleWalk *w, const Value *v) {
    meet(w, v->name);
    for (size_t i = 0; i < v->from.n; i++)
        if (!v->from.from[i].op.s)
            meet(w, v->from.from[i].name);
}

void rules_of_node(RuleWalk *w, const Node *n) {
    for (n = named_first(n); n; n = n->within) {
        meet(w, rule_name(n));
        meet(w, n->op);
    }
}

void rules_of_readers(RuleWalk *w, const Uses *uses, const Value *v) {
    if (!w->s->index || !w->s->index->of_readers)
        return;
    const Use *use;
    size_t n = uses_of(uses, v, &use);
    for (size_t i = 0; i < n; i++)
        if (use[i].node)
            rules_of_node(w, use[i].node);
}

static int by_number(const void *x, const void *y) {
    size_t a = *(const size_t *)x, b = *(const size_t *)y;
    return (a > b) - (a < b);
}

static void sort(RuleWalk *w) {
    RuleNumbers *met = &w->s->index->met;
    const RuleNumbers *open = &w->s->index->open;
    w->sorted = true;
    if (met->n > 1)
        qsort(met->at, met->n, sizeof *met->at, by_number);
    w->open_end = open->n;
    while (w->open_end && open->at[w->open_end - 1] >= w->s->n)
        w->open_end--;
    w->met_end = met->n;
}

const SchemeRule *rules_next(RuleWalk *w) {
    const SchemeIndex *x = w->s->index;
    if (!x)
        return NULL;
    if (!w->sorted)
        sort(w);
    bool open = w->open < w->open_end, met = w->met < w->met_end;
    if (!open && !met)
        return NULL;
    if (open && (!met || x->open.at[w->open] < x->met.at[w->met]))
        return &w->s->rules[x->open.at[w->open++]];
    size_t number = x->met.at[w->met];
    while (w->met < w->met_end && x->met.at[w->met] == number)
        w->met++;
    return &w->s->rules[number];
}

const SchemeRule *rules_previous(RuleWalk *w) {
    const SchemeIndex *x = w->s->index;
    if (!x)
        return NULL;
    if (!w->sorted)
        sort(w);
    if (!w->open_end && !w->met_end)
        return NULL;
    if (w->open_end && (!w->met_end || x->open.at[w->open_end - 1] > x->met.at[w->met_end - 1]))
        return &w->s->rules[x->open.at[--w->open_end]];
    size_t number = x->met.at[w->met_end - 1];
    while (w->met_end && x->met.at[w->met_end - 1] == number)
        w->met_end--;
    return &w->s->rules[number];
}

/* ---- what makes a value ---- */

static void note_maker(Value *v, void *ctx) {
    Scheme *s = ctx;
    RuleWalk walk = rules_begin(s);
    rules_of_value(&walk, v);
    for (const SchemeRule *r; (r = rules_next(&walk));)
        if (rule_matches_value(r, v) && !r->maker)
            s->rules[r - s->rules].maker = v->def;
}

void rules_note_makers(Scheme *s, Module *m) {
    if (s->n)
        module_each_value(m, note_maker, s);
}
