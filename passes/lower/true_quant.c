/* Fake-quant to true-quant: a value `float ~ q` becomes a value of the quantized type, wherever the
 * operator that makes it can compute on integers; elsewhere QuantizeLinear and DequantizeLinear
 * (one operand, parameters in the type) stand where the value really changes domain.
 *
 * Constants are rounded to their grid; what becomes of the bias of an integer Conv or Gemm stands
 * in true_quant_bias.c. */
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/lower/integer_rule.h"
#include "passes/lower/true_quant_bias.h"
#include "passes/quant_build.h"

static const char PASS_NAME[] = "true-quant";

typedef struct TrueQuant {
    PassContext *c;
    Module *m;
    Arena *arena;
    QuantBuild b;
    size_t n;       /* size of the tables: values that existed at the start */
    Value **ints;   /* by value id: its integer version */
    Value **floats; /* by value id of an integer version's origin: dequantized */
    bool *outputs;  /* by value id: is a graph output and has been seen */
    bool *integer;  /* by node id: computes on integers */
} TrueQuant;

/* ---- changing domain ---- */

/* Behind what computes v; what is made of a constant stands where it is needed first, so that it
 * does not take up memory from the beginning. */
static void insert_after_def(Value *v, Node *n, Node *user) {
    if (v->def && v->def->graph == n->graph)
        node_insert_after(v->def, n);
    else if (v->kind == VALUE_CONST && user)
        place_before_user(v->graph, n, user);
    else if (v->graph->first)
        node_insert_before(v->graph->first, n);
    else
        graph_append(v->graph, n);
}

static Node *convert(TrueQuant *t, Value *x, const char *op, Str name, Type type, Node *user) {
    Node *n = node_new(x->graph, STR_NONE, str_from(op), 1, 1);
    n->in[0] = x;
    n->name = unique_name(t->b.names, arena_strf(t->arena, STR_FMT "_%s", STR_ARG(x->name), op));
    n->loc = x->loc;
    node_from_value(n, x, PASS_NAME);
    node_add_output(n, 0, name, type);
    n->out[0]->loc = x->loc;
    insert_after_def(x, n, user);
    return n;
}

static Str derived(TrueQuant *t, const Value *v, const char *suffix) {
    return derived_name(&t->b, v->name, suffix);
}

static Type plain(Type t) {
    t.quant = NULL;
    t.tilde = false;
    return t;
}

/* v is float and stays so; its integer version is computed from it. */
static void quantize_value(TrueQuant *t, Value *v) {
    const Quant *q = v->type.quant;
    v->type = plain(v->type);
    Node *n = convert(t, v, "QuantizeLinear", derived(t, v, "_quantized"),
                      type_quantized(v->type, q), NULL);
    t->ints[v->id] = n->out[0];
}

/* The float version of v, for an operator that needs one, or (NULL) for the end of a graph. */
static Value *float_of(TrueQuant *t, Value *v, Node *user) {
    if (v->id >= t->n)
        return v;
    Value *q = t->ints[v->id] ? t->ints[v->id] : v;
    if (!type_is_quantized(q->type))
        return v;
    if (!t->floats[v->id]) {
        Type type = plain(q->type);
        type.elem = ELEM_FLOAT;
        Node *n = convert(t, q, "DequantizeLinear", derived(t, v, "_dequantized"), type, user);
        t->floats[v->id] = n->out[0];
    }
    return t->floats[v->id];
}

static Node *note_conversion(TrueQuant *t, Value *v, Str op) {
    Node *n = node_new(v->graph, STR(""), op, 0, 0);
    node_set_string(n, "scale", arena_strf(t->arena, STR_FMT "_scale", STR_ARG(v->name)));
    node_set_string(n, "zero_point", arena_strf(t->arena, STR_FMT "_zero_point", STR_ARG(v->name)));
    return n;
}

/* Says as a file that was read would that Q and DQ stand on the float numbers (spelling.h). */
static void keep_float(TrueQuant *t, Value *v, const Tensor *real) {
    Tensor *data = arena_copy(t->arena, real, sizeof *real);
    data->name = v->name;
    v->onnx = note_conversion(t, v, STR("QuantizeLinear"));
    v->onnx->next = note_conversion(t, v, STR("DequantizeLinear"));
    node_set_tensor(v->onnx, "data", data);
    node_set_string(v->onnx, "out", derived(t, v, "_QuantizeLinear_Output"));
}

