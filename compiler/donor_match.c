/* See compiler/donor_match.h. */
#include "compiler/donor_match.h"
#include "passes/edit.h"
#include "passes/quant_build.h"
#include "passes/spelling.h"

/* ---- what the other model says ---- */

static void add_fact(Donor *d, Str name, Value *v) {
    d->known[v->id] = d->known[v->id] || map_get(d->here, name);
    if (!name.n || map_get(d->facts, name))
        return;
    Fact *f = NEW(d->m->arena, Fact);
    *f = (Fact){name, v->type.quant, v};
    map_set(d->facts, name, f);
}

/* Sums of 32 bits, whose scale follows from their operands', are no decisions. */
static bool is_accumulator(const Value *v) {
    return v->kind != VALUE_CONST && elem_bits(v->type.quant->storage) == 32;
}

bool donor_has_params(const Value *v) {
    return v->type.kind == TYPE_TENSOR && v->type.quant && v->type.quant->kind == QUANT_PARAMS &&
           !is_accumulator(v);
}

/* A quantized value stands for the float one that was quantized, and for those behind its
 * DequantizeLinear; ONNX had names for all of them. */
static void note_value(Value *v, void *ctx) {
    Donor *d = ctx;
    if (v->kind == VALUE_CONST && !map_get(d->consts, v->name))
        map_set(d->consts, v->name, v);
    if (v->def && is_own_dequantize(v->def) && donor_has_params(v->def->in[0]))
        add_fact(d, v->name, v->def->in[0]);
    if (!donor_has_params(v))
        return;
    add_fact(d, v->name, v);
    if (v->def && is_own_quantize(v->def))
        add_fact(d, v->def->in[0]->name, v);
    for (const Node *n = v->onnx; n; n = n->next)
        add_fact(d, said_name(n, notes_q(n) ? "in" : "out", STR_NONE), v);
}

/* What nobody here is called: "T_quantized" is T. */
static void note_rest(Value *v, void *ctx) {
    Donor *d = ctx;
    if (!donor_has_params(v))
        return;
    Str base = base_name(v->name);
    if (!d->known[v->id])
        add_fact(d, base, v);
    if (v->kind == VALUE_CONST && !map_get(d->consts, base))
        map_set(d->consts, base, v);
}

static void note_here(Value *v, void *ctx) {
    Donor *d = ctx;
    if (!map_get(d->here, v->name))
        map_set(d->here, v->name, v);
}

const char *donor_path(const Donor *d) {
    return diag_name(d->j->d, str_from(d->from->path));
}

/* ---- what nodes read ---- */

