/* Types and Q/DQ to quantization annotations: every tensor whose quantization is known gets an
 * entry in GraphProto.quantization_annotation that names its scale and zero point
 * (passes/annotations.h).
 *
 * Where Q, DQ or a QOperator state a tensor's parameters, their operands are named. A value `~ q`
 * becomes a plain one; its parameters get the constants that its `annotation` line names, as long
 * as they still say the same, else constants of their own: one number, or the tensor's rank with
 * one entry for each channel or block. Annotations that are there stay.
 *
 * What an annotation has no words for, nodes state (passes/stated.h); with -annotate=nodes all of
 * `~ q`, and no annotation is written. */
#include "passes/quant_build.h"
#include "ir/ops/qop.h"
#include "passes/annotations.h"
#include "passes/edit.h"
#include "passes/lower/state_precision.h"
#include "passes/spelling.h"
#include "passes/stated.h"

typedef struct Stated {
    Value *scale, *zp;
} Stated;

typedef struct Annotate {
    QuantBuild b;
    Names *names;
    Map *stated;      /* by value id: what nodes say */
    Map *made;        /* constants by quantization and shape */
    Map *noted;       /* by value id: constants that an `annotation` line named */
    Map *named;       /* by value id: constants that an annotation now names */
    Annotations list; /* of the graph at hand */
    const Uses *uses;
    bool by_nodes; /* -annotate=nodes */
    bool ok;
} Annotate;

/* ---- what nodes state ---- */

static void state(Annotate *a, Value *v, Value *scale, Value *zp) {
    if (!v || !scale || !value_data(scale) || (zp && !value_data(zp)) ||
        v->type.kind != TYPE_TENSOR || !elem_is_int(v->type.elem))
        return;
    Stated s = {scale, zp};
    if (!map_get(a->stated, value_key(v)))
        map_set(a->stated, value_key(v), arena_copy(a->b.a, &s, sizeof s));
}

static void state_graph(Graph *g, void *ctx) {
    Annotate *a = ctx;
    FOR_NODES(n, g) {
        const OpDef *op;
        QopView view;
        Value *zp = node_input(n, 2);
        if (is_onnx_quantize(n)) {
            state(a, n->out[0], n->in[1], zp);
        } else if (is_onnx_dequantize(n)) {
            state(a, n->in[0], n->in[1], zp);
        } else if (qop_find(n->domain, n->op) && qop_view(n, &op, &view, a->b.d)) {
            for (size_t i = 0; i < view.n_in; i++)
                state(a, view.in[i], view.scale[i], view.zp[i]);
            state(a, n->n_out ? n->out[0] : NULL, view.y_scale, view.y_zp);
        }
    }
}

/* ---- constants ---- */

/* One entry for each scale, in the tensor's rank. False where the last block is short (nobody could
 * tell how long the others are) or the axes are not in order. */
static bool params_dims(const Quant *q, Type t, int *rank, int64_t *dims) {
    *rank = q->n_axes ? t.rank : 0;
    for (int i = 0; i < *rank; i++)
        dims[i] = 1;
    for (int i = 0; i < q->n_axes; i++) {
        int64_t n = t.dims[q->axis[i]].value;
        if (n < 0 || n % q->block[i] || (i && q->axis[i] <= q->axis[i - 1]))
            return false;
        dims[q->axis[i]] = n / q->block[i];
    }
    return true;
}

static bool says_scale(const Tensor *t, const Quant *q) {
    bool same =
        t && t->data && t->elem == q->scale_type && (t->count == q->n_scale || t->count == 1);
    for (size_t i = 0; same && i < q->n_scale; i++)
        same = (float)tensor_float(t, t->count == 1 ? 0 : i) == quant_scale(q, i);
    return same;
}

static bool says_zp(const Tensor *t, const Quant *q) {
    bool same = t && t->data && t->elem == q->storage && (t->count == q->n_scale || t->count == 1);
    for (size_t i = 0; same && i < q->n_scale; i++)
        same = tensor_int(t, t->count == 1 ? 0 : i) == quant_zp(q, i);
    return same;
}

static Value *noted(Annotate *a, const Value *v, const Node *note, const char *key) {
    Str name = said_name(note, key, STR_NONE);
    Value *c = name.n ? annotation_find(a->names, v->graph, name, false) : NULL;
    if (c)
        map_set(a->noted, value_key(c), c);
    return c;
}

