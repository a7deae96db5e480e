/* Names, constants and nodes that passes make. */
#include "passes/quant_build.h"

#include <math.h>

#include "ir/minifloat.h"

QuantBuild quant_build_new(Module *m, PassContext *c, const char *pass) {
    return (QuantBuild){.m = m,
                        .a = m->arena,
                        .d = c->d,
                        .pass = pass,
                        .names = unique_names_new(m),
                        .params = map_new(m->scratch),
                        .consts = map_new(m->scratch),
                        .opset = c->target_opset};
}

/* ---- names ---- */

Str base_name(Str name) {
    static const char *const suffixes[] = {"_QuantizeLinear_Output", "_QuantizeLinear_Input",
                                           "_DequantizeLinear_Output", "_quantized",
                                           "_CallEnd_Input"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = strlen(suffixes[i]);
        if (name.n > n && str_ends(name, suffixes[i]))
            return (Str){name.s, name.n - n};
    }
    return name;
}

Str derived_name(QuantBuild *b, Str base, const char *suffix) {
    return unique_name(b->names, arena_strf(b->a, STR_FMT "%s", STR_ARG(base), suffix));
}

/* ---- constants ---- */

/* Constants that were asked for under one name; the last first. */
typedef struct Made {
    Value *v;
    const struct Made *before;
} Made;

bool const_is_same(const Value *v, Type t, const Tensor *data) {
    const Tensor *x = v->data;
    return v->type.elem == t.elem && v->type.tilde == t.tilde && x->elem == data->elem &&
           tensor_same_shape(x, data) && !t.quant == !v->type.quant &&
           (!t.quant || quant_equal(v->type.quant, t.quant)) && x->data && data->data &&
           (x->data == data->data || memcmp(x->data, data->data, data->bytes) == 0);
}

Value *build_shared(QuantBuild *b, Graph *g, Str base, const char *suffix, Type t, Tensor *data) {
    Buf name = buf_new(b->a);
    buf_put(&name, &g, sizeof g);
    buf_fmt(&name, STR_FMT "%c%s", STR_ARG(base), 0, suffix);
    Str key = buf_as_str(&name);
    const Made *last = map_get(b->consts, key);
    for (const Made *k = last; k; k = k->before)
        if (const_is_same(k->v, t, data))
            return k->v;
    Made *made = NEW(b->a, Made);
    *made = (Made){graph_add_const(g, derived_name(b, base, suffix), t, data), last};
    map_set(b->consts, key, made);
    return made->v;
}

Value *build_from(QuantBuild *b, const Value *of, const char *suffix, Type t, Tensor *data) {
    Value *v = build_shared(b, of->graph, of->name, suffix, t, data);
    if (!v->from.n)
        value_from(v, of, b->pass);
    return v;
}

Value *build_const(QuantBuild *b, Str base, const char *suffix, ElemType e, int rank,
                   const int64_t *dims, const void *bytes) {
    Tensor *t = tensor_of(b->a, e, rank, dims, NULL);
    t->data = arena_copy(b->a, bytes, t->bytes);
    return build_shared(b, b->m->graph, base, suffix, type_fixed(b->a, e, rank, dims), t);
}

Value *build_int(QuantBuild *b, Str base, const char *suffix, ElemType e, int64_t v) {
    uint8_t bytes[8] = {0};
    elem_store_int(e, bytes, 0, v);
    return build_const(b, base, suffix, e, 0, NULL, bytes);
}

/* What is beyond the numbers of the type is the largest of them: what hides scores hides them
 * still, and a row that is hidden as a whole is not NaN. What no number of the type is near, as one
 * below 0 in a type of powers, is 0 bits. */
void store_float(ElemType e, uint8_t *data, size_t i, float v) {
    uint64_t bits = 0;
    FloatGrid grid;
    if (e == ELEM_FLOAT) {
        memcpy(data + i * sizeof v, &v, sizeof v);
        return;
    }
    if (!float_encode(e, (double)v, &bits) && isfinite(v) && float_grid(e, &grid))
        float_encode(e, copysign((double)grid.most, (double)v), &bits);
    memcpy(data + i * elem_bytes(e, 1), &bits, elem_bytes(e, 1)); /* little-endian, as stored */
}