bool donor_same_shape(const Tensor *x, const Tensor *y) {
    return x->rank == y->rank && memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

static void note_node(Graph *g, void *ctx) {
    Donor *d = ctx;
    FOR_NODES(n, g) {
        Str names[] = {n->name, n->n_out && n->out[0] ? n->out[0]->name : STR_NONE};
        for (size_t i = 0; i < 2; i++)
            if (names[i].n && !map_get(d->nodes[i], names[i]))
                map_set(d->nodes[i], names[i], n);
    }
}

/* The same node in the other model: of the same name, or the same name of its result. */
static const Node *counterpart(const Donor *d, const Node *n) {
    const Node *other = n->name.n ? map_get(d->nodes[0], n->name) : NULL;
    if (!other && n->n_out && n->out[0])
        other = map_get(d->nodes[1], n->out[0]->name);
    return other && str_eq(other->op, n->op) ? other : NULL;
}

/* What the counterpart of a reader reads in that place, NULL where there is none. */
Value *donor_read_there(const Donor *d, const Use *use) {
    if (!use->node) {
        const Graph *g = d->from->graph;
        return use->graph == d->m->graph && use->index < g->n_out ? g->out[use->index] : NULL;
    }
    const Node *n = counterpart(d, use->node);
    return n && use->index < n->n_in ? n->in[use->index] : NULL;
}

static Value *behind_dequantize(Value *v) {
    return v && v->def && is_own_dequantize(v->def) ? v->def->in[0] : v;
}

static void look_for_name(Value *v, void *ctx) {
    Donor *d = ctx;
    const Tensor *t = edit_float_const(v);
    d->named |= t && t->count > 1 && map_get(d->consts, v->name);
}

/* Converted models may have lost the names of all weights, and of values: what the same node reads
 * in the same place is the same. */
static void match_by_reader(Value *v, void *ctx) {
    Donor *d = ctx;
    const Use *use;
    const Tensor *t = edit_float_const(v);
    if (map_get(d->consts, v->name) || map_get(d->facts, v->name) || map_get(d->there, v->name))
        return;
    for (size_t i = 0, n = uses_of(d->uses, v, &use); i < n; i++) {
        bool named = use[i].node && use[i].node->name.n;
        Value *w = named ? behind_dequantize(donor_read_there(d, &use[i])) : NULL;
        const Tensor *data = w ? value_data(w) : NULL;
        if (!w || (t && d->named) ||
            (t ? !data || !donor_same_shape(t, data) : data || !donor_has_params(w)))
            continue;
        if (t) {
            map_set(d->consts, v->name, w);
            diag_note(d->j->d, v->loc, "'%s' is what %s reads in %s: '%s'",
                      diag_name(d->j->d, v->name), node_text(use[i].node), donor_path(d),
                      diag_name(d->j->d, w->name));
        }
        if (donor_has_params(w))
            add_fact(d, v->name, w);
        return;
    }
}

static void note_there(Value *v, void *ctx) {
    Donor *d = ctx;
    if (v->kind != VALUE_CONST)
        map_set(d->there, v->name, v);
}

/* ---- the whole ---- */

Donor donor_look(const Job *j, Module *m, Module *from) {
    Arena *a = m->arena;
    Donor d = {.j = j,
               .m = m,
               .from = from,
               .facts = map_new(a),
               .consts = map_new(a),
               .here = map_new(a),
               .there = map_new(a),
               .nodes = {map_new(a), map_new(a)},
               .uses = uses_new(m),
               .names = unique_names_new(m),
               .ok = true};
    d.taken = NEW_ARRAY(a, bool, from->n_values + 1);
    d.known = NEW_ARRAY(a, bool, from->n_values + 1);
    module_each_value(m, note_here, &d);
    module_each_value(from, note_value, &d);
    module_each_value(from, note_rest, &d);
    module_each_value(from, note_there, &d);
    module_each_graph(from, note_node, &d);
    module_each_value(m, look_for_name, &d);
    module_each_value(m, match_by_reader, &d);
    return d;
}

/* Whether the parameters fit the value here. */
bool donor_fits(Donor *d, const Value *v, const Quant *q) {
    Type t = v->type;
    for (int i = 0; i < q->n_axes; i++) {
        int64_t n = t.kind == TYPE_TENSOR && q->axis[i] < t.rank ? t.dims[q->axis[i]].value : 0;
        if (t.kind == TYPE_TENSOR && t.rank >= 0 && q->axis[i] >= t.rank)
            n = 0;
        else if (n < 0 || q->block[i] > 1 || q->n_axes > 1)
            continue;
        if ((size_t)n != q->n_scale)
            return d->ok = diag_error(d->j->d, v->loc,
                                      "'%s' has %lld entries along axis %d, %s states %zu scales",
                                      diag_name(d->j->d, v->name), (long long)n, q->axis[i],
                                      donor_path(d), q->n_scale);
    }
    return true;
}

bool donor_is_bias(const Value *v) {
    return v->kind == VALUE_CONST && v->type.quant->storage == ELEM_INT32;
}

bool donor_is_product(const Value *v) {
    return v->def && v->def->def && v->def->def->quant.kind == QUANT_MAC;
}
