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
    Map *facts;  /* quantizations by the names of float values: Fact */
    Map *consts; /* constants by name: Value */
    Map *here;   /* values of m by name */
    bool *taken; /* by value id of `from`: something here has its name */
    bool ok;
} Donor;

/* ---- what the other model says ---- */

static void add_fact(Donor *d, Str name, Value *v) {
    if (!name.n || map_get(d->facts, name))
        return;
    Fact *f = NEW(d->m->arena, Fact);
    *f = (Fact){name, v->type.quant, v};
    map_set(d->facts, name, f);
}

static bool has_params(const Value *v) {
    return v->type.kind == TYPE_TENSOR && v->type.quant && v->type.quant->kind == QUANT_PARAMS;
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

static void note_rest(Value *v, void *ctx) {
    Donor *d = ctx;
    if (!has_params(v))
        return;
    Str base = base_name(v->name);
    add_fact(d, base, v);
    if (v->kind == VALUE_CONST && !map_get(d->consts, base))
        map_set(d->consts, base, v);
}

static void note_here(Value *v, void *ctx) {
    Donor *d = ctx;
    if (!map_get(d->here, v->name))
        map_set(d->here, v->name, v);
}

static Donor look(const Job *j, Module *m, Module *from) {
    Arena *a = m->arena;
    Donor d = {j, m, from, map_new(a), map_new(a), map_new(a), NULL, true};
    d.taken = NEW_ARRAY(a, bool, from->n_values + 1);
    module_each_value(from, note_value, &d);
    module_each_value(from, note_rest, &d);
    module_each_value(m, note_here, &d);
    return d;
}

/* ---- complaints ---- */

static const char *path(const Donor *d) {
    return diag_name(d->j->d, str_from(d->from->path));
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

static bool same_shape(const Tensor *x, const Tensor *y) {
    return x->rank == y->rank && memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

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

static void take_quant(Value *v, void *ctx) {
    Donor *d = ctx;
    const Fact *f = map_get(d->facts, v->name);
    if (!f)
        return;
    d->taken[f->stated->id] = true;
    bool real = v->type.kind != TYPE_TENSOR || v->type.elem == ELEM_FLOAT;
    if (is_bias(f->stated) || !real || v->type.quant || !fits(d, v, f->q))
        return; /* biases follow by themselves */
    Quant *q = quant_copy(d->m->arena, f->q);
    q->alias = v->name;
    module_add_quant(d->m, q);
    Type t = v->type.kind == TYPE_TENSOR ? v->type : type_tensor(ELEM_FLOAT, -1, NULL);
    v->type = type_tilde(t, q);
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

bool donor_weights(const Job *j, Module *m, Module *from) {
    if (!job_raise(j, from))
        return false;
    Donor d = look(j, m, from);
    module_each_value(m, take_const, &d);
    module_each_value(m, take_quant, &d);
    module_each_value(from, complain_unused, &d);
    return d.ok;
}

/* ---- scales alone ---- */

typedef struct Take {
    Donor d;
    Scheme *out;
    size_t stats, missing;
} Take;

static void take_stat(Value *v, void *ctx) {
    Take *t = ctx;
    if (!v->stat || v->kind == VALUE_CONST)
        return;
    t->stats++;
    Value *here = map_get(t->d.here, v->name);
    if (here && !here->stat)
        here->stat = v->stat;
    t->missing += !here;
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
        SchemeRule r = scheme_rule(SCHEME_VALUE, arena_str(m->arena, f->name).s, LOC_NONE);
        r.flag = from->path;
        r.set[SCHEME_ITSELF].said = true;
        r.set[SCHEME_ITSELF].storage = f->q->storage;
        r.set[SCHEME_ITSELF].fixed = quant_copy(m->arena, f->q);
        scheme_add(out, m->arena, r);
        found++;
    }
    if (!map_size(t.d.facts))
        module_each_value(from, take_stat, &t);
    if (t.missing)
        diag_warning(j->d, LOC_NONE,
                     "-scales-from: %zu of %zu values with statistics in %s are "
                     "not in this model",
                     t.missing, t.stats, path(&t.d));
    if (!found && t.missing == t.stats)
        return diag_error(j->d, LOC_NONE,
                          "-scales-from: %s has no quantization and no statistics "
                          "of a value of this model",
                          path(&t.d));
    return t.d.ok;
}