Value *build_floats(QuantBuild *b, Str base, const char *suffix, ElemType e, int rank,
                    const int64_t *dims, const float *v) {
    uint8_t *bytes;
    Tensor *t = tensor_new(b->a, e, rank, dims, &bytes);
    for (size_t i = 0; i < t->count; i++)
        store_float(e, bytes, i, v[i]);
    return build_shared(b, b->m->graph, base, suffix, tensor_type(b->a, t), t);
}

Tensor *floats_as(Arena *a, const Tensor *t, ElemType e) {
    uint8_t *bytes;
    Tensor *to = tensor_new(a, e, t->rank, t->dims, &bytes);
    for (size_t i = 0; i < t->count; i++) {
        double wide = tensor_float(t, i);
        if (e == ELEM_DOUBLE)
            memcpy(bytes + i * sizeof wide, &wide, sizeof wide);
        else
            store_float(e, bytes, i, (float)wide);
    }
    return to;
}

Value *build_float(QuantBuild *b, Str base, const char *suffix, float v) {
    return build_floats(b, base, suffix, ELEM_FLOAT, 0, NULL, &v);
}

/* ---- nodes ---- */

static Node *new_node(QuantBuild *b, Graph *g, const char *op, Str name, Value *const *in,
                      size_t n_in) {
    while (in && n_in && !in[n_in - 1])
        n_in--;
    Node *n = node_new(g, STR_NONE, str_from(op), n_in, 1);
    for (size_t i = 0; in && i < n_in; i++)
        n->in[i] = in[i];
    n->name = name.n ? unique_name(b->names, name) : name;
    return n;
}

Node *build_node(QuantBuild *b, const Node *of, const char *op, Str name, Value *const *in,
                 size_t n_in) {
    Node *n = new_node(b, of->graph, op, name, in, n_in);
    n->loc = of->loc;
    node_from(n, of, b->pass);
    return n;
}

Node *build_node_for(QuantBuild *b, const Value *of, const char *op, Str name, Value *const *in,
                     size_t n_in) {
    Node *n = new_node(b, of->graph, op, name, in, n_in);
    n->loc = of->loc;
    node_from_value(n, of, b->pass);
    return n;
}

Node *build_axes(QuantBuild *b, const Node *of, const char *op, Value *x, const int64_t *axes,
                 int64_t n_axes) {
    bool operand = module_opset(b->m, STR("")) >= 13;
    Value *places = operand ? build_const(b, x->name, "_axes", ELEM_INT64, 1, &n_axes, axes) : NULL;
    Node *n = build_node(b, of, op, STR_NONE, OPERANDS(x, places));
    if (!operand)
        node_set_ints(n, "axes", axes, (size_t)n_axes);
    return n;
}

Value *build_before(QuantBuild *b, Node *at, Node *n, Str base, const char *suffix, Type t) {
    node_add_output(n, 0, derived_name(b, base, suffix), t);
    node_insert_before(at, n);
    op_resolve(n, b->d);
    return n->out[0];
}

Value *build_step(QuantBuild *b, Node *at, const char *op, Value *const *in, size_t n_in, Type t,
                  Str base) {
    Node *n = build_node(b, at, op, STR_NONE, in, n_in);
    if (strcmp(op, "Cast") == 0)
        node_set_int(n, "to", t.elem);
    return build_before(b, at, n, base, arena_strf(b->a, "_%s", op).s, t);
}

void build_in_place(QuantBuild *b, Node *n, Node *to) {
    node_take_result(to, 0, n->out[0]);
    node_insert_before(n, to);
    node_remove(n);
    op_resolve(to, b->d);
}

void place_before_user(Graph *g, Node *n, Node *user) {
    while (user && user->graph != g)
        user = user->graph->owner;
    if (user)
        node_insert_before(user, n);
    else
        graph_append(g, n);
}

void place_behind(Value *v, Node *n, Node *user) {
    if (v->def)
        node_insert_after(v->def, n);
    else
        place_before_user(v->graph, n, user);
}
