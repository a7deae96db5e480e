/* See passes/channels.h. */
#include "passes/channels.h"

#include "passes/edit.h"

/* ---- layers ---- */

int layer_axis(const Uses *uses, const Node *n, Diags *d) {
    const Use *use;
    if (!n->def || n->def->quant.kind != QUANT_MAC || !n->def->quant.sums)
        return -1;
    const Value *w = n->in[n->def->quant.weight];
    const Tensor *t = edit_float_const(w);
    OpCtx c = op_ctx(n, d);
    int axis = t && n->def->quant.weight_axis ? n->def->quant.weight_axis(&c) : -1;
    return axis >= 0 && t->rank > 1 && uses_of(uses, w, &use) == 1 ? axis : -1;
}

LayerWeight layer_weight(const Node *n, int axis) {
    const Tensor *t = n->in[n->def->quant.weight]->data;
    const Attr *group = node_attr(n, "group");
    LayerWeight w = {.tensor = t, .axis = axis, .out = (size_t)t->dims[axis]};
    w.groups = group ? (size_t)group->v.i[0] : 1;
    w.in = (size_t)t->dims[axis == 0 ? 1 : 0] * w.groups;
    w.inner = edit_axis(t->rank, t->dims, axis).inner;
    return w;
}

size_t layer_out(const LayerWeight *w, size_t at) {
    return at / w->inner % w->out;
}

size_t layer_in(const LayerWeight *w, size_t at) {
    if (w->axis != 0)
        return at / w->out; /* [in, out] */
    size_t per_group = (size_t)w->tensor->dims[1], inner = w->inner / per_group;
    size_t group = layer_out(w, at) / (w->out / w->groups);
    return group * per_group + at / inner % per_group;
}

/* Conv has its channels along axis 1, a matrix along the last. */
static bool is_conv(const Node *n) {
    return n->in[n->def->quant.weight]->data->rank > 2;
}

int layer_reads_axis(const Node *n) {
    return is_conv(n) ? 1 : n->in[0]->type.rank - 1;
}

/* ---- classes ---- */

static size_t find(size_t *parent, size_t id) {
    while (parent[id] != id)
        id = parent[id] = parent[parent[id]];
    return id;
}

bool channels_class(const Channels *c, size_t id, size_t *class) {
    *class = find(c->classes, id);
    return !c->blocked[*class];
}

size_t channels_group(const Channels *c, size_t id) {
    return find(c->neighbours, id);
}

/* The lower number becomes the root, so that nothing depends on the order of joining. */
static size_t join(size_t *parent, size_t x, size_t y) {
    x = find(parent, x);
    y = find(parent, y);
    size_t root = x < y ? x : y;
    parent[x] = parent[y] = root;
    return root;
}

static void join_classes(Channels *c, size_t x, size_t y) {
    bool blocked = c->blocked[find(c->classes, x)] || c->blocked[find(c->classes, y)];
    c->blocked[join(c->classes, x, y)] = blocked;
    join(c->neighbours, x, y);
}

static void block(Channels *c, const Value *v) {
    const ChannelSet *s = v ? c->of[v->id] : NULL;
    for (size_t i = 0; s && i < s->n; i++)
        c->blocked[find(c->classes, s->id[i])] = true;
}

static size_t new_channel(Channels *c, bool blocked) {
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 1024;
        size_t *classes = NEW_ARRAY(c->m->arena, size_t, cap);
        size_t *neighbours = NEW_ARRAY(c->m->arena, size_t, cap);
        bool *blocks = NEW_ARRAY(c->m->arena, bool, cap);
        if (c->n) {
            memcpy(classes, c->classes, c->n * sizeof *classes);
            memcpy(neighbours, c->neighbours, c->n * sizeof *neighbours);
            memcpy(blocks, c->blocked, c->n * sizeof *blocks);
        }
        c->classes = classes;
        c->neighbours = neighbours;
        c->blocked = blocks;
        c->cap = cap;
    }
    c->classes[c->n] = c->neighbours[c->n] = c->n;
    c->blocked[c->n] = blocked;
    return c->n++;
}

static ChannelSet *new_set(Channels *c, int axis, size_t n) {
    ChannelSet *s = NEW(c->m->arena, ChannelSet);
    *s = (ChannelSet){axis, n, NEW_ARRAY(c->m->arena, size_t, n)};
    return s;
}

static void new_channels(Channels *c, ChannelSet *s, size_t at, size_t n, bool blocked) {
    for (size_t i = 0; i < n; i++) {
        s->id[at + i] = new_channel(c, blocked);
        join(c->neighbours, s->id[at], s->id[at + i]);
    }
}

/* ---- what nodes do to channels ---- */

/* Channels of an operand in the same graph; what is captured from outside has none. */
static ChannelSet *set_of(const Channels *c, const Node *n, const Value *v) {
    return v && v->graph == n->graph ? c->of[v->id] : NULL;
}

static bool has_length(const Value *v, int axis, size_t n) {
    return type_real_elem(v->type) == ELEM_FLOAT && axis < v->type.rank &&
           v->type.dims[axis].value == (int64_t)n;
}

static void visit_layer(Channels *c, Node *n, int axis) {
    LayerWeight w = layer_weight(n, axis);
    ChannelLayer layer = {.node = n, .in = set_of(c, n, n->in[0])};
    for (size_t i = 0; i < n->n_in; i++)
        if (i > 0 || !layer.in || layer.in->axis != layer_reads_axis(n) || layer.in->n != w.in ||
            node_attr(n, "transA")) {
            block(c, n->in[i]);
            layer.in = i ? layer.in : NULL;
        }
    int to = is_conv(n) ? 1 : n->out[0]->type.rank - 1;
    if (to >= 0 && has_length(n->out[0], to, w.out) &&
        (!n->def->quant.bias || edit_bias(n, w.out))) {
        ChannelSet *out = new_set(c, to, w.out);
        new_channels(c, out, 0, w.out, false);
        c->of[n->out[0]->id] = out;
        layer.out = out;
    }
    ARENA_PUSH(c->m->arena, c->layers, c->n_layers, c->cap_layers, layer);
}