/* The constants of the value's line, where they still say its type. */
static bool as_noted(Annotate *a, const Value *v, const Quant *q, Stated *s) {
    const Node *note = annotation_note(v);
    if (!note)
        return false;
    *s = (Stated){noted(a, v, note, "scale"), noted(a, v, note, "zero_point")};
    bool none = !said(note, "zero_point") && quant_zp_all_zero(q) &&
                q->storage == (elem_is_int(v->type.elem) ? v->type.elem : ELEM_UINT8);
    return s->scale && says_scale(value_data(s->scale), q) &&
           (s->zp ? says_zp(value_data(s->zp), q) : none);
}

static Value *integers(Annotate *a, const Quant *q, Str base, int rank, const int64_t *dims) {
    uint8_t *bytes;
    Tensor *t = tensor_new(a->b.a, q->storage, rank, dims, &bytes);
    for (size_t i = 0; i < t->count; i++)
        elem_store_int(q->storage, bytes, i, quant_zp(q, i));
    return graph_add_const(a->b.m->graph, derived_name(&a->b, base, "_zero_point"),
                           tensor_type(a->b.a, t), t);
}

/* New constants, one pair for equal quantizations of the same shape. */
static Stated make(Annotate *a, const Value *v, const Quant *q, int rank, const int64_t *dims) {
    Buf key = buf_new(a->b.a);
    buf_str(&key, quant_key(a->b.a, q));
    buf_put(&key, dims, (size_t)rank * sizeof *dims);
    const Stated *known = map_get(a->made, buf_as_str(&key));
    if (known)
        return *known;
    Str base = q->alias.n ? q->alias : v->name;
    float *scale = NEW_ARRAY(a->b.a, float, q->n_scale);
    for (size_t i = 0; i < q->n_scale; i++)
        scale[i] = quant_scale(q, i);
    Stated s = {build_floats(&a->b, base, "_scale", q->scale_type, rank, dims, scale),
                integers(a, q, base, rank, dims)};
    map_set(a->made, buf_as_str(&key), arena_copy(a->b.a, &s, sizeof s));
    return s;
}

/* ---- what annotations have no words for ---- */

static void let_nodes_state(Annotate *a, Value *v, Str text) {
    size_t n = 0;
    a->ok = (!text.n || stated_put(a->uses, v, text, a->b.d, &n)) && a->ok;
    if (!text.n)
        diag_warning(a->b.d, v->loc, "the quantization of \"%s\" is lost: it follows from others",
                     diag_name(a->b.d, v->name));
    else if (!n)
        diag_warning(a->b.d, v->loc,
                     "the quantization of \"%s\" is lost: no node makes or reads it that could "
                     "state \"%s\"",
                     diag_name(a->b.d, v->name), diag_name(a->b.d, text));
}

static bool is_narrow(const Quant *q) {
    return q->has_range && (q->lo > elem_min(q->storage) || q->hi < elem_max(q->storage));
}

/* False where the value gets no annotation: its nodes state all of it. */
static bool of_type(Annotate *a, Value *v, Stated *s) {
    int64_t dims[MAX_RANK];
    int rank;
    const Quant *q = v->type.quant;
    bool numbers = q->kind == QUANT_PARAMS && onnx_quant(&a->b, q) == q;
    if (a->by_nodes || !numbers || !params_dims(q, v->type, &rank, dims)) {
        as_noted(a, v, q, s); /* what only the annotation named goes with it */
        let_nodes_state(a, v, stated_quant(a->b.a, q));
        return false;
    }
    if (is_narrow(q))
        let_nodes_state(a, v, stated_range(a->b.a, q));
    if (!as_noted(a, v, q, s))
        *s = make(a, v, q, rank, dims);
    return true;
}

/* ---- annotations ---- */

static void name(Annotate *a, Value *v, Stated s) {
    const Node *note = annotation_note(v);
    Annotation one = {.of = v, .at = note ? said_int(note, "at", -1) : -1};
    one.tensor = v->name;
    one.scale = s.scale->name;
    one.zp = s.zp ? s.zp->name : STR_NONE;
    one.bytes = annotation_bytes(a->b.a, one.tensor, one.scale, one.zp);
    if (note && note->extra.n && annotation_says(note->extra, &one))
        one.bytes = note->extra;
    map_set(a->named, value_key(s.scale), s.scale);
    if (s.zp)
        map_set(a->named, value_key(s.zp), s.zp);
    ARENA_PUSH(a->b.a, a->list.items, a->list.n, a->list.cap, one);
}

