/* Raising: what the names and places of Q and DQ were. See spelling.h. */
#include "passes/raise/raise.h"
#include "passes/edit.h"
#include "passes/spelling.h"

/* A Q or DQ as it stood. */
typedef struct Captured {
    Node *node;
    Node as; /* a copy from before */
    Value *operand[3];
    Str in, out;
    bool in_stated, out_stated;
    const Tensor *data; /* of a float constant that is quantized */
    size_t at;
    const Use *uses;
    size_t n_uses;
    Value *of; /* the quantized value, once known */
} Captured;

struct Spelling {
    Captured *items;
    size_t n, cap;
    uint32_t n_values; /* that existed before */
    ElemType *elem;    /* of each */
    bool *live;
    bool *live_node;
    Attr *attrs; /* of the note that is being written */
    size_t n_attrs, cap_attrs;
};

static void capture_value(Value *v, void *ctx) {
    Raise *r = ctx;
    if (v->type.kind == TYPE_TENSOR)
        r->spelling->elem[v->id] = v->type.elem;
}

static void capture_order(Raise *r, Graph *g) {
    Str *names = NEW_ARRAY(r->b.a, Str, g->n_consts + 1);
    for (size_t i = 0; i < g->n_consts; i++)
        names[i] = g->consts[i]->name;
    g->initializers = names;
    g->n_initializers = g->n_consts;
}

static void capture_graph(Graph *g, void *ctx) {
    Raise *r = ctx;
    size_t at = 0;
    bool any = false;
    FOR_NODES(n, g) {
        at++;
        bool q = is_onnx_quantize(n);
        if (!q && !is_onnx_dequantize(n))
            continue;
        any = true;
        Captured c = {.node = n, .as = *n, .at = at - 1};
        for (size_t i = 0; i < n->n_in && i < 3; i++)
            c.operand[i] = n->in[i];
        c.in = n->in[0]->name;
        c.out = n->out[0]->name;
        c.in_stated = n->in[0]->declared;
        c.out_stated = n->out[0]->declared;
        c.data = q && n->in[0]->kind == VALUE_CONST ? n->in[0]->data : NULL;
        c.n_uses = uses_of(r->uses, n->out[0], &c.uses);
        ARENA_PUSH(r->m->scratch, r->spelling->items, r->spelling->n, r->spelling->cap, c);
    }
    if (any && !g->initializers)
        capture_order(r, g);
}

void spelling_capture(Raise *r) {
    r->spelling = NEW(r->m->scratch, Spelling);
    r->spelling->n_values = r->m->n_values;
    r->spelling->elem = NEW_ARRAY(r->m->scratch, ElemType, r->m->n_values + 1);
    module_each_value(r->m, capture_value, r);
    raise_each_graph(r->m, capture_graph, r);
}

/* ---- recording ---- */

static void mark_value(Value *v, void *ctx) {
    ((Spelling *)ctx)->live[v->id] = true;
}

static void mark_nodes(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    ((Spelling *)ctx)->live_node[n->id] = true;
}

/* Attributes gather in one place: a note gets them all at once. */
static Attr *add_attr(Raise *r, const char *key, AttrKind kind, size_t n) {
    Spelling *s = r->spelling;
    Attr a = {.name = str_from(key), .kind = kind, .n = n};
    ARENA_PUSH(r->m->scratch, s->attrs, s->n_attrs, s->cap_attrs, a);
    return &s->attrs[s->n_attrs - 1];
}

static void give_attrs(Raise *r, Node *to) {
    Spelling *s = r->spelling;
    to->attrs = arena_copy(r->b.a, s->attrs, s->n_attrs * sizeof *s->attrs);
    to->n_attrs = s->n_attrs;
    s->n_attrs = 0;
}

static void add_strings(Raise *r, const char *key, const Str *s, size_t n) {
    add_attr(r, key, ATTR_STRINGS, n)->v.s = arena_copy(r->b.a, s, n * sizeof *s);
}