/* Elements are moved and none made, or zeros. */
static bool only_moves(const Node *n, const OpCtx *c) {
    const QuantRule *q = &n->def->quant;
    if (q->kind != QUANT_MOVE || (q->integer_refusal && q->integer_refusal(c, NULL)))
        return false;
    size_t fill = q->fill ? q->fill(c) : 0;
    if (!fill || n->n_in <= fill || !n->in[fill])
        return true;
    const Tensor *t = edit_float_const(n->in[fill]);
    return t && t->count == 1 && tensor_float(t, 0) == 0;
}

/* All data operands have the same channels along the same axis, which become one. NULL otherwise.
 */
static const ChannelSet *common_set(Channels *c, const Node *n) {
    const ChannelSet *first = NULL;
    for (size_t i = 0; i < n->n_in; i++) {
        if (!n->in[i] || !quant_rule_is_data(&n->def->quant, i))
            continue;
        const ChannelSet *s = set_of(c, n, n->in[i]);
        first = first ? first : s;
        if (!s || s->n != first->n || s->axis != first->axis ||
            n->in[i]->type.rank != n->in[0]->type.rank)
            return NULL;
    }
    for (size_t i = 1; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(&n->def->quant, i))
            for (size_t k = 0; k < first->n; k++)
                join_classes(c, first->id[k], c->of[n->in[i]->id]->id[k]);
    return first;
}

static bool visit_same(Channels *c, const Node *n) {
    OpCtx ctx = op_ctx(n, c->d);
    const QuantRule *q = &n->def->quant;
    const ChannelSet *s = q->homogeneous || only_moves(n, &ctx) ? common_set(c, n) : NULL;
    int axis = s && q->move_axis ? q->move_axis(&ctx, s->axis) : s ? s->axis : -1;
    if (axis < 0 || !n->out[0] || !has_length(n->out[0], axis, s->n))
        return false;
    for (size_t i = 1; i < n->n_out; i++) /* indices of a MaxPool follow; parts of a Split do not */
        if (n->out[i] && q->kind == QUANT_MOVE)
            return false;
    ChannelSet *out = new_set(c, axis, s->n);
    memcpy(out->id, s->id, s->n * sizeof *s->id);
    c->of[n->out[0]->id] = out;
    return true;
}

/* Concat along the channels; operands without any get blocked ones. */
static bool visit_join(Channels *c, const Node *n) {
    const Attr *at = node_attr(n, "axis");
    int axis = at ? (int)(at->v.i[0] < 0 ? at->v.i[0] + n->out[0]->type.rank : at->v.i[0]) : -1;
    size_t total = 0;
    bool any = false;
    for (size_t i = 0; i < n->n_in; i++) {
        const ChannelSet *s = set_of(c, n, n->in[i]);
        if (!n->in[i] || axis < 0 || axis >= n->in[i]->type.rank ||
            n->in[i]->type.dims[axis].value < 0 || (s && s->axis != axis))
            return false;
        any = any || s;
        total += (size_t)n->in[i]->type.dims[axis].value;
    }
    if (!any || !has_length(n->out[0], axis, total))
        return false;
    ChannelSet *out = new_set(c, axis, total);
    size_t to = 0;
    for (size_t i = 0; i < n->n_in; i++) {
        const ChannelSet *s = set_of(c, n, n->in[i]);
        size_t count = (size_t)n->in[i]->type.dims[axis].value;
        if (s)
            memcpy(out->id + to, s->id, count * sizeof *s->id);
        else
            new_channels(c, out, to, count, true);
        to += count;
    }
    for (size_t i = 1; i < total; i++)
        join(c->neighbours, out->id[0], out->id[i]);
    c->of[n->out[0]->id] = out;
    return true;
}

static void visit(Graph *g, void *ctx) {
    Channels *c = ctx;
    FOR_NODES(n, g) {
        int axis = layer_axis(c->uses, n, c->d);
        if (axis >= 0 && n->n_out == 1) {
            visit_layer(c, n, axis);
            continue;
        }
        bool joins = n->def && n->def->quant.kind == QUANT_JOIN && n->def->quant.homogeneous;
        if (n->def && n->n_out && ((joins && visit_join(c, n)) || visit_same(c, n)))
            continue;
        for (size_t i = 0; i < n->n_in; i++)
            block(c, n->in[i]);
    }
    for (size_t i = 0; i < g->n_out; i++)
        block(c, g->out[i]);
}

/* What a body of If or Loop captures; an inner graph is visited before or behind the outer. */
static void block_captured(Graph *g, void *ctx) {
    FOR_NODES(n, g) {
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i] && n->in[i]->graph != g)
                block(ctx, n->in[i]);
    }
    for (size_t i = 0; i < g->n_out; i++)
        if (g->out[i]->graph != g)
            block(ctx, g->out[i]);
}

Channels channels_find(Module *m, Diags *d) {
    Channels c = {.m = m, .d = d, .uses = uses_new(m)};
    c.of = NEW_ARRAY(m->arena, ChannelSet *, m->n_values);
    module_each_graph(m, visit, &c);
    module_each_graph(m, block_captured, &c);
    return c;
}
