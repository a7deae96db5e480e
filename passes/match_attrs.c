/* Numbers, attributes and axes of a match. */
#include "passes/match_parts.h"

#include <math.h>

/* ---- numbers and attributes ---- */

/* Constants are written with few digits, or in types that have few. */
static bool is_near(double has, double want, ElemType e) {
    double bound = e == ELEM_FLOAT16 ? 0x1p-10 : e == ELEM_BFLOAT16 ? 0x1p-7 : 3e-5;
    return fabs(has - want) <= bound * fabs(want);
}

/* What an attribute of a node in a body is: a literal, or (`*formal`) an attribute of the function
 * that is matched; NULL where it is neither. */
static const Attr *literal(const Frame *f, const Attr *a, Str *formal) {
    *formal = STR_NONE;
    while (a && attr_is_ref(a)) {
        if (!f->up) {
            *formal = a->ref;
            return NULL;
        }
        const Attr *given = attr_find(f->call->attrs, f->call->n_attrs, a->ref);
        a = given ? given : function_default(f->f, a->ref);
        f = given ? f->up : f;
    }
    return a;
}

/* The same, but for rounding. */
static bool attr_near(const Attr *want, const Attr *has, int rank) {
    if (want && has && want->kind == ATTR_FLOAT && has->kind == ATTR_FLOAT && !attr_is_ref(has))
        return is_near((double)has->v.f[0], (double)want->v.f[0], ELEM_FLOAT);
    return attr_same(want, has, rank);
}

static bool bind_attr(Matcher *x, Str formal, const Attr *is) {
    Match *m = x->m;
    const Attr *had = attr_find(m->attrs, m->n_attrs, formal);
    if (had)
        return attr_same(had, is, -1); /* the same number twice, not two that are near a third */
    if (m->n_attrs == MATCH_ATTRS || attr_is_ref(is))
        return false;
    m->attrs[m->n_attrs] = *is;
    m->attrs[m->n_attrs++].name = formal;
    return true;
}

/* What nobody can override; through a Constant node, too. */
static const Tensor *constant(const Value *v) {
    return v && v->kind != VALUE_INPUT ? value_data(v) : NULL;
}

/* A number with axes of its own may give what reads it more axes than the body's number does. */
static bool adds_axes(const Value *number, const Node *reader) {
    int own = value_rank(number);
    for (size_t i = 0; reader && i < reader->n_in; i++)
        if (reader->in[i] && !constant(reader->in[i]) && value_rank(reader->in[i]) >= own)
            return false;
    return own != 0;
}

static bool number_fits(Matcher *x, const Goal *g, const Attr *a) {
    const Tensor *t = constant(g->value);
    bool one = t && t->data && t->count == 1 && elem_is_float(t->elem);
    double has = one ? tensor_float(t, 0) : 0;
    Str formal;
    const Attr *want = literal(g->frame, a, &formal);
    if (!one)
        return match_miss(x, g->reader, "'" STR_FMT "' is no constant number",
                          STR_ARG(g->value->name));
    if (adds_axes(g->value, g->reader))
        return match_miss(x, g->reader, "'" STR_FMT "' may add axes to its result",
                          STR_ARG(g->value->name));
    if (formal.n) {
        float *room = NEW(x->graph->module->arena, float);
        *room = (float)has;
        return bind_attr(x, formal, &(Attr){.kind = ATTR_FLOAT, .n = 1, .v.f = room});
    }
    if (!want || want->kind != ATTR_FLOAT)
        return false;
    return is_near(has, (double)want->v.f[0], t->elem) ||
           match_miss(x, g->reader, "'" STR_FMT "' is %g, not %g", STR_ARG(g->value->name), has,
                      (double)want->v.f[0]);
}

bool match_constant(Matcher *x, const Goal *g) {
    const Attr *a = &g->pattern->def->attrs[0];
    return str_is(a->name, "value_float") && number_fits(x, g, a);
}

/* Attributes that the body's node does not have are those that go without saying. */
bool match_attrs(Matcher *x, const Goal *g, const Node *n) {
    const Node *want = g->pattern->def;
    int rank = value_rank(node_input(n, 0));
    Attr room, other;
    for (size_t i = 0; i < want->n_attrs; i++) {
        const Attr *a = &want->attrs[i], *has = attr_effective(n, a->name, &room);
        Str formal;
        const Attr *is = literal(g->frame, a, &formal);
        if (formal.n ? !has || !bind_attr(x, formal, has) : !attr_near(is, has, rank))
            return match_miss(x, n, "its attribute " STR_FMT " is another", STR_ARG(a->name));
    }
    for (size_t i = 0; i < n->n_attrs; i++) {
        const Attr *a = &n->attrs[i];
        bool listed = str_is(a->name, "axes"); /* compared as an operand */
        if (!listed && !attr_find(want->attrs, want->n_attrs, a->name) &&
            !attr_same(attr_effective(want, a->name, &other), a, rank))
            return match_miss(x, n, "it has an attribute " STR_FMT, STR_ARG(a->name));
    }
    return true;
}

/* ---- axes ---- */

static bool same_axes(const int64_t *x, size_t n, const Attr *want, int rank) {
    bool set[MAX_RANK] = {false};
    for (size_t i = 0; i < n; i++) {
        int64_t at = x[i] < 0 ? x[i] + rank : x[i];
        if (at < 0 || at >= rank)
            return false;
        set[at] = true;
    }
    for (size_t i = 0; i < want->n; i++) {
        int64_t at = want->v.i[i] < 0 ? want->v.i[i] + rank : want->v.i[i];
        if (at < 0 || at >= rank || !set[at])
            return false;
    }
    return n == want->n;
}

const Attr *match_list(const Frame *f, const Value *pattern) {
    const Node *n = pattern ? pattern->def : NULL;
    Str formal;
    return n && node_is_constant(n) ? literal(f, node_attr(n, "value_ints"), &formal) : NULL;
}

/* A list of axes, which is an operand or an attribute. */
bool match_axes(Matcher *x, const Node *n, size_t i, const Attr *want) {
    const Tensor *t = constant(node_input(n, i));
    const Attr *a = node_attr(n, "axes");
    int rank = value_rank(n->in[0]);
    int64_t list[MAX_RANK];
    size_t count = 0;
    for (; t && t->elem == ELEM_INT64 && count < t->count && count < MAX_RANK; count++)
        list[count] = tensor_int(t, count);
    for (; !t && attr_holds(a, ATTR_INTS) && count < a->n && count < MAX_RANK; count++)
        list[count] = a->v.i[count];
    if (rank < 0)
        return match_miss(x, n, "the rank of its operand is not known");
    return same_axes(list, count, want, rank) || match_miss(x, n, "its axes are others");
}