static void add_string(Raise *r, const char *key, Str s) {
    if (!s.s)
        s = STR("");
    add_attr(r, key, ATTR_STRING, 1)->v.s = arena_copy(r->b.a, &s, sizeof s);
}

static void add_int(Raise *r, const char *key, int64_t v) {
    add_attr(r, key, ATTR_INT, 1)->v.i = arena_copy(r->b.a, &v, sizeof v);
}

static void add_tensor(Raise *r, const char *key, const Tensor *t, Str name) {
    Tensor *one = arena_copy(r->b.a, t, sizeof *t);
    one->name = name;
    add_attr(r, key, ATTR_TENSOR, 1)->v.t = arena_copy(r->b.a, &one, sizeof one);
}

/* A name, or the tensor where more than the name is to be kept. */
static void add_param(Raise *r, const char *key, const Value *v, const Quant *q) {
    const Tensor *t = value_data(v);
    bool usual = quant_is_blocked(q) || (q->n_axes == 0 ? t->rank == 0 : t->count == q->n_scale);
    if (usual && t->place == TENSOR_INLINE && !t->doc.s && !t->meta.n && !t->extra.n) {
        add_string(r, key, v->name);
        return;
    }
    add_tensor(r, key, t, v->name);
}

static void add_consumers(Raise *r, const Captured *c) {
    Str *keys = NEW_ARRAY(r->m->scratch, Str, c->n_uses + 1);
    size_t n = 0;
    for (size_t i = 0; i < c->n_uses; i++) {
        const Node *user = c->uses[i].node;
        if (!user) {
            keys[n++] = arena_strf(r->b.a, ":%zu", c->uses[i].index);
            continue;
        }
        if (r->spelling->live_node[user->id] && user->n_out && user->out[0])
            keys[n++] =
                arena_strf(r->b.a, STR_FMT ":%zu", STR_ARG(user->out[0]->name), c->uses[i].index);
    }
    if (n)
        add_strings(r, "to", keys, n);
}

/* `tails`: by value id, where its notes end; a value may have thousands. */
static void hang(Value *v, Node *n, Node **tails) {
    Node *last = tails[v->id] ? tails[v->id] : v->onnx;
    while (last && last->next)
        last = last->next;
    if (last)
        last->next = n;
    else
        v->onnx = n;
    tails[v->id] = n;
}

static void record(Raise *r, const Captured *c, const Captured *q_of, size_t n_dq, Node **tails) {
    Value *v = c->of;
    bool q = notes_q(&c->as);
    bool made = c->as.id >= r->first_made; /* of a QOperator: only the parameters had names */
    bool stands = r->spelling->live_node[c->as.id]; /* and says more by itself */
    Node *n = node_new(v->graph, c->as.domain, c->as.op, 0, 0);
    n->loc = c->as.loc;
    Str base = v->name;
    if (q && !stands && !made && !str_eq(c->in, base))
        add_string(r, "in", c->in);
    if (!q && !str_eq(c->in, q_of ? q_of->out : base))
        add_string(r, "of", c->in);
    if ((q || !made) && !str_eq(c->out, base))
        add_string(r, "out", c->out);
    add_param(r, "scale", c->operand[1], v->type.quant);
    if (c->as.n_in > 2 && c->operand[2])
        add_param(r, "zero_point", c->operand[2], v->type.quant);
    else if (c->as.n_in > 2)
        add_string(r, "zero_point", STR_NONE);
    if (c->operand[1]->graph != r->m->graph)
        add_int(r, "local", 1);
    hang(v, n, tails);
    if (made) {
        give_attrs(r, n);
        return;
    }
    if (c->data && v->kind == VALUE_CONST)
        add_tensor(r, "data", c->data, c->in);
    add_int(r, "at", (int64_t)c->at);
    if (!q && n_dq > 1)
        add_consumers(r, c);
    Str stated[2];
    size_t k = 0;
    if (q && c->in_stated && !stands)
        stated[k++] = STR("in");
    if (c->out_stated && !stands)
        stated[k++] = STR("out");
    if (k)
        add_strings(r, "stated", stated, k);
    for (size_t i = 0; i < c->as.n_attrs; i++) {
        Attr *a = add_attr(r, "", ATTR_INT, 1);
        *a = c->as.attrs[i];
    }
    give_attrs(r, n);
    n->extra = c->as.extra;
    n->from = c->as.from;
    if (stands)
        return;
    n->name = c->as.name;
    n->doc = c->as.doc;
    n->meta = c->as.meta;
}