static void const_to_int(TrueQuant *t, Value *v) {
    const Quant *q = v->type.quant;
    const Tensor *real = v->data;
    v->data = const_quantize_later(t->m, real, q, t->c->may_wait);
    if (t->c->keep_float_weights && !v->onnx)
        keep_float(t, v, real);
    v->type = type_quantized(plain(v->type), q);
    t->ints[v->id] = v;
}

/* ---- nodes ---- */

/* A mover keeps its input's parameters; where others are asked for, a requantization follows. What
 * it interpolates is rounded to these at once. */
static void move_result(TrueQuant *t, Node *n, size_t i) {
    Value *y = n->out[i];
    OpCtx c = op_ctx(n, t->c->d);
    const Quant *want = y->type.quant, *from = n->in[0]->type.quant;
    const Quant *have = op_moved_quant(&c, n->def, from); /* the axis moves with its dimension */
    if (!quant_equal(have, from)) {
        Quant *moved = quant_copy(t->arena, have);
        moved->alias = y->name;
        module_add_quant(t->m, moved);
        have = moved;
    }
    y->type = type_quantized(plain(y->type), want);
    t->ints[y->id] = y;
    bool once = node_interpolates(n) && quant_is_per_tensor(have) && quant_is_per_tensor(want);
    if (quant_equal(have, want) || once)
        return;
    Str moved = derived(t, y, "_moved");
    Node *r = node_new(n->graph, STR("qxc"), STR("Requantize"), 1, 1);
    r->name = derived(t, y, "_Requantize");
    node_from(r, n, PASS_NAME);
    node_follow(n, i, r, moved, type_quantized(y->type, have));
}

static void read_integers(TrueQuant *t, Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->id < t->n && t->ints[n->in[i]->id])
            n->in[i] = t->ints[n->in[i]->id];
}

static bool takes_quantized(const QuantRule *r, size_t i) {
    bool mac = r->kind == QUANT_MAC && i;
    return quant_rule_is_data(r, i) || (r->move.fill && i == r->move.fill) ||
           (r->stores.operands >> i & 1) ||
           (mac && (i == (size_t)r->mac.weight || i == (size_t)r->mac.bias));
}

/* The other operands stay what they are (the bounds of Clip). */
static void read_operands(TrueQuant *t, Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !takes_quantized(&n->def->quant, i))
            n->in[i] = float_of(t, n->in[i], n);
    read_integers(t, n);
}

static void integer_node(TrueQuant *t, Node *n) {
    QuantClass kind = n->def->quant.kind;
    read_operands(t, n);
    t->integer[n->id] = true;
    if (kind == QUANT_MAC)
        bias_to_int(&t->b, t->c, n);
    for (size_t i = 0; i < n->n_out; i++) {
        Value *y = n->out[i];
        if (!edit_tilde(y))
            continue;
        if (kind == QUANT_MOVE || kind == QUANT_ORDER) {
            move_result(t, n, i);
        } else {
            y->type = type_quantized(plain(y->type), y->type.quant);
            t->ints[y->id] = y;
        }
    }
}

static bool has_tilde(const Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        if (edit_tilde(n->out[i]))
            return true;
    return false;
}

/* Looks at the types of its operands alone (Shape), or is stated on integers already. */
static bool takes_integers(const Node *n) {
    bool stated = n->def && n->def->from_types;
    for (size_t i = 0; i < n->n_out && !stated; i++)
        stated = n->out[i] && type_is_quantized(n->out[i]->type);
    return stated;
}

/* Looks rows up in weights with several scales, which is as it should be (tie_tables.c): of those
 * the products tell. */
static bool reads_stored(const TrueQuant *t, const Node *n) {
    if (!n->def || !n->def->quant.move.looks_up || !n->in[0] || n->in[0]->id >= t->n)
        return false;
    const Value *v = t->ints[n->in[0]->id];
    return v && value_is_const(v) && !quant_is_per_tensor(v->type.quant);
}

static void float_node(TrueQuant *t, Node *n, const char *why) {
    bool touched = has_tilde(n), stored = reads_stored(t, n);
    for (size_t i = 0; i < n->n_in; i++) {
        if (!n->in[i])
            continue;
        Value *f = float_of(t, n->in[i], n);
        touched = touched || f != n->in[i];
        n->in[i] = f;
    }
    for (size_t i = 0; i < n->n_out; i++)
        if (edit_tilde(n->out[i]))
            quantize_value(t, n->out[i]);
    if (touched && !node_is(n, "Identity") /* that computes nothing */ && !stored)
        pass_remark(t->c, n, "%s", why);
}

