/* -bind and -shape: fixed dimensions for the graph inputs. */
#include "compiler/pipeline.h"
#include "exec/bounded.h"
#include "exec/specialise.h"
#include "ir/bound.h"
#include "ir/ops/op.h"

#include <errno.h>
#include <stdlib.h>

static bool misused(Job *j, const char *wants, const char *text) {
    j->ctx.misused = true;
    return diag_error(j->d, LOC_NONE, "%s, not '%s'", wants, text);
}

/* A past of length 0 is usual, a batch of none is hardly meant. */
static void warn_of_nothing(const Job *j, const Module *m) {
    const Graph *g = m->graph;
    for (size_t i = 0; i < g->n_out; i++) {
        size_t n;
        if (type_count(g->out[i]->type, &n) && n == 0)
            diag_warning(j->d, LOC_NONE,
                         "with these sizes output %s has no elements: a size is 0 (-bind, -shape)",
                         diag_name(j->d, g->out[i]->name));
    }
}

/* ---- lengths that data decide ---- */

typedef struct Search {
    Arena *arena;
    Str name;
    Value *found;
    const char **names; /* of values that may be bounded */
    size_t n, cap;
} Search;

static bool may_be_bounded(const Value *v) {
    const OpDef *op = v->kind == VALUE_NODE ? v->def->def : NULL;
    return op && (op->counts || op->bind_length) && type_open_axis(v->type) >= 0;
}

static void look_for(Value *v, void *ctx) {
    Search *s = ctx;
    if (str_eq(v->name, s->name) && !graph_function(v->graph))
        s->found = s->found ? s->found : v;
    if (may_be_bounded(v) && !v->graph->owner && !graph_function(v->graph))
        ARENA_PUSH(s->arena, s->names, s->n, s->cap, arena_str(s->arena, v->name).s);
}

typedef bool Wanted(const Value *v);

/* Whether the shape of v may follow from operand k of its node: from its shape, or from its numbers
 * where it says the shape. What such numbers are made of counts whatever its shape is. */
static bool shapes(const Node *by, const Value *v, size_t k) {
    bool says = by->def && k < 32 && by->def->fixed >> k & 1;
    return says || type_is_static(v->type) || !type_is_static(by->in[k]->type);
}

/* The nearest value from which the shape of v follows, v itself included; NULL: there is none. */
static const Value *made_of(Module *m, const Value *v, Wanted *wanted) {
    const Value **list = NULL;
    size_t n = 0, cap = 0;
    bool *seen = NEW_ARRAY(m->arena, bool, m->n_values);
    ARENA_PUSH(m->arena, list, n, cap, v);
    for (size_t i = 0; i < n; i++) {
        const Node *by = list[i]->def;
        if (wanted(list[i]))
            return list[i];
        for (size_t k = 0; by && k < by->n_in; k++) {
            const Value *x = by->in[k];
            if (!x || seen[x->id] || !shapes(by, list[i], k))
                continue;
            seen[x->id] = true;
            ARENA_PUSH(m->arena, list, n, cap, x);
        }
    }
    return NULL;
}

/* An input, or what inference does not know, though it knows the operands. */
static bool opens_shape(const Value *v) {
    if (type_is_static(v->type))
        return false;
    for (size_t i = 0; v->def && i < v->def->n_in; i++)
        if (v->def->in[i] && !type_is_static(v->def->in[i]->type))
            return false;
    return true;
}

/* v is neither of fixed shape nor what data make as long as they like. */
static bool refuse_other(Job *j, Module *m, const Value *v) {
    const char *text = diag_name(j->d, v->name);
    const Value *by = made_of(m, v, may_be_bounded);
    const Value *from = by ? NULL : made_of(m, v, opens_shape);
    if (v->kind == VALUE_INPUT && !v->graph->owner)
        return diag_error(
            j->d, v->loc,
            "-max-elements: '%s' is an input, whose shape -bind=DIM=N or -shape=%s=... "
            "fixes",
            text, text);
    if (from && from->def)
        return diag_error(j->d, v->loc,
                          "-max-elements: the shape of '%s' follows from %s, whose result has an "
                          "unknown shape: state its type",
                          text, node_text(from->def));
    if (!by)
        return diag_error(j->d, v->loc,
                          "-max-elements: the length of '%s' follows from shapes of inputs, which "
                          "-bind=DIM=N or -shape=INPUT=... fixes",
                          text);
    diag_error(j->d, v->loc,
               "-max-elements: the length of '%s' follows from that of '%s': state the longest of "
               "that, -max-elements=%s:N",
               text, diag_name(j->d, by->name), diag_name(j->d, by->name));
    diag_note(j->d, by->loc, "%s is what decides it", node_text(by->def));
    return false;
}

