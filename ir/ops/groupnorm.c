/* GroupNormalization. It has one scale a group at opset 18, one a channel from 21; all else are
 * types. */
#include "ir/ops/layernorm.h"
#include "ir/provenance.h"

enum { X = NORM_X, SCALE = NORM_SCALE, BIAS = NORM_BIAS };

static const AttrSpec attrs[] = {
    A_INT_REQUIRED(NormAttrs, num_groups),
    A_FLOAT(NormAttrs, epsilon, 1e-5f),
    A_INT(NormAttrs, stash_type, 1),
    A_END,
};

/* Before opset 21 scale and bias have a number for each group. Exporters give one for each channel,
 * as the operator was corrected to have. */
static bool has_channels(const OpCtx *c) {
    const NormAttrs *a = c->attrs;
    Type x = op_type(c, X), s = op_type(c, SCALE);
    bool known = x.rank > 1 && s.rank == 1 && s.dims[0].value >= 0;
    return c->opset >= 21 ||
           (known && s.dims[0].value == x.dims[1].value && s.dims[0].value != a->num_groups);
}

static bool group_verify(const OpCtx *c) {
    const NormAttrs *a = c->attrs;
    Type x = op_type(c, X);
    if (!op_number(c, "num_groups", a->num_groups))
        return false;
    if (x.rank < 0)
        return true;
    if (x.rank < 3)
        return op_error_in(c, X, "input must have rank 3 or more, not %d", x.rank);
    int64_t channels = x.dims[1].value, entries = has_channels(c) ? channels : a->num_groups;
    if (channels >= 0 && channels % a->num_groups)
        return op_error_attr(c, "num_groups", "%lld channels do not divide into %lld groups",
                             (long long)channels, (long long)a->num_groups);
    return norm_check_count(c, SCALE, entries) && norm_check_count(c, BIAS, entries);
}

static bool group_bind(Binder *b, const Node *n, const OpCtx *c) {
    const NormAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    int32_t groups = (int32_t)a->num_groups, members = (int32_t)x.dims[1].value / groups;
    int32_t size = bind_extent(x, 2, x.rank);
    NormRows r = {(int32_t)x.dims[0].value * groups, members * size, groups, 1, members * size};
    if (has_channels(c)) {
        r.step = members;
        r.block = size;
    }
    return norm_bind_channels(b, n, c, &r, a->epsilon);
}

/* One number a group as one a channel. */
static bool repeat(Node *n, size_t at, int64_t groups, int64_t channels, UniqueNames *names,
                   Diags *d) {
    Value *v = n->in[at];
    const Tensor *t = value_data(v);
    if (!t || !t->data || channels < 0 || t->count != (size_t)groups)
        return diag_error(d, n->loc,
                          "%s: from opset 21 on '%s' has a number for each channel, and it or the "
                          "number of channels is not constant",
                          node_text(n), diag_name(d, v->name));
    Arena *a = n->graph->module->arena;
    size_t size = elem_bytes(t->elem, 1), members = (size_t)(channels / groups);
    uint8_t *to;
    Tensor *all = tensor_new(a, t->elem, 1, &channels, &to);
    for (size_t i = 0; i < (size_t)channels; i++)
        memcpy(to + i * size, t->data + i / members * size, size);
    n->in[at] = graph_add_const(n->graph, unique_name(names, v->name), tensor_type(a, all), all);
    value_from(n->in[at], v, "upgrade");
    return true;
}

static bool group_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    const NormAttrs *a = n->typed;
    if (from >= 21 || to < 21 || !a || n->n_in <= BIAS)
        return true;
    Type x = n->in[X]->type;
    int64_t channels = x.kind == TYPE_TENSOR && x.rank > 1 ? x.dims[1].value : -1;
    OpCtx c = op_ctx(n, d);
    return has_channels(&c) || (repeat(n, SCALE, a->num_groups, channels, names, d) &&
                                repeat(n, BIAS, a->num_groups, channels, names, d));
}

const OpDef op_GroupNormalization = {
    .domain = "",
    .name = "GroupNormalization",
    .attrs_size = sizeof(NormAttrs),
    .attrs = attrs,
    .verify = group_verify,
    .infer = op_same_type,
    .slices = op_slices_first,
    NORM_QUANT(0),
    .upgrade = group_upgrade,
    .bind = group_bind,
};
