/* Lowering: Q and DQ take back the names and places they had in ONNX. See spelling.h. */
#include "passes/const_quant.h"
#include "passes/lower/lower_spelling.h"

static bool says(const Node *n, const char *key, Str word) {
    const Attr *a = said(n, key);
    for (size_t i = 0; a && a->kind == ATTR_STRINGS && i < a->n; i++)
        if (str_eq(a->v.s[i], word))
            return true;
    return false;
}

/* ---- before ---- */

static void begin_graph(Graph *g, void *ctx) {
    Lower *l = ctx;
    for (size_t i = 0; i < g->n_consts; i++)
        map_set(l->spelled->cells, cell_key(l, g, g->consts[i]->name), g->consts[i]);
    FOR_NODES(n, g) {
        if (n->n_out && n->out[0]) {
            l->spelled->keys[n->id] = n->out[0]->name;
            if (node_is_constant(n))
                map_set(l->spelled->cells, cell_key(l, g, n->out[0]->name), n->out[0]);
        }
    }
}

void spelling_begin(Lower *l) {
    Module *m = l->b.m;
    l->spelled = NEW(l->b.a, Spelled);
    l->spelled->cells = map_new(m->scratch);
    l->spelled->first_node = m->n_nodes;
    l->spelled->keys = NEW_ARRAY(m->scratch, Str, m->n_nodes + 1);
    module_each_graph(m, begin_graph, l);
}

/* ---- attributes ---- */

