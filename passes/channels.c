/* See passes/channels.h. */
#include "passes/channels.h"

#include "passes/edit.h"

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
            node_int(n, "transA", 0)) {
            block(c, n->in[i]);
            layer.in = i ? layer.in : NULL;
        }
    int to = layer_makes_axis(n);
    if (to >= 0 && has_length(n->out[0], to, w.out) &&
        (!n->def->quant.mac.bias || edit_bias(n, w.out))) {
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
    size_t fill = q->move.fill && q->move.fills(c) ? q->move.fill : 0;
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
    const ChannelSet *s = q->scaled.homogeneous || only_moves(n, &ctx) ? common_set(c, n) : NULL;
    int axis = s && q->move.axis ? q->move.axis(&ctx, s->axis) : s ? s->axis : -1;
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
    int axis = attr_holds(at, ATTR_INT)
                   ? (int)(at->v.i[0] < 0 ? at->v.i[0] + n->out[0]->type.rank : at->v.i[0])
                   : -1;
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

/* ---- constants with a number for each channel ---- */

/* The axis of `out` that a constant, broadcast to it, has its numbers along; -1: there is not just
 * one, or it is not constant. */
static int const_axis(const Value *v, const Value *out, size_t *n) {
    const Tensor *t = edit_float_const(v);
    int at = -1;
    if (!t || t->count < 2 || t->rank > out->type.rank)
        return -1;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] == (int64_t)t->count)
            at = i + out->type.rank - t->rank;
    *n = t->count;
    return at >= 0 && has_length(out, at, *n) ? at : -1;
}

static void add_const(Channels *c, Node *n, size_t operand, const ChannelSet *out) {
    ChannelConst k = {n, operand, out};
    ARENA_PUSH(c->m->arena, c->consts, c->n_consts, c->cap_consts, k);
}

/* The operands that the result is proportional to, as bits, if they are constants with numbers
 * along one axis; 0: they are not. */
static uint32_t factors_of(const Node *n, int *axis, size_t *count) {
    const QuantRule *q = &n->def->quant;
    uint32_t found = 0;
    *axis = -1;
    for (size_t i = 0; i < n->n_in && i < 32; i++) {
        if (!n->in[i] || !(q->scaled.multiplies || (q->scaled.proportional >> i & 1)))
            continue;
        size_t here;
        int along = const_axis(n->in[i], n->out[0], &here);
        if (along < 0 && q->scaled.multiplies)
            continue;
        if (along < 0 || (found && (along != *axis || here != *count)))
            return 0;
        found = q->scaled.multiplies ? 1U << i : found | 1U << i;
        *axis = along;
        *count = here;
    }
    return found;
}

/* A node that makes channels of its own with constants. */
static bool visit_factors(Channels *c, Node *n) {
    int axis;
    size_t count;
    uint32_t factors = n->out[0] ? factors_of(n, &axis, &count) : 0;
    if (!factors)
        return false;
    for (size_t i = 0; i < n->n_in; i++)
        block(c, n->in[i]);
    ChannelSet *out = new_set(c, axis, count);
    new_channels(c, out, 0, count, false);
    c->of[n->out[0]->id] = out;
    for (size_t i = 0; i < n->n_in && i < 32; i++)
        if (factors >> i & 1)
            add_const(c, n, i, out);
    return true;
}

/* Channels to which a constant of theirs is added. */
static bool visit_sum(Channels *c, Node *n) {
    size_t count, at = 0;
    if (!n->def->quant.adds || n->n_in != 2 || !n->out[0])
        return false;
    while (at < 2 && const_axis(n->in[at], n->out[0], &count) < 0)
        at++;
    const ChannelSet *s = at < 2 ? set_of(c, n, n->in[1 - at]) : NULL;
    if (!s || n->in[1 - at]->type.rank != n->out[0]->type.rank || s->n != count ||
        s->axis != const_axis(n->in[at], n->out[0], &count))
        return false;
    ChannelSet *out = new_set(c, s->axis, s->n);
    memcpy(out->id, s->id, s->n * sizeof *s->id);
    c->of[n->out[0]->id] = out;
    add_const(c, n, at, out);
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
        bool joins = n->def && n->def->quant.kind == QUANT_JOIN && n->def->quant.scaled.homogeneous;
        if (n->def && n->n_out &&
            ((joins && visit_join(c, n)) || visit_factors(c, n) || visit_sum(c, n) ||
             visit_same(c, n)))
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
    c.n_values = m->n_values;
    module_each_graph(m, visit, &c);
    module_each_graph(m, block_captured, &c);
    return c;
}
