/* BatchNormalization: 9 dropped `spatial`; until 13 more than one result means training, from 14
 * training_mode says it. */
#include "ir/ops/overlay.h"
#include "ir/provenance.h"

#include <math.h>

/* ---- BatchNormalization ---- */

typedef struct BatchNormAttrs {
    float epsilon, momentum;
    int64_t training_mode, spatial;
} BatchNormAttrs;

static const AttrSpec bn_attrs[] = {
    A_FLOAT(BatchNormAttrs, epsilon, 1e-5f),
    A_FLOAT(BatchNormAttrs, momentum, 0.9f),
    A_FLAG(BatchNormAttrs, training_mode, 0),
    A_INT(BatchNormAttrs, spatial, 1),
    A_END,
};

enum { X, SCALE, BIAS, MEAN, VAR };

static bool bn_training(const Node *n, const BatchNormAttrs *a) {
    if (a->training_mode)
        return true;
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i])
            return true;
    return false;
}

static bool bn_verify(const OpCtx *c) {
    const BatchNormAttrs *a = c->attrs;
    Type x = op_type(c, X);
    if (x.rank >= 0 && x.rank < 2)
        return op_error_in(c, X, "input must have rank 2 or more, not %d", x.rank);
    for (size_t i = SCALE; i <= VAR && x.rank >= 2 && a->spatial; i++) {
        Type t = op_type(c, i);
        if (t.rank >= 0 && t.rank != 1)
            return op_error_in(c, i, "operand %zu must have rank 1, not %d", i, t.rank);
        if (t.rank == 1 && dim_differ(t.dims[0].value, x.dims[1].value))
            return op_error_in(c, i, "operand %zu has %lld entries for %lld channels", i,
                               (long long)t.dims[0].value, (long long)x.dims[1].value);
    }
    return true;
}

/* The running statistics that training returns have the type of those that came in. */
static bool bn_infer(OpCtx *c) {
    for (size_t i = 1; i < c->n_out; i++) {
        Type t = op_type(c, i % 2 ? MEAN : VAR);
        if (t.kind == TYPE_TENSOR)
            c->out[i] = type_tensor(type_real_elem(t), t.rank, t.dims);
    }
    return op_same_type(c);
}

static bool bn_affine(const OpCtx *c, int axis, size_t channels, size_t *data, double *scale,
                      double *shift) {
    const BatchNormAttrs *a = c->attrs;
    const Tensor *t[5];
    if (axis != 1 || bn_training(c->node, a) || !a->spatial)
        return false;
    for (size_t i = SCALE; i <= VAR; i++) {
        t[i] = op_const(c, i);
        if (!t[i] || !t[i]->data || t[i]->count != channels || !elem_is_float(t[i]->elem))
            return false;
    }
    for (size_t k = 0; k < channels; k++) {
        scale[k] = tensor_float(t[SCALE], k) / sqrt(tensor_float(t[VAR], k) + (double)a->epsilon);
        shift[k] = tensor_float(t[BIAS], k) - tensor_float(t[MEAN], k) * scale[k];
    }
    *data = X;
    return true;
}

/* Before 14 training also handed on the statistics of the batch. */
static bool bn_saves(const Node *n) {
    for (size_t i = 3; i < n->n_out; i++)
        if (n->out[i])
            return true;
    return false;
}

/* With parameters for each element of a sample it is a product and a sum: of constants. */
static bool bn_elements(Node *n, int64_t to, UniqueNames *names, Diags *d) {
    const BatchNormAttrs *a = n->typed;
    Arena *arena = n->graph->module->arena;
    const Tensor *p[VAR + 1];
    bool known = !bn_training(n, a);
    for (size_t i = SCALE; i <= VAR; i++) {
        p[i] = value_data(n->in[i]);
        known = known && p[i] && p[i]->data && p[i]->elem == ELEM_FLOAT &&
                p[i]->count == p[SCALE]->count;
    }
    if (!known)
        return diag_error(d, n->loc,
                          "BatchNormalization with spatial=0 has a form at opset %lld only where "
                          "its parameters are constant floats and it does not train",
                          (long long)to);
    float *values[] = {NEW_ARRAY(arena, float, p[SCALE]->count),
                       NEW_ARRAY(arena, float, p[SCALE]->count)};
    for (size_t i = 0; i < p[SCALE]->count; i++) {
        double factor =
            tensor_float(p[SCALE], i) / sqrt(tensor_float(p[VAR], i) + (double)a->epsilon);
        values[0][i] = (float)factor;
        values[1][i] = (float)(tensor_float(p[BIAS], i) - tensor_float(p[MEAN], i) * factor);
    }
    Value *made[2];
    for (size_t i = 0; i < 2; i++) {
        Tensor *t = tensor_of(arena, ELEM_FLOAT, p[SCALE]->rank, p[SCALE]->dims, values[i]);
        const Value *like = n->in[i ? BIAS : SCALE];
        made[i] =
            graph_add_const(n->graph, unique_name(names, like->name), tensor_type(arena, t), t);
        value_from(made[i], like, "upgrade");
    }
    Node *product = node_new(n->graph, STR_NONE, STR("Mul"), 2, 1);
    product->loc = n->loc;
    product->in[0] = n->in[X];
    product->in[1] = made[0];
    node_from(product, n, "upgrade");
    node_insert_before(n, product);
    Str name = arena_strf(arena, STR_FMT "_product", STR_ARG(n->out[0]->name));
    node_becomes(n, "upgrade");
    n->op = STR("Add");
    n->n_attrs = 0;
    n->n_in = 2;
    n->n_out = 1;
    n->in[0] = node_add_output(product, 0, unique_name(names, name), TYPE_UNKNOWN);
    n->in[1] = made[1];
    return true;
}