static bool is_own_key(Str key) {
    static const char *const keys[] = {"in", "out", "of",   "scale",  "zero_point",
                                       "at", "to",  "data", "stated", "local"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (str_is(key, keys[i]))
            return true;
    return false;
}

static bool attrs_fit(const Node *n, const Node *note, const Quant *q) {
    int64_t axis = said_int(note, "axis", 1), want = said_int(n, "axis", -1);
    int64_t block = said_int(note, "block_size", 0), dtype = said_int(note, "output_dtype", 0);
    int rank = n->in[0]->type.rank;
    if (axis < 0 && rank >= 0)
        axis += rank;
    if ((want >= 0 && axis != want) || block != said_int(n, "block_size", 0))
        return false;
    if (notes_q(note))
        return (dtype == 0 || dtype == (int64_t)q->storage) &&
               (quant_is_integers(q) || leaves_range(n) == !said_int(note, "saturate", 1));
    int64_t have = said_int(n, "output_dtype", 0);
    return dtype == have || dtype == (int64_t)q->expressed;
}

/* A QuantizeLinear's type is that of its zero point (lower_cells.c) for onnxruntime, which changes
 * the one and forgets the other where it makes int8 uint8. */
static bool restores(const Lower *l, const Node *note, Str key) {
    bool type = notes_q(note) && str_is(key, "output_dtype");
    return !is_own_key(key) && !(type && l->c->target->no_dtype);
}

static void restore_attrs(Lower *l, Node *n, const Node *note, const Quant *q) {
    if (!attrs_fit(n, note, q))
        return;
    size_t k = 0;
    for (size_t i = 0; i < note->n_attrs; i++)
        k += restores(l, note, note->attrs[i].name);
    Attr *attrs = k ? NEW_ARRAY(l->b.a, Attr, k) : NULL;
    k = 0;
    for (size_t i = 0; i < note->n_attrs; i++)
        if (restores(l, note, note->attrs[i].name))
            attrs[k++] = note->attrs[i];
    n->attrs = attrs;
    n->n_attrs = k;
}

/* ---- nodes ---- */

static void place_at(Lower *l, const Node *n, int64_t at) {
    Spelled *s = l->spelled;
    if (n->id >= s->n_at) {
        size_t size = (size_t)n->id * 2 + 64;
        s->at = arena_grow(l->b.m->scratch, s->at, s->n_at * sizeof *s->at, size * sizeof *s->at);
        memset(s->at + s->n_at, 0, (size - s->n_at) * sizeof *s->at);
        s->n_at = size;
    }
    s->at[n->id] = at >= 0 ? (size_t)at + 1 : 0;
}

static void dress(Lower *l, Node *n, const Node *note, const Quant *q) {
    restore_attrs(l, n, note, q);
    cells_restore(l, n, note, q);
    int64_t at = said_int(note, "at", -1);
    if (at < 0)
        return;
    place_at(l, n, at);
    if (target_has_domain(l->c->target, note->domain))
        n->domain = note->domain; /* not com.microsoft for those who have ONNX alone */
    n->extra = note->extra;
    n->from = note->from;
    if (n->id >= l->spelled->first_node) {
        n->name = note->name;
        n->doc = note->doc;
        n->meta = note->meta;
        n->out[0]->declared = says(note, "stated", STR("out"));
    }
    op_resolve(n, l->b.d);
}

/* One more node of the kind that lowering made, from x. */
static Node *another(Lower *l, const char *op, Value *x, const Quant *q, Type t, Value *v) {
    Node *n = build_node_for(&l->b, v, op, STR_NONE, OPERANDS(x));
    node_add_output(n, 0, derived_name(&l->b, v->name, "_again"), t);
    state_params(&l->b, n, q, notes_dq(n) ? x->type : t, v->name);
    return n;
}

typedef struct One { /* one quantized value and the nodes around it */
    Lower *l;
    Value *v, *ints;
    const Quant *q;
    Node *clip;     /* what narrows the integers that were made, or NULL (lower_clip.c) */
    Node *quantize; /* what made the integers, or NULL */
    bool taken;     /* the spelling of it was found */
    Node **dq;      /* what reads them */
    Node **made;    /* those of them that lowering made */
    size_t n_dq, n_made, n_taken;
    Map *kept;    /* the others, by the name of the result */
    Map *readers; /* which result a consumer is to read, by result and operand */
    Map *q_outs;  /* results of the Q restored so far, by their ONNX names */
    Map *dq_outs; /* of the DQ; a QOperator has the same name for both */
    Map *dqs;     /* names of the results of all DQ */
    Node *user;   /* some DQ, where nodes may be added; NULL: they would serve nobody */
} One;

/* The float constant that Q stood on, where it is to stay and Q alone still gives these integers:
 * nothing clips them to a part of the storage. */
static Value *float_data(One *o, const Node *note) {
    const Attr *a = said(note, "data");
    Lower *l = o->l;
    if (!l->c->keep_float_weights || !a || a->kind != ATTR_TENSOR || !o->ints->data)
        return NULL;
    Tensor *t = a->v.t[0];
    Quant *whole = quant_copy(l->b.a, o->q);
    whole->has_range = false;
    if (t->elem != ELEM_FLOAT || t->count != o->ints->data->count ||
        t->rank != o->ints->data->rank ||
        !cell_same_data(const_quantize(l->b.a, t, whole), o->ints->data))
        return NULL;
    l->kept_float = true;
    return cell_float(l, o->v, t);
}

/* What Q or a QOperator yields: the integers, but for a Clip. */
static Value *unclipped(const One *o) {
    return o->clip ? o->clip->in[0] : o->ints;
}

static void restore_made_q(One *o, const Node *note, Str in, Str out) {
    Lower *l = o->l;
    Node *n = o->quantize;
    o->taken = true;
    dress(l, n, note, o->q);
    map_set(o->q_outs, out, o->ints);
    if (n->id < l->spelled->first_node || said_int(note, "at", -1) < 0)
        return; /* it stood in the text and has names of its own */
    name_wanted(l, n->in[0], in);
    n->in[0]->declared = says(note, "stated", STR("in"));
    name_wanted(l, unclipped(o), out);
    if (!uses_is_output(l->uses, unclipped(o)))
        unclipped(o)->declared = says(note, "stated", STR("out"));
}

static void restore_q(One *o, const Node *note) {
    Str in = said_name(note, "in", o->v->name), out = said_name(note, "out", o->v->name);
    bool chained = said(note, "in") && map_get(o->dqs, in);
    if (o->quantize && !o->taken && !chained) {
        restore_made_q(o, note, in, out);
        return;
    }
    Value *x = chained ? map_get(o->dq_outs, in) : NULL;
    if (!x && !chained)
        x = o->quantize ? o->quantize->in[0] : float_data(o, note);
    if (!x || !o->user)
        return;
    Node *n = another(o->l, "QuantizeLinear", x, o->q, o->ints->type, o->v);
    place_behind(x, n, o->user);
    dress(o->l, n, note, o->q);
    if (said_int(note, "at", -1) < 0)
        n->name = derived_name(&o->l->b, o->v->name, "_QuantizeLinear");
    name_wanted(o->l, n->out[0], out);
    map_set(o->q_outs, out, n->out[0]);
}

/* The node that stood in the text under this name, else one that lowering made. */
static Node *take_dq(One *o, Str out) {
    Node *kept = map_get(o->kept, out);
    if (kept) {
        map_set(o->kept, out, NULL);
        return kept;
    }
    return o->n_taken < o->n_made ? o->made[o->n_taken++] : NULL;
}

static Value *integers_of(One *o, const Node *note) {
    Str of = said_name(note, "of", STR_NONE);
    if (of.s && map_get(o->q_outs, of))
        return map_get(o->q_outs, of);
    for (const Node *q = o->v->onnx; q && !of.s; q = q->next)
        if (notes_q(q)) {
            Value *made = map_get(o->q_outs, said_name(q, "out", o->v->name));
            return made ? made : o->ints;
        }
    if (of.s && (o->ints->kind == VALUE_CONST || o->clip) && said_int(note, "at", -1) >= 0)
        name_wanted(o->l, o->ints, of);
    return o->ints;
}

static Node *restore_dq(One *o, const Node *note) {
    Str out = said_name(note, "out", o->v->name);
    Value *x = integers_of(o, note);
    Node *n = take_dq(o, out);
    if (!n) {
        if (!o->user)
            return NULL;
        n = another(o->l, "DequantizeLinear", x, o->q, real_type(o->v->type), o->v);
        n->out[0]->type = real_type(type_quantized(o->ints->type, o->q));
        place_behind(x, n, o->user);
    } else if (x != n->in[0] && o->user) {
        node_remove(n);
        n->in[0] = x;
        place_behind(x, n, o->user);
    }
    dress(o->l, n, note, o->q);
    if (n->id >= o->l->spelled->first_node && said_int(note, "at", -1) >= 0)
        name_wanted(o->l, n->out[0], out);
    map_set(o->dq_outs, out, n->out[0]);
    return n;
}

static void note_readers(One *o, const Node *note, Node *dq) {
    const Attr *to = said(note, "to");
    for (size_t i = 0; dq && to && to->kind == ATTR_STRINGS && i < to->n; i++)
        map_set(o->readers, to->v.s[i], dq->out[0]);
}

/* Whose result the consumer is to read. */
static Value *reader_of(const One *o, const Use *use) {
    const Spelled *s = o->l->spelled;
    Str result = use->node && use->node->id < s->first_node ? s->keys[use->node->id] : STR_NONE;
    return map_get(o->readers, arena_strf(o->l->b.a, STR_FMT ":%zu", STR_ARG(result), use->index));
}

static void share_out(One *o, const Node *dq) {
    const Use *uses;
    size_t n = uses_of(o->l->spelled->uses, dq->out[0], &uses);
    for (size_t i = 0; i < n; i++) {
        Value *to = reader_of(o, &uses[i]);
        if (!to)
            continue;
        if (uses[i].node)
            uses[i].node->in[uses[i].index] = to;
        else
            uses[i].graph->out[uses[i].index] = to;
    }
}

/* What a QOperator's integers were called. */
static void name_operand(One *o, const Node *note) {
    Str name = said_name(note, notes_q(note) ? "out" : "of", STR_NONE);
    if (o->l->qop && name.n && said_int(note, "at", -1) < 0)
        name_wanted(o->l, notes_q(note) ? unclipped(o) : o->ints, name);
}

static void find_nodes(One *o) {
    Lower *l = o->l;
    Node *def = o->ints->kind == VALUE_NODE ? o->ints->def : NULL;
    bool clips = def && node_is(def, "Clip") && def->id >= l->spelled->first_node && def->in[0];
    o->clip = clips ? def : NULL;
    def = clips ? def->in[0]->def : def;
    o->quantize = def && is_onnx_quantize(def) ? def : NULL;
    const Use *uses;
    size_t n = uses_of(l->spelled->uses, o->ints, &uses);
    o->dq = NEW_ARRAY(l->b.a, Node *, n + 1);
    o->made = NEW_ARRAY(l->b.a, Node *, n + 1);
    for (size_t i = 0; i < n; i++) {
        Node *dq = uses[i].node;
        if (!dq || uses[i].index != 0 || !is_onnx_dequantize(dq))
            continue;
        o->dq[o->n_dq++] = dq;
        if (dq->id >= l->spelled->first_node)
            o->made[o->n_made++] = dq;
        else
            map_set(o->kept, dq->out[0]->name, dq);
    }
    o->user = l->qop || !o->n_dq ? NULL : o->dq[0];
}

static void restore_value(Lower *l, Value *v) {
    Arena *a = arena_scratch(l->b.m->scratch);
    One o = {.l = l,
             .v = v,
             .q = onnx_quant(&l->b, lower_quant(l, v)),
             .ints = l->ints[v->id],
             .kept = map_new(a),
             .q_outs = map_new(a),
             .dq_outs = map_new(a),
             .dqs = map_new(a),
             .readers = map_new(a)};
    find_nodes(&o);
    for (Node *note = v->onnx; note; note = note->next)
        if (notes_dq(note))
            map_set(o.dqs, said_name(note, "out", v->name), note);
    for (const Node *note = v->onnx; note; note = note->next) {
        name_operand(&o, note);
        if (notes_q(note))
            restore_q(&o, note);
        else if (notes_dq(note))
            note_readers(&o, note, restore_dq(&o, note));
    }
    for (size_t i = 0; i < o.n_dq; i++)
        share_out(&o, o.dq[i]);
    arena_free(a);
}

static void restore_one(Value *v, void *ctx) {
    Lower *l = ctx;
    if (v->id >= l->n || !v->onnx || !lower_quant(l, v))
        return;
    if (l->ints[v->id])
        restore_value(l, v);
    v->onnx = NULL;
}

void spelling_restore(Lower *l) {
    l->spelled->uses = uses_new(l->b.m);
    module_each_value(l->b.m, restore_one, l);
    names_restore(l);
}