static bool still_onnx(const Captured *c, const Spelling *s) {
    return s->live_node[c->as.id] && (is_onnx_quantize(c->node) || is_onnx_dequantize(c->node));
}

static void find_values(Raise *r) {
    Spelling *s = r->spelling;
    for (size_t i = 0; i < s->n; i++) {
        Captured *c = &s->items[i];
        if (still_onnx(c, s) || !value_data(c->operand[1]))
            continue;
        bool q = notes_q(&c->as);
        Value *v = raise_follow(r, q ? c->node->out[0] : c->node->in[0]);
        if (v && s->live[v->id] && v->type.kind == TYPE_TENSOR && type_is_quantized(v->type) &&
            v->type.quant->kind == QUANT_PARAMS)
            c->of = v;
    }
}

/* Values of operators that had no Q of their own. */
static void record_plain(Graph *g, void *ctx) {
    Raise *r = ctx;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++) {
        Value *v = n->out[i];
        if (!v || v->id >= r->spelling->n_values || v->type.kind != TYPE_TENSOR ||
            !type_is_quantized(v->type) || is_typed_quantize(n) || is_requantize(n))
            continue;
        bool has_q = false;
        for (const Node *k = v->onnx; k; k = k->next)
            has_q |= notes_q(k);
        if (has_q)
            continue;
        bool ints = elem_is_int(r->spelling->elem[v->id]);
        Node *k = node_new(g, STR_NONE, ints ? STR("integers") : STR("float"), 0, 0);
        k->next = v->onnx;
        v->onnx = k;
    }
}

/* Float biases that raising rounded, and the model did not. */
static void record_biases(Raise *r) {
    for (size_t i = 0; i < r->n_consts; i++) {
        const RaisedConst *made = &r->consts[i];
        Value *v = made->quantized;
        const Tensor *t = made->own_grid ? made->numbers : edit_float_const(made->plain);
        if (!t || !r->spelling->live[v->id] || v->onnx)
            continue;
        Node *k = node_new(v->graph, STR_NONE, STR("float"), 0, 0);
        k->loc = v->loc;
        add_tensor(r, "data", t, made->plain->name);
        give_attrs(r, k);
        v->onnx = k;
    }
}

static void drop_default_order(Graph *g, void *ctx) {
    (void)ctx;
    if (g->initializers && g->n_initializers == 0)
        g->initializers = NULL;
}

void spelling_record(Raise *r) {
    Spelling *s = r->spelling;
    s->live = NEW_ARRAY(r->m->scratch, bool, r->m->n_values + 1);
    s->live_node = NEW_ARRAY(r->m->scratch, bool, r->m->n_nodes + 1);
    module_each_value(r->m, mark_value, s);
    module_each_graph(r->m, mark_nodes, s);
    find_values(r);
    size_t *n_dq = NEW_ARRAY(r->m->scratch, size_t, r->m->n_values + 1);
    Node **tails = NEW_ARRAY(r->m->scratch, Node *, r->m->n_values + 1);
    const Captured **q_of = NEW_ARRAY(r->m->scratch, const Captured *, r->m->n_values + 1);
    for (size_t i = 0; i < s->n; i++) {
        const Captured *c = &s->items[i];
        if (!c->of)
            continue;
        bool q = notes_q(&c->as);
        n_dq[c->of->id] += !q;
        if (q && !q_of[c->of->id])
            q_of[c->of->id] = c;
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i].of)
            record(r, &s->items[i], q_of[s->items[i].of->id], n_dq[s->items[i].of->id], tails);
    raise_each_graph(r->m, record_plain, r);
    record_biases(r);
    raise_each_graph(r->m, drop_default_order, r);
}
