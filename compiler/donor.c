#include "compiler/donor.h"
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/quant_build.h"
#include "passes/spelling.h"

typedef struct Fact { /* what the other model says of a name */
    Str name;
    const Quant *q;      /* or NULL */
    const Value *stated; /* the value it stands at there */
} Fact;

typedef struct Donor {
    const Job *j;
    Module *m, *from;
    Map *facts;    /* quantizations by the names of float values: Fact */
    Map *consts;   /* constants by name: Value */
    Map *here;     /* values of m by name */
    Map *there;    /* those of `from` that are computed */
    Map *nodes[2]; /* of `from`, by name and by that of the result */
    Uses *uses;    /* of m */
    UniqueNames *names;
    bool named;  /* some constant is there under its name */
    bool *taken; /* by value id of `from`: something here has its name */
    bool *known; /* the same: one of the names that ONNX had for it is one here */
    bool ok;
} Donor;

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

static bool has_params(const Value *v) {
    return v->type.kind == TYPE_TENSOR && v->type.quant && v->type.quant->kind == QUANT_PARAMS &&
           !is_accumulator(v);
}

/* A quantized value stands for the float one that was quantized, and for those behind its
 * DequantizeLinear; ONNX had names for all of them. */
static void note_value(Value *v, void *ctx) {
    Donor *d = ctx;
    if (v->kind == VALUE_CONST && !map_get(d->consts, v->name))
        map_set(d->consts, v->name, v);
    if (v->def && is_own_dequantize(v->def) && has_params(v->def->in[0]))
        add_fact(d, v->name, v->def->in[0]);
    if (!has_params(v))
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
    if (!has_params(v))
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

/* ---- complaints ---- */

static const char *path(const Donor *d) {
    return diag_name(d->j->d, str_from(d->from->path));
}

/* ---- what nodes read ---- */

static bool same_shape(const Tensor *x, const Tensor *y) {
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
static Value *read_there(const Donor *d, const Use *use) {
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
        Value *w = named ? behind_dequantize(read_there(d, &use[i])) : NULL;
        const Tensor *data = w ? value_data(w) : NULL;
        if (!w || (t && d->named) || (t ? !data || !same_shape(t, data) : data || !has_params(w)))
            continue;
        if (t) {
            map_set(d->consts, v->name, w);
            diag_note(d->j->d, v->loc, "'%s' is what %s reads in %s: '%s'",
                      diag_name(d->j->d, v->name), node_text(use[i].node), path(d),
                      diag_name(d->j->d, w->name));
        }
        if (has_params(w))
            add_fact(d, v->name, w);
        return;
    }
}

static void note_there(Value *v, void *ctx) {
    Donor *d = ctx;
    if (v->kind != VALUE_CONST)
        map_set(d->there, v->name, v);
}

static Donor look(const Job *j, Module *m, Module *from) {
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
static bool fits(Donor *d, const Value *v, const Quant *q) {
    Type t = v->type;
    for (int i = 0; i < q->n_axes; i++) {
        int64_t n = t.kind == TYPE_TENSOR && q->axis[i] < t.rank ? t.dims[q->axis[i]].value : 0;
        if (t.kind == TYPE_TENSOR && t.rank >= 0 && q->axis[i] >= t.rank)
            n = 0;
        else if (n < 0 || q->block[i] > 1 || q->n_axes > 1)
            continue;
        if ((size_t)n != q->n_scale)
            return d->ok = diag_error(
                       d->j->d, v->loc, "'%s' has %lld entries along axis %d, %s states %zu scales",
                       diag_name(d->j->d, v->name), (long long)n, q->axis[i], path(d), q->n_scale);
    }
    return true;
}

/* ---- weights ---- */

/* Float constants of one number that the other model has no name for are what exporters make of
 * attributes: these need not be trained. */
static void take_const(Value *v, void *ctx) {
    Donor *d = ctx;
    const Tensor *t = edit_float_const(v);
    if (!t)
        return;
    Value *w = map_get(d->consts, v->name);
    const Tensor *data = w ? value_data(w) : NULL;
    if (w)
        d->taken[w->id] = true;
    if (!w && t->count == 1)
        return;
    if (!w || !data || !data->data) {
        d->ok = diag_error(d->j->d, v->loc, "%s has no constant '%s'", path(d),
                           diag_name(d->j->d, v->name));
        diag_did_you_mean_key(d->j->d, v->loc, v->name, d->consts);
    } else if (!same_shape(t, data)) {
        d->ok =
            diag_error(d->j->d, v->loc, "'%s' is %s here and %s in %s", diag_name(d->j->d, v->name),
                       type_text(d->m->arena, v->type), type_text(d->m->arena, w->type), path(d));
    } else if (type_is_quantized(w->type)) {
        v->data = const_dequantize(d->m->arena, data, w->type.quant);
    } else if (data->elem != t->elem) {
        d->ok = diag_error(d->j->d, v->loc, "'%s' is no float constant in %s",
                           diag_name(d->j->d, v->name), path(d));
    } else {
        uint8_t *bytes;
        Tensor *copy = tensor_new(d->m->arena, t->elem, t->rank, t->dims, &bytes);
        memcpy(bytes, data->data, data->bytes);
        v->data = copy;
    }
}

static bool is_bias(const Value *v) {
    return v->kind == VALUE_CONST && v->type.quant->storage == ELEM_INT32;
}

/* A reader that has the float value there, where others have it rounded. */
static bool reads_float(const Donor *d, const Fact *f, const Use *use) {
    const Node *q = f->stated->def;
    return q && is_own_quantize(q) && read_there(d, use) == q->in[0];
}

/* A copy of `v` for all others, which will be the one that is rounded; NULL where there is no
 * reader of floats, or no other. */
static Value *part_readers(Donor *d, Value *v, const Fact *f) {
    const Use *use;
    size_t n = uses_of(d->uses, v, &use), floats = 0;
    const Use *first = NULL;
    for (size_t i = 0; i < n; i++) {
        bool real = reads_float(d, f, &use[i]);
        floats += real;
        first = !real && use[i].node && !first ? &use[i] : first;
    }
    if (!floats || !first)
        return NULL;
    Node *copy = node_new(v->graph, STR_NONE, STR("Identity"), 1, 1);
    copy->in[0] = v;
    node_from_value(copy, v, "weights-from");
    Str name = arena_strf(d->m->arena, STR_FMT "_rounded", STR_ARG(v->name));
    Value *y = node_add_output(copy, 0, unique_name(d->names, name), v->type);
    place_behind(v, copy, first->node);
    for (size_t i = 0; i < n; i++)
        if (use[i].node && !reads_float(d, f, &use[i]))
            use[i].node->in[use[i].index] = y;
    op_resolve(copy, d->j->d);
    return y;
}

static void take_quant(Value *v, void *ctx) {
    Donor *d = ctx;
    const Fact *f = map_get(d->facts, v->name);
    if (!f)
        return;
    d->taken[f->stated->id] = true;
    bool real = v->type.kind != TYPE_TENSOR || v->type.elem == ELEM_FLOAT;
    if (is_bias(f->stated) || !real || v->type.quant || !fits(d, v, f->q))
        return; /* biases follow by themselves */
    Value *rounded = v->kind == VALUE_CONST ? NULL : part_readers(d, v, f);
    v = rounded ? rounded : v;
    Quant *q = quant_copy(d->m->arena, f->q);
    q->alias = v->name;
    module_add_quant(d->m, q);
    Type t = v->type.kind == TYPE_TENSOR ? v->type : type_tensor(ELEM_FLOAT, -1, NULL);
    v->type = type_tilde(t, q);
}

static bool is_product(const Value *v) {
    return v->def && v->def->def && v->def->def->quant.kind == QUANT_MAC;
}

/* A product that only a Relu or Clip reads is rounded as the result of that is: before it or behind
 * it is the same, and the product can be of integers. */
static void round_before_clamps(Graph *g, void *ctx) {
    Donor *d = ctx;
    for (Node *n = g->last; n; n = n->prev) {
        Value *x = n->n_in ? n->in[0] : NULL, *y = n->n_out ? n->out[0] : NULL;
        if (n->def && n->def->quant.kind == QUANT_CLAMP && x && y && edit_tilde(y) &&
            is_product(x) && !x->type.quant && x->type.kind == TYPE_TENSOR &&
            uses_only_node(d->uses, x))
            x->type = type_tilde(x->type, y->type.quant);
    }
}

/* Weights and scales that were trained and are of no use here. */
static void complain_unused(Value *v, void *ctx) {
    Donor *d = ctx;
    bool weight = v->kind == VALUE_CONST && has_params(v);
    if (d->taken[v->id] || !(weight || has_params(v)))
        return;
    Str name = base_name(v->name);
    d->ok = diag_error(d->j->d, v->loc, "%s quantizes '%s', of which %s has nothing", path(d),
                       diag_name(d->j->d, name), diag_name(d->j->d, str_from(d->m->path)));
    diag_did_you_mean_key(d->j->d, v->loc, name, d->here);
}

/* What the inputs held where the weights are from, to hold the data against. */
static void take_input_stats(const Donor *d) {
    const Graph *g = d->m->graph;
    for (size_t i = 0; i < g->n_in; i++) {
        const Value *there = map_get(d->there, g->in[i]->name);
        if (there && !g->in[i]->stat)
            g->in[i]->stat = there->stat;
    }
}

bool donor_weights(const Job *j, Module *m, Module *from) {
    if (!job_raise(j, from))
        return false;
    Donor d = look(j, m, from);
    module_each_value(m, take_const, &d);
    module_each_value(m, take_quant, &d);
    d.uses = uses_new(m);
    module_each_graph(m, round_before_clamps, &d);
    module_each_value(from, complain_unused, &d);
    if (j->o->calib.n)
        take_input_stats(&d);
    return d.ok;
}

/* ---- scales alone ---- */

typedef struct Take {
    Donor d;
    Scheme *out;
    size_t there, missing; /* values with statistics or quantizations, and those not in m */
} Take;

static void take_stat(Value *v, void *ctx) {
    Take *t = ctx;
    if (!v->stat || v->kind == VALUE_CONST)
        return;
    t->there++;
    Value *here = map_get(t->d.here, v->name);
    if (here && !here->stat)
        here->stat = v->stat;
    t->missing += !here;
}

static void count_quant(Value *v, void *ctx) {
    Take *t = ctx;
    if (!has_params(v) || v->kind == VALUE_CONST)
        return;
    t->there++;
    t->missing += !t->d.known[v->id];
}

static void add_rule(Take *t, Str name, SchemeSetting what, bool may_miss) {
    Arena *a = t->d.m->arena;
    SchemeRule r = scheme_rule(SCHEME_VALUE, arena_str(a, name).s, LOC_NONE);
    r.flag = t->d.from->path;
    r.may_miss = may_miss;
    r.set[SCHEME_ITSELF] = what;
    r.set[SCHEME_ITSELF].said = true;
    scheme_add(t->out, a, r);
}

static const Fact *fact_behind_clamp(const Take *t, const Value *v) {
    const Node *n = uses_only_node(t->d.uses, v);
    return n && n->def && n->def->quant.kind == QUANT_CLAMP && n->n_out && n->out[0]
               ? map_get(t->d.facts, n->out[0]->name)
               : NULL;
}

/* Folding may take the value away. Without data nothing is known of a product that the other model
 * does not round, or rounds behind the Relu alone: it can be of integers all the same. */
static void settle_product(Value *v, void *ctx) {
    Take *t = ctx;
    if (!is_product(v) || v->stat || map_get(t->d.facts, v->name))
        return;
    const Fact *f = fact_behind_clamp(t, v);
    add_rule(t, v->name,
             f ? (SchemeSetting){.storage = f->q->storage, .fixed = quant_copy(t->d.m->arena, f->q)}
               : (SchemeSetting){.is_float = true},
             true);
}

bool donor_scales(const Job *j, Module *m, Module *from, Scheme *out) {
    if (!job_raise(j, from))
        return false;
    Take t = {look(j, m, from), out, 0, 0};
    size_t found = 0;
    for (size_t i = 0; i < map_size(t.d.facts); i++) {
        const Fact *f = map_value(t.d.facts, i);
        Value *v = map_get(t.d.here, f->name);
        if (!v || is_bias(f->stated) || !fits(&t.d, v, f->q))
            continue;
        Quant *q = quant_copy(m->arena, f->q);
        add_rule(&t, f->name, (SchemeSetting){.storage = q->storage, .fixed = q}, false);
        found++;
    }
    bool quants = map_size(t.d.facts) > 0;
    module_each_value(from, quants ? count_quant : take_stat, &t);
    if (found && !options_have_data(j->o))
        module_each_value(m, settle_product, &t);
    if (t.missing)
        diag_warning(j->d, LOC_NONE,
                     "-scales-from: %zu of %zu values %s in %s are not in this model", t.missing,
                     t.there, quants ? "that are quantized" : "with statistics", path(&t.d));
    if (!found && t.missing == t.there)
        return diag_error(j->d, LOC_NONE,
                          "-scales-from: %s has no quantization and no statistics "
                          "of a value of this model",
                          path(&t.d));
    return t.d.ok;
}
