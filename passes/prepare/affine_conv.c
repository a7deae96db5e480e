#include "passes/prepare/affine_conv.h"

#include "passes/edit.h"
#include "passes/line.h"

typedef struct Affine {
    size_t channels;
    double *scale, *shift; /* one a channel */
} Affine;

static bool takes_rank(int rank, bool no_floats) {
    return no_floats ? rank >= 2 && rank <= 5 : rank == 3 || rank == 4;
}

static bool find_affine(QuantBuild *b, const Node *n, bool no_floats, Affine *f) {
    if (!n->def || !n->def->affine || n->def->quant.kind != QUANT_NEVER || n->n_out < 1)
        return false;
    const Value *x = n->in[0];
    if (type_real_elem(x->type) != ELEM_FLOAT || !takes_rank(x->type.rank, no_floats) ||
        x->type.dims[1].value < 1)
        return false;
    size_t data;
    OpCtx c = op_ctx(n, b->d);
    f->channels = (size_t)x->type.dims[1].value;
    f->scale = NEW_ARRAY(b->a, double, f->channels);
    f->shift = NEW_ARRAY(b->a, double, f->channels);
    return n->def->affine(&c, 1, f->channels, &data, f->scale, f->shift) && data == 0 &&
           edit_all_finite(f->scale, f->channels) && edit_all_finite(f->shift, f->channels);
}

static Value *weights(QuantBuild *b, const Node *n, const Affine *f, int rank) {
    int64_t dims[MAX_RANK];
    float *w;
    Str base = n->name.n ? n->name : n->out[0]->name;
    for (int i = 0; i < rank; i++)
        dims[i] = i ? 1 : (int64_t)f->channels;
    Value *v = edit_new_floats(n->graph, b->names,
                               arena_strf(b->a, STR_FMT ".weight", STR_ARG(base)), rank, dims, &w);
    for (size_t i = 0; i < f->channels; i++)
        w[i] = (float)f->scale[i];
    value_from_node(v, n, b->pass);
    return v;
}

void affine_to_conv(QuantBuild *b, Node *n, bool no_floats) {
    Affine f;
    if (!find_affine(b, n, no_floats, &f))
        return;
    Value *x = line_of(b, n, n->in[0]);
    Node *conv = build_node(b, n, "Conv", STR_NONE, OPERANDS(x, weights(b, n, &f, x->type.rank)));
    conv->name = n->name;
    conv->doc = n->doc;
    conv->meta = n->meta;
    node_set_int(conv, "group", (int64_t)f.channels);
    line_store(b, n, conv, n->out[0]);
    node_remove(n);
    edit_set_bias(conv, b->names, f.shift, f.channels, b->pass, n);
}