static void drop_note(Value *v) {
    for (Node **at = &v->onnx; *at;)
        if (*at == annotation_note(v))
            *at = (*at)->next;
        else
            at = &(*at)->next;
}

static void annotate_value(Annotate *a, Value *v, const Map *kept) {
    const Stated *by_nodes = a->by_nodes ? NULL : map_get(a->stated, value_key(v));
    bool meant = v->type.quant && v->type.tilde;
    Stated s;
    if (a->by_nodes || !map_get(kept, v->name) || annotation_note(v)) {
        if (by_nodes)
            name(a, v, *by_nodes);
        else if (meant && of_type(a, v, &s))
            name(a, v, s);
    }
    drop_note(v);
    if (!meant)
        return;
    v->type.quant = NULL;
    v->type.tilde = false;
}

/* Those that know their place stand there, the ones that were kept between them, new ones behind.
 */
static Annotations in_order(Annotate *a, const Annotations *kept) {
    size_t n = kept->n + a->list.n, k = 0, fresh = 0;
    Annotation **at = NEW_ARRAY(a->b.a, Annotation *, n + 1);
    for (size_t i = 0; i < a->list.n; i++) {
        Annotation *one = &a->list.items[i];
        if ((size_t)one->at < n && !at[one->at]) /* -1 is beyond them */
            at[one->at] = one;
        else
            one->at = -1;
    }
    Annotations all = {.items = NEW_ARRAY(a->b.a, Annotation, n + 1)};
    for (size_t i = 0; i < n; i++) {
        if (!at[i] && k < kept->n)
            at[i] = &kept->items[k++];
        while (!at[i] && a->list.items[fresh].at >= 0)
            fresh++;
        all.items[all.n++] = at[i] ? *at[i] : a->list.items[fresh++];
    }
    return all;
}

static bool is_usable(const Annotate *a, Graph *g, const Annotation *k) {
    const Value *scale = k->why ? NULL : annotation_find(a->names, g, k->scale, false);
    const Value *zp = k->why || !k->zp.n ? scale : annotation_find(a->names, g, k->zp, false);
    return scale && zp && value_data(scale) && value_data(zp);
}

static void annotate_graph(Graph *g, void *ctx) {
    Annotate *a = ctx;
    Annotations kept = annotations_of(g);
    Map *tensors = map_new(a->b.a);
    size_t n_consts = g->n_consts; /* those made on the way are plain */
    for (size_t i = 0; i < kept.n; i++)
        if (is_usable(a, g, &kept.items[i]))
            map_set(tensors, kept.items[i].tensor, &kept.items[i]);
    a->list = (Annotations){0};
    for (size_t i = 0; i < g->n_in; i++)
        annotate_value(a, g->in[i], tensors);
    for (size_t i = 0; i < n_consts; i++)
        annotate_value(a, g->consts[i], tensors);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            annotate_value(a, n->out[i], tensors);
    if (!a->list.n)
        return;
    Annotations all = in_order(a, &kept);
    annotations_set(g, &all);
}

/* Constants that only the line of an edited value named. */
static void drop_stale(Graph *g, void *ctx) {
    const Annotate *a = ctx;
    size_t kept = 0;
    for (size_t i = 0; i < g->n_consts; i++) {
        Value *c = g->consts[i];
        const Use *use;
        if (!map_get(a->noted, value_key(c)) || map_get(a->named, value_key(c)) ||
            uses_of(a->uses, c, &use))
            g->consts[kept++] = c;
    }
    g->n_consts = kept;
}

bool pass_annotate(Module *m, PassContext *c) {
    Arena *arena = m->arena;
    Annotate a = {.b = quant_build_new(m, c, "annotate"),
                  .names = annotation_names(arena),
                  .stated = map_new(arena),
                  .made = map_new(arena),
                  .noted = map_new(arena),
                  .named = map_new(arena),
                  .uses = uses_new(m),
                  .by_nodes = c->annotate_nodes,
                  .ok = true};
    if (a.by_nodes && c->target->states_precision)
        state_precision(m, c->d);
    module_each_graph(m, state_graph, &a);
    module_each_graph(m, annotate_graph, &a);
    module_each_graph(m, drop_stale, &a);
    drop_unused_quants(m);
    return a.ok;
}
