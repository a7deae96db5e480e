/* -weights-from: see compiler/donor.h. */
#include "compiler/donor_match.h"
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/quant_build.h"

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
        d->ok = diag_error(d->j->d, v->loc, "%s has no constant '%s'", donor_path(d),
                           diag_name(d->j->d, v->name));
        diag_did_you_mean_key(d->j->d, v->loc, v->name, d->consts);
    } else if (!donor_same_shape(t, data)) {
        d->ok = diag_error(d->j->d, v->loc, "'%s' is %s here and %s in %s",
                           diag_name(d->j->d, v->name), type_text(d->m->arena, v->type),
                           type_text(d->m->arena, w->type), donor_path(d));
    } else if (type_is_quantized(w->type)) {
        v->data = const_dequantize(d->m->arena, data, w->type.quant);
    } else if (data->elem != t->elem) {
        d->ok = diag_error(d->j->d, v->loc, "'%s' is no float constant in %s",
                           diag_name(d->j->d, v->name), donor_path(d));
    } else {
        uint8_t *bytes;
        Tensor *copy = tensor_new(d->m->arena, t->elem, t->rank, t->dims, &bytes);
        memcpy(bytes, data->data, data->bytes);
        v->data = copy;
        if (v->from.n)
            v->from.by = STR("weights-from"); /* what a pass did to its numbers is gone */
    }
}

/* A reader that has the float value there, where others have it rounded. */
static bool reads_float(const Donor *d, const Fact *f, const Use *use) {
    const Node *q = f->stated->def;
    return q && is_own_quantize(q) && donor_read_there(d, use) == q->in[0];
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
    if (donor_is_bias(f->stated) || !real || v->type.quant || !donor_fits(d, v, f->q))
        return; /* biases follow by themselves */
    Value *rounded = v->kind == VALUE_CONST ? NULL : part_readers(d, v, f);
    v = rounded ? rounded : v;
    Quant *q = quant_copy(d->m->arena, f->q);
    q->alias = v->name;
    module_add_quant(d->m, q);
    Type t = v->type.kind == TYPE_TENSOR ? v->type : type_tensor(ELEM_FLOAT, -1, NULL);
    v->type = type_tilde(t, q);
}

/* A product that only a Relu or Clip reads is rounded as the result of that is: before it or behind
 * it is the same, and the product can be of integers. */
static void round_before_clamps(Graph *g, void *ctx) {
    Donor *d = ctx;
    for (Node *n = g->last; n; n = n->prev) {
        Value *x = n->n_in ? n->in[0] : NULL, *y = n->n_out ? n->out[0] : NULL;
        if (n->def && n->def->quant.kind == QUANT_CLAMP && x && y && edit_tilde(y) &&
            donor_is_product(x) && !x->type.quant && x->type.kind == TYPE_TENSOR &&
            uses_only_node(d->uses, x))
            x->type = type_tilde(x->type, y->type.quant);
    }
}

/* Weights and scales that were trained and are of no use here. */
static void complain_unused(Value *v, void *ctx) {
    Donor *d = ctx;
    bool weight = v->kind == VALUE_CONST && donor_has_params(v);
    if (d->taken[v->id] || !(weight || donor_has_params(v)))
        return;
    Str name = base_name(v->name);
    d->ok = diag_error(d->j->d, v->loc, "%s quantizes '%s', of which %s has nothing", donor_path(d),
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

typedef struct Lack {
    Map *there;
    bool any;
} Lack;

static void note_name(Value *v, void *ctx) {
    if (v->kind == VALUE_CONST)
        map_set(ctx, v->name, v);
}

static void look_for_lack(Value *v, void *ctx) {
    Lack *l = ctx;
    const Tensor *t = edit_float_const(v);
    l->any = l->any || (t && t->count > 1 && !map_get(l->there, v->name));
}

/* A text with decisions has the constants that the quantizer made of those of its float model: of
 * that they are made once more. */
static bool fuse_as_here(const Job *j, Module *m, Module *from, ModuleForm here) {
    ModuleForm there = module_form(from);
    Lack lack = {.there = map_new(m->arena)};
    module_each_value(from, note_name, lack.there);
    module_each_value(m, look_for_lack, &lack);
    return !here.fake || there.fake || there.typed || !lack.any || job_fuse(j, from);
}

bool donor_weights(const Job *j, Module *m, Module *from) {
    ModuleForm form = module_form(m);
    if (form.typed || form_is_spelled(form))
        return diag_error(j->d, LOC_NONE,
                          "%s is quantized already: -weights-from gives weights to a float model",
                          diag_name(j->d, str_from(m->path)));
    if (!job_raise(j, from) || !fuse_as_here(j, m, from, form))
        return false;
    Donor d = donor_look(j, m, from);
    donor_turn(&d);
    module_each_value(m, take_const, &d);
    donor_take_dynamic(&d);
    module_each_value(m, take_quant, &d);
    d.uses = uses_new(m);
    module_each_graph(m, round_before_clamps, &d);
    module_each_value(from, complain_unused, &d);
    if (j->o->calib.n)
        take_input_stats(&d);
    return d.ok;
}
