/* Gemm takes its weights as they are or transposed: the other model may hold them the other way
 * round, and is turned to what is here. Of a square matrix only its readers tell. */
#include "compiler/donor_match.h"
#include "passes/edit.h"

/* Whether this reader takes operand 1 transposed; -1: it is no product of two matrices. */
static int transposes(const Node *n) {
    return node_is(n, "Gemm") ? node_int(n, "transB", 0) != 0 : node_is(n, "MatMul") ? 0 : -1;
}

static const Node *of_same_name(const Donor *d, const Node *n) {
    const Node *other = n->name.n ? map_get(d->nodes[0], n->name) : NULL;
    return other ? other : map_get(d->nodes[1], n->out[0]->name);
}

static bool is_turned(const Donor *d, const Value *v, const Tensor *here, const Tensor *there) {
    const Use *use;
    size_t n = uses_of(d->uses, v, &use);
    bool square = here->dims[0] == here->dims[1], product = false;
    if (here->dims[0] != there->dims[1] || here->dims[1] != there->dims[0])
        return false;
    for (size_t i = 0; i < n; i++) {
        int is = use[i].node && use[i].index == 1 ? transposes(use[i].node) : -1;
        const Node *other = is >= 0 ? of_same_name(d, use[i].node) : NULL;
        int was = other ? transposes(other) : -1;
        if (was >= 0)
            return is != was;
        product |= is >= 0;
    }
    return product && !square;
}

/* What stands for `w` under the name of `v` from now on: other constants here may be the same one
 * there, and lie as it does. */
static void turn(const Donor *d, const Value *v, const Value *w) {
    Arena *a = d->m->arena;
    Value *turned = arena_copy(a, w, sizeof *w);
    Fact *f = map_get(d->facts, v->name);
    Tensor *t = tensor_transposed(a, value_data(w));
    Type type = tensor_type(a, t);
    if (w->type.quant) {
        Quant *q = quant_copy(a, w->type.quant);
        for (int i = 0; i < q->n_axes; i++)
            q->axis[i] = 1 - q->axis[i];
        type = type_quantized(type, q);
    }
    turned->type = type;
    turned->data = t;
    map_set(d->consts, v->name, turned);
    if (f) {
        f->stated = turned;
        f->q = type.quant;
    }
}

static void turn_const(Value *v, void *ctx) {
    Donor *d = ctx;
    const Tensor *here = edit_float_const(v);
    Value *w = here ? map_get(d->consts, v->name) : NULL;
    const Tensor *there = w && w->kind == VALUE_CONST ? w->data : NULL;
    bool plain = w && (!w->type.quant ||
                       (w->type.quant->kind == QUANT_PARAMS && !quant_is_blocked(w->type.quant)));
    if (!there || !there->data || !plain || here->rank != 2 || there->rank != 2 ||
        !is_turned(d, v, here, there))
        return;
    turn(d, v, w);
    diag_note(d->j->d, v->loc, "'%s' is taken transposed from %s", diag_name(d->j->d, v->name),
              donor_path(d));
}

void donor_turn(Donor *d) {
    module_each_value(d->m, turn_const, d);
}
