/* Which values of two models are compared, and which are not. */
#include "exec/choice.h"
#include "exec/compare_inputs.h"
#include "exec/compare_parts.h"
#include "exec/partial.h"

/* How many there are may be for a run to say. */
static bool may_fit(const Value *x, const Value *y) {
    size_t n;
    return compare_same_count(x, y) || !type_count(x->type, &n) || !type_count(y->type, &n);
}

static void list_values(Side *s) {
    const Program *p = s->run->program;
    for (size_t i = 0; p && i < p->n_buffers; i++) {
        const Value *v = p->buffers[i].value;
        if (v && v->kind == VALUE_NODE && p->value_buffer[v->id] == (int)i)
            ARENA_PUSH(s->module->arena, s->values, s->n, s->cap, v);
    }
    if (p)
        return;
    FOR_NODES(n, s->module->graph)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            ARENA_PUSH(s->module->arena, s->values, s->n, s->cap, n->out[i]);
}

static Map *values_by_name(Arena *a, const Side *s) {
    Map *m = map_new(a);
    for (size_t i = 0; i < s->n; i++)
        map_set(m, s->values[i]->name, (void *)(uintptr_t)s->values[i]);
    return m;
}

/* Of Value, by name: the first of those that share one. */
static Map *outputs_by_name(Arena *a, const Graph *g) {
    Map *m = map_new(a);
    for (size_t i = g->n_out; i-- > 0;)
        map_set(m, g->out[i]->name, g->out[i]);
    return m;
}

static bool is_left_out(const Side *s, const Value *v) {
    return s->run->program && program_left_out(s->run->program, v);
}

/* Outputs that the first program leaves out are left out here. */
static bool pair_outputs(const Side *p, const Side *q, Comparison *out, Diags *d) {
    const Module *a = p->module, *b = q->module;
    Map *namesakes = outputs_by_name(a->arena, b->graph);
    if (a->graph->n_out != b->graph->n_out)
        return diag_error(d, LOC_NONE, "the first model has %zu outputs, the second %zu",
                          a->graph->n_out, b->graph->n_out);
    for (size_t i = 0; i < a->graph->n_out; i++) {
        const Value *x = a->graph->out[i], *y = map_get(namesakes, x->name);
        if (!y)
            y = b->graph->out[i];
        if (is_left_out(p, x)) {
            out->in_part = true;
            continue;
        }
        if (is_left_out(q, y))
            return diag_error(d, x->loc, "output %s cannot be computed in the second model",
                              diag_name(d, x->name));
        if (!may_fit(x, y))
            return diag_error(d, x->loc, "output %s has another shape in the second model",
                              diag_name(d, x->name));
        out->rows[out->n++] = (CompareRow){.name = x->name, .a = x, .b = y, .is_output = true};
    }
    return true;
}

static const bool *set_apart(const Side *s) {
    const LeftOut *left_out = s->run->program ? s->run->program->left_out : NULL;
    if (!s->run->program)
        return choice_follows(s->module);
    bool *apart = NEW_ARRAY(s->module->arena, bool, s->module->n_nodes);
    FOR_NODES(n, s->module->graph)
    apart[n->id] = left_out && left_out->why[n->id];
    return apart;
}

static bool is_apart(const Side *s, const Node *n) {
    return s->apart[n->id] || s->picked[n->id];
}

/* By value id: floats that a node reads that is set apart, and none makes. How far conditions and
 * indices are from each other is no number. */
static const bool *stand_ins(Arena *a, const Side *s) {
    bool *read = NEW_ARRAY(a, bool, s->module->n_values);
    FOR_NODES(n, s->module->graph)
    for (size_t i = 0; is_apart(s, n) && i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (v && elem_is_float(type_real_elem(v->type)))
            read[v->id] = v->kind != VALUE_NODE || v->graph->owner || !is_apart(s, v->def);
    }
    return read;
}

bool compare_pair(const Side *a, const Side *b, Comparison *out, Diags *d) {
    Arena *arena = a->module->arena;
    Map *names = values_by_name(arena, b), *outputs = outputs_by_name(arena, a->module->graph);
    const bool *stands_in = stand_ins(arena, a);
    out->rows = NEW_ARRAY(arena, CompareRow, a->n + a->module->graph->n_out);
    for (size_t i = 0; i < a->n; i++) {
        const Value *x = a->values[i], *y = map_get(names, x->name);
        if (y && map_get(outputs, x->name) != x && may_fit(x, y))
            out->rows[out->n++] =
                (CompareRow){.name = x->name, .a = x, .b = y, .stands_in = stands_in[x->id]};
    }
    return pair_outputs(a, b, out, d);
}

static bool is_rounded_const(const Value *v) {
    const Node *n = v ? v->def : NULL;
    const Value *from = n && n->n_in ? n->in[0] : v;
    return from && value_is_const(from) && from->type.kind == TYPE_TENSOR && from->type.quant;
}

static bool rounds(const Node *n) {
    const Value *x = n->n_in ? n->in[0] : NULL, *y = n->n_out ? n->out[0] : NULL;
    const Quant *to = y && y->type.kind == TYPE_TENSOR ? y->type.quant : NULL;
    bool moves =
        to && x && x->type.kind == TYPE_TENSOR && x->type.quant && quant_equal(x->type.quant, to);
    bool any = to && !moves;
    for (size_t i = 0; i < n->n_in; i++)
        any = any || is_rounded_const(n->in[i]);
    return any && y;
}

const Value *compare_unmeasured(const Side *s, const Comparison *c) {
    bool left_out = s->run->program, other = false;
    for (size_t i = 0; i < c->n; i++)
        other = other || (c->rows[i].is_output && c->rows[i].unlike && !c->rows[i].count);
    FOR_NODES(n, s->module->graph)
    if (((left_out && s->apart[n->id]) || (other && is_apart(s, n))) && rounds(n))
        return n->out[0];
    return NULL;
}

void compare_list(Side *s) {
    list_values(s);
    s->apart = set_apart(s);
}