static bool bound_value(Job *j, Module *m, Str name, int64_t most) {
    Search s = {.arena = m->arena, .name = name};
    module_each_value(m, look_for, &s);
    const char *text = diag_name(j->d, name);
    if (!s.found) {
        diag_error(j->d, LOC_NONE, "-max-elements: no value is called '%s'", text);
        diag_did_you_mean(j->d, LOC_NONE, name, s.names, s.n);
        return false;
    }
    if (type_is_static(s.found->type))
        return diag_error(j->d, s.found->loc, "-max-elements: '%s' is %s, which no data change",
                          text, type_text(m->arena, s.found->type));
    if (!may_be_bounded(s.found) && s.found->kind == VALUE_NODE &&
        !bounded_refuse(j->d, s.found->loc, "-max-elements: ", s.found->def, s.found))
        return false; /* another value's bound would not help either */
    if (!may_be_bounded(s.found))
        return refuse_other(j, m, s.found);
    if (s.found->graph->owner)
        return diag_error(j->d, s.found->loc,
                          "-max-elements: '%s' is in the body of %s; lengths in the main graph "
                          "alone can be bounded",
                          text, node_text(s.found->graph->owner));
    node_set_bound(s.found->def, most);
    return true;
}

/* Digits of a size that int64 holds; where they end, or NULL. */
static const char *read_size(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return *text >= '0' && *text <= '9' && !errno ? end : NULL;
}

/* The name may have colons of its own. */
static bool bound_lengths(Job *j, Module *m) {
    for (size_t i = 0; i < j->o->max_elements.n; i++) {
        const char *text = j->o->max_elements.items[i], *colon = strrchr(text, ':');
        int64_t most;
        const char *end = colon ? read_size(colon + 1, &most) : NULL;
        if (!end || *end || most < 1 || most > INT32_MAX)
            return misused(j, "-max-elements wants VALUE:N, N from 1 to 2^31-1", text);
        if (!bound_value(j, m, (Str){text, (size_t)(colon - text)}, most))
            return false;
    }
    return true;
}

bool job_fix_shapes(Job *j, Module *m) {
    const TextList *binds = &j->o->bind;
    for (size_t i = 0; i < binds->n; i++) {
        const char *eq = strrchr(binds->items[i], '='); /* names may have one */
        int64_t v;
        const char *end = eq ? read_size(eq + 1, &v) : NULL;
        if (!end || *end)
            return misused(j, "-bind wants DIM=N", binds->items[i]);
        DimBind b = {{binds->items[i], (size_t)(eq - binds->items[i])}, v};
        if (!module_bind_dims(m, &b, 1, j->d))
            return false;
    }
    for (size_t i = 0; i < j->o->shape.n; i++) {
        const char *text = j->o->shape.items[i], *eq = strrchr(text, '=');
        int64_t dims[MAX_RANK];
        int rank = 0;
        const char *p = eq ? eq + 1 : "", *end = p;
        while (*p && rank < MAX_RANK && (end = read_size(p, &dims[rank]))) {
            rank++;
            if (*end != ',')
                break;
            p = end + 1;
        }
        if (!eq || !end || *end)
            return misused(j, "-shape wants INPUT=1,3,8,8", text);
        if (!module_set_shape(m, (Str){text, (size_t)(eq - text)}, rank, dims, j->d))
            return false;
    }
    if (!binds->n && !j->o->shape.n)
        return bound_lengths(j, m);
    if (!module_check_fixed(m, j->d) || !bound_lengths(j, m))
        return false;
    warn_of_nothing(j, m);
    return true;
}