static bool bn_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    const BatchNormAttrs *a = n->typed;
    if (from < 9 && to >= 9 && a) {
        if (!a->spatial)
            return bn_elements(n, to, names, d);
        node_drop_attr(n, "spatial");
    }
    if (from >= 14 || to < 14 || !a || !bn_training(n, a))
        return true;
    if (bn_saves(n))
        return diag_error(
            d, n->loc,
            "BatchNormalization in training has no saved statistics from opset 14 on, "
            "so that it has no form at opset %lld",
            (long long)to);
    n->n_out = n->n_out > 3 ? 3 : n->n_out;
    node_set_int(n, "training_mode", 1);
    return true;
}

/* A result that is not asked for has no buffer. */
static int bind_result(Binder *b, const Node *n, size_t i) {
    return i < n->n_out ? bind_value(b, n->out[i]) : -1;
}

static bool bn_bind_training(Binder *b, const Node *n, const BatchNormAttrs *a) {
    Type x = n->in[X]->type;
    if (bn_saves(n))
        return bind_unsupported(b, n, "it saves statistics, as before opset 14");
    qk_batchnorm_training_f32_params p = {.n = (int32_t)x.dims[0].value,
                                          .c = (int32_t)x.dims[1].value,
                                          .inner = bind_extent(x, 2, x.rank),
                                          .eps = a->epsilon,
                                          .momentum = a->momentum};
    int args[8];
    for (int i = 0; i < 5; i++)
        args[i] = bind_value(b, n->in[i]);
    for (int i = 0; i < 3; i++)
        args[5 + i] = bind_result(b, n, (size_t)i);
    return bind_call(b, n, "qk_batchnorm_training_f32", &p, sizeof p, 8, args);
}

/* What is multiplied by, one number a channel: mostly computed ahead, as all of it is constant. */
static int bn_factor(Binder *b, const Node *n, const BatchNormAttrs *a) {
    size_t channels = (size_t)n->in[X]->type.dims[1].value;
    qk_batchnorm_factor_f32_params p = {.c = (int32_t)channels, .eps = a->epsilon};
    int factor = bind_temp(b, bind_real(b), channels);
    bind_call(b, n, "qk_batchnorm_factor_f32", &p, sizeof p, 3,
              (int[]){bind_value(b, n->in[SCALE]), bind_value(b, n->in[VAR]), factor});
    return factor;
}

static bool bn_bind(Binder *b, const Node *n, const OpCtx *c) {
    const BatchNormAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    if (!a->spatial)
        return bind_unsupported(b, n, "it has statistics of each place (spatial=0)");
    if (!bind_floats_only(b, n))
        return false;
    if (bn_training(n, a))
        return bn_bind_training(b, n, a);
    int args[5] = {0, bn_factor(b, n, a), bind_value(b, n->in[BIAS]), bind_value(b, n->in[MEAN])};
    bind_each(b, n, n->in[X], n->out[0], &args[0], &args[4]);
    bool last = bind_is_last(b, n->out[0]);
    int32_t inner = bind_extent(x, 2, x.rank), images = (int32_t)x.dims[0].value;
    qk_batchnorm_f32_params p = {.n = last ? images * inner : images,
                                 .c = (int32_t)x.dims[1].value,
                                 .inner = last ? 1 : inner};
    if (!bind_call(b, n, "qk_batchnorm_f32", &p, sizeof p, 5, args))
        return false;
    bind_in_place(b, 0);
    return true;
}

const OpDef op_BatchNormalization = {
    .domain = "",
    .name = "BatchNormalization",
    .attrs_size = sizeof(BatchNormAttrs),
    .attrs = bn_attrs,
    .verify = bn_verify,
    .infer = bn_infer,
    .slices = op_slices_first,
    .affine = bn_affine,
    .upgrade = bn_upgrade,
    .bind = bn_bind,
};