/* The float value takes over the name under which callers know it; what it is computed from, or
 * what was float before, gets another. */
static void take_name(TrueQuant *t, Value *f, Value *v) {
    Str name = v->name;
    v->name = derived(t, v, t->ints[v->id] == v ? "_quantized" : "_float");
    f->name = name;
    f->declared = v->declared;
    f->doc = v->doc;
    f->meta = v->meta;
    v->declared = false;
}

/* A graph output keeps its name and stays float. One that is a graph input too is passed on as it
 * came: its name can mean only one value. */
static void float_output(TrueQuant *t, Graph *g, size_t i) {
    Value *v = g->out[i];
    if (v->id >= t->n || !t->ints[v->id] || v->kind == VALUE_INPUT)
        return;
    bool again = t->outputs[v->id]; /* the same value is an output twice */
    t->outputs[v->id] = true;
    Value *f = float_of(t, v, NULL);
    if (!again && v->graph == g)
        take_name(t, f, v);
    g->out[i] = f;
}

static void run_graph(Graph *g, void *ctx) {
    TrueQuant *t = ctx;
    for (size_t i = 0; i < g->n_consts; i++)
        if (edit_tilde(g->consts[i]))
            const_to_int(t, g->consts[i]);
    for (size_t i = 0; i < g->n_in; i++)
        if (edit_tilde(g->in[i]))
            quantize_value(t, g->in[i]);
    FOR_NODES(n, g) {
        if (node_conversion(n) != CONVERT_NONE)
            continue;
        if (takes_integers(n)) {
            read_integers(t, n);
            continue;
        }
        const char *why = integer_rule(n, t->ints, t->n, t->c->d);
        if (why)
            float_node(t, n, why);
        else
            integer_node(t, n);
    }
    for (size_t i = 0; i < g->n_out; i++)
        float_output(t, g, i);
}

/* An operator that prefers to be float and stands between integers is one of them; what was asked
 * to be float is still worth a word. */
static void forget_preferences(PassContext *c, bool *integer) {
    for (size_t i = 0; i < c->n_remarks; i++) {
        const Node *n = c->remarks[i].node;
        integer[n->id] = integer[n->id] && c->remarks[i].preferred;
    }
    pass_forget_remarks(c, integer);
}

/* Types that a file stated described the float model; what follows from the operators is inferred
 * again. */
static void forget_stated(Graph *g, void *ctx) {
    (void)ctx;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            n->out[i]->declared = false;
    for (size_t i = 0; i < g->n_out; i++)
        g->out[i]->declared = true;
}

/* ---- parameters that are not known ---- */

typedef struct Known {
    Diags *d;
    Map *seen; /* quantizations reported already, by address */
    bool ok;
} Known;

static void check_value(Value *v, void *ctx) {
    Known *k = ctx;
    const Quant *q = v->type.quant;
    if (!q || (q->kind != QUANT_UNKNOWN && q->kind != QUANT_DYNAMIC))
        return;
    if (!map_set_at(k->seen, q, k))
        return;
    k->ok = false;
    if (q->kind == QUANT_DYNAMIC)
        diag_error(k->d, q->loc,
                   "a float value cannot lie on a grid that is computed at run time: state the "
                   "QuantizeLinear to uint8q<dynamic>, as -dynamic does");
    else
        diag_error(k->d, q->loc, "'%s' still has unknown parameters: calibrate, or state them",
                   diag_name(k->d, v->name));
}

static bool check_known(Module *m, Diags *d) {
    Known k = {d, map_new(m->arena), true};
    module_each_value(m, check_value, &k);
    return k.ok;
}

bool pass_true_quant(Module *m, PassContext *c) {
    if (!check_known(m, c->d))
        return false;
    TrueQuant t = {.c = c,
                   .m = m,
                   .arena = m->arena,
                   .b = quant_build_new(m, c, PASS_NAME),
                   .n = m->n_values,
                   .ints = NEW_ARRAY(m->arena, Value *, m->n_values),
                   .floats = NEW_ARRAY(m->arena, Value *, m->n_values),
                   .outputs = NEW_ARRAY(m->arena, bool, m->n_values),
                   .integer = NEW_ARRAY(m->arena, bool, m->n_nodes)};
    module_each_graph(m, run_graph, &t);
    if (!c->runtime_alone) /* which computes many of them in float, between conversions */
        forget_preferences(c, t.integer);
    edit_order(m);
    module_each_graph(m, forget_stated, NULL);
    module_forget_infos(m);
    edit_sweep(m);
    return true;
}
