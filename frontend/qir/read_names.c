/* Scopes: what a name stands for, and what is said of one that nothing defines. */
#include "frontend/qir/reader.h"

/* ---- flaws ---- */

size_t flaws_so_far(const Reader *r) {
    return (size_t)diags_errors(r->diags) + r->silent_flaws;
}

bool take_flaws(Reader *r) {
    size_t before = r->frame->flaws;
    r->frame->flaws = flaws_so_far(r);
    return r->frame->flaws > before;
}

/* ---- names ---- */

Value *find_value_quietly(const Reader *r, Str name) {
    for (const Frame *f = r->frame; f; f = f->outer) {
        Value *v = map_get(f->names, name);
        if (v)
            return v;
    }
    return NULL;
}

/* What is not there may still come, too late: that is reported at the end of the body. */
Value *find_value(Reader *r, Str name, Range at) {
    Value *v = find_value_quietly(r, name);
    if (!v) {
        Frame *f = r->frame;
        r->silent_flaws++;
        Missing m = {.name = name, .at = at, .frame = f, .operand = NO_OPERAND};
        ARENA_PUSH(r->arena, f->missing, f->n_missing, f->cap_missing, m);
    }
    return v;
}

/* ---- constants that stand behind their uses ---- */

/* Stands for the constant of that name until its line comes, in this body or in one around it. */
static Value *await(Reader *r, Frame *f, Str name, Value *stand_in) {
    Value *v = map_get(f->awaited, name);
    if (v && stand_in) { /* lines about the value */
        v->stat = v->stat ? v->stat : stand_in->stat;
        v->onnx = v->onnx ? v->onnx : stand_in->onnx;
    }
    if (v)
        return v;
    v = stand_in ? stand_in : value_of_no_graph(r->module, name);
    map_set(f->awaited, name, v);
    return v;
}

static Value *await_use(Reader *r, Missing m) {
    Frame *f = r->frame;
    m.frame = f;
    m.stand_in = await(r, f, m.name, NULL);
    ARENA_PUSH(r->arena, f->missing, f->n_missing, f->cap_missing, m);
    return m.stand_in;
}

Value *find_or_await(Reader *r, Str name, Range at, size_t operand) {
    Value *v = find_value_quietly(r, name);
    return v ? v : await_use(r, (Missing){.name = name, .at = at, .operand = operand});
}

Value *find_described(Reader *r, Str name, Range at) {
    Value *v = map_get(r->frame->names, name), *outer = v ? NULL : find_value_quietly(r, name);
    if (v)
        return v;
    if (!outer)
        return await_use(r, (Missing){.name = name, .at = at, .operand = NO_OPERAND, .own = true});
    error_at(r, at, "%%%s is of a graph around this one: lines about it stand there",
             shown(r, name));
    diag_note(r->diags, outer->loc, "the definition");
    return value_of_no_graph(r->module, name);
}

void own_operands(Reader *r, Node *n, Range op) {
    Frame *f = r->frame;
    for (size_t i = f->n_missing; i-- > 0 && f->missing[i].at.begin > op.begin;)
        if (f->missing[i].operand != NO_OPERAND && !f->missing[i].node)
            f->missing[i].node = n;
}

Value *awaited_value(const Frame *f, Str name) {
    Value *v = map_get(f->awaited, name);
    return v && !v->graph ? v : NULL;
}

static bool has_come(const Missing *m) {
    return m->stand_in && m->stand_in->graph;
}

static void set_operand(const Missing *m, Value *v) {
    if (m->node)
        m->node->in[m->operand] = v;
}

/* The body around may have the constant. */
static void hand_up(Reader *r, Missing m, Frame *outer) {
    if (!m.node) /* of a statement that is broken: no node around is its reader */
        m.operand = NO_OPERAND;
    if (m.stand_in) {
        m.stand_in = await(r, outer, m.name, m.stand_in);
        set_operand(&m, m.stand_in);
    }
    ARENA_PUSH(r->arena, outer->missing, outer->n_missing, outer->cap_missing, m);
}

/* It never came: the node that reads it, and those it is a part of, are not looked at. */
static void give_up(const Missing *m) {
    set_operand(m, NULL);
    for (Node *n = m->node; n; n = n->graph->owner)
        n->misread = true;
}

/* ---- names that nothing defines ---- */

typedef struct NamesInSight {
    const Frame *frame;
    size_t i;
} NamesInSight;

static bool next_in_sight(void *ctx, Str *name) {
    NamesInSight *at = ctx;
    for (; at->frame; at->frame = at->frame->outer, at->i = 0)
        if (at->i < map_size(at->frame->names)) {
            *name = map_key(at->frame->names, at->i++);
            return true;
        }
    return false;
}

static void report_one(Reader *r, const Frame *f, Missing m) {
    const Value *v = map_get(f->names, m.name);
    if (v) {
        error_at(r, m.at, "%%%s is used before its definition", shown(r, m.name));
        diag_note(r->diags, v->loc, "the definition");
        return;
    }
    error_at(r, m.at, "%%%s is not defined%s", shown(r, m.name),
             m.own && f->outer ? " in this graph, where the lines about it stand" : "");
    diag_did_you_mean_next(r->diags, loc_of(r, m.at), m.name, next_in_sight,
                           &(NamesInSight){m.frame, 0});
}

typedef struct Uses { /* of a name that is missing, but for the first: no mistakes of their own */
    Range next;
    size_t n;
} Uses;

static void note_others(Reader *r, const Uses *u) {
    if (u->n == 1)
        note_at(r, u->next, "it is used here too");
    else if (u->n > 1)
        diag_note(r->diags, loc_of(r, u->next), "it is used here too, and in %zu more place%s",
                  u->n - 1, u->n == 2 ? "" : "s");
}

static Map *count_uses(Reader *r, const Frame *f) {
    Map *uses = map_new(r->arena);
    for (size_t i = 0; i < f->n_missing; i++) {
        const Missing *m = &f->missing[i];
        Uses *u = map_get(uses, m->name);
        if (!u)
            map_set(uses, m->name, NEW(r->arena, Uses));
        else if (u->n++ == 0)
            u->next = m->at;
    }
    return uses;
}

/* What a body lacks may still come in the one around it. */
void report_missing(Reader *r, Frame *f) {
    Map *uses = count_uses(r, f), *told = map_new(r->arena);
    for (size_t i = 0; i < f->n_missing; i++) {
        Missing m = f->missing[i];
        bool late = map_get(f->names, m.name);
        if (has_come(&m))
            continue;
        if (f->outer && !late && !m.own && !m.frame->broken) {
            hand_up(r, m, f->outer);
            continue;
        }
        give_up(&m);
        if ((m.frame->broken && !late) || map_get(told, m.name))
            continue;
        if (!late && is_broken(r, '%', m.name))
            continue;
        map_set(told, m.name, r);
        report_one(r, f, m);
        if (!m.own) /* others find it in a graph around, or miss it there */
            note_others(r, map_get(uses, m.name));
    }
}
