#include "passes/quant_build.h"

#include <limits.h>
#include <math.h>

#include "ir/minifloat.h"
#include "passes/dynamic_form.h"

QuantBuild quant_build_new(Module *m, PassContext *c, const char *pass) {
    return (QuantBuild){.m = m,
                        .a = m->arena,
                        .d = c->d,
                        .pass = pass,
                        .names = unique_names_new(m),
                        .params = map_new(m->scratch),
                        .opset = c->target_opset};
}

/* ---- recognising ---- */

bool is_typed_quantize(const Node *n) {
    return n->n_in == 1 && node_conversion(n) == CONVERT_QUANTIZE;
}
bool is_typed_dequantize(const Node *n) {
    return n->n_in == 1 && node_conversion(n) == CONVERT_DEQUANTIZE;
}

static bool is_integers(const Value *v) {
    return !v->type.quant || quant_is_integers(v->type.quant);
}

bool is_own_quantize(const Node *n) {
    return is_typed_quantize(n) && is_integers(n->out[0]);
}
bool is_own_dequantize(const Node *n) {
    return is_typed_dequantize(n) && is_integers(n->in[0]);
}
bool is_requantize(const Node *n) {
    return node_conversion(n) == CONVERT_REQUANTIZE;
}
bool is_reinterpret(const Node *n) {
    return node_conversion(n) == CONVERT_REINTERPRET;
}

size_t fill_operand(const Node *n) {
    OpCtx c = op_ctx(n, NULL);
    return n->def && n->def->quant.move.fill && n->def->quant.move.fills(&c)
               ? n->def->quant.move.fill
               : 0;
}

bool keeps_integers(const Node *n) {
    OpCtx c = op_ctx(n, NULL);
    const QuantRule *q = n->def ? &n->def->quant : NULL;
    bool kind = q && (q->kind == QUANT_MOVE || q->kind == QUANT_ORDER || q->kind == QUANT_JOIN ||
                      q->kind == QUANT_CLAMP);
    return kind && (q->move.fill || !q->integer_refusal || !q->integer_refusal(&c, NULL));
}

void drop_idle_fill(Node *n) {
    size_t i = n->def ? n->def->quant.move.fill : 0;
    if (!i || fill_operand(n) || !node_input(n, i))
        return;
    n->in[i] = NULL;
    while (n->n_in && !n->in[n->n_in - 1])
        n->n_in--;
}

bool is_integer_product(const Node *n) {
    return node_is(n, "MatMulInteger") || node_is(n, "ConvInteger") ||
           node_is_in(n, "com.microsoft", "MatMulNBits") ||
           node_is_in(n, "com.microsoft", "GatherBlockQuantized") ||
           node_is_in(n, "com.microsoft", "MatMulIntegerToFloat") ||
           node_is_in(n, "com.microsoft", "DynamicQuantizeMatMul") || form_find(n);
}

void set_operand(Node *n, size_t i, Value *v) {
    while (n->n_in <= i)
        node_add_input(n, NULL);
    n->in[i] = v;
}

int rule_single_data(const Node *n) {
    int found = -1;
    for (size_t i = 0; n->def && i < n->n_in; i++) {
        if (!n->in[i] || !quant_rule_is_data(&n->def->quant, i))
            continue;
        if (found >= 0)
            return -1;
        found = (int)i;
    }
    return found;
}

/* ---- types ---- */

ElemType onnx_storage(const QuantBuild *b, ElemType e) {
    int bits = elem_bits(e), since = bits == 1 ? INT_MAX : bits == 2 ? 25 : bits == 4 ? 21 : 0;
    bool has = since == 0 || (bits > 1 && (!b->opset || b->opset >= since));
    return has ? e : e == ELEM_INT1 || elem_is_signed(e) ? ELEM_INT8 : ELEM_UINT8;
}

ElemType onnx_scale_type(const Quant *q) {
    return q->expressed == ELEM_FLOAT ? ELEM_FLOAT : q->scale_type;
}

const Quant *onnx_quant(QuantBuild *b, const Quant *q) {
    ElemType e = onnx_storage(b, q->storage);
    ElemType scale = onnx_scale_type(q);
    if (e == q->storage && scale == q->scale_type)
        return q;
    Quant *wide = quant_copy(b->a, q);
    wide->storage = e;
    wide->scale_type = scale;
    wide->alias = q->alias;
    if (e != q->storage && !q->has_range) {
        wide->has_range = true;
        wide->lo = elem_min(q->storage);
        wide->hi = elem_max(q->storage);
    }
    return wide;
}

Type real_type(Type t) {
    t.elem = type_real_elem(t);
    t.quant = NULL;
    t.tilde = false;
    return t;
}

Type integer_type(Type t, const Quant *q, bool keep) {
    keep = keep && quant_is_integers(q);
    t.elem = q->storage;
    t.quant = keep ? q : NULL;
    t.tilde = keep;
    return t;
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

Value *build_const(QuantBuild *b, Str base, const char *suffix, ElemType e, int rank,
                   const int64_t *dims, const void *bytes) {
    Tensor *t = tensor_of(b->a, e, rank, dims, NULL);
    t->data = arena_copy(b->a, bytes, t->bytes);
    return graph_add_const(b->m->graph, derived_name(b, base, suffix),
                           type_fixed(b->a, e, rank, dims), t);
}

Value *build_int(QuantBuild *b, Str base, const char *suffix, ElemType e, int64_t v) {
    uint8_t bytes[8] = {0};
    elem_store_int(e, bytes, 0, v);
    return build_const(b, base, suffix, e, 0, NULL, bytes);
}

/* What is beyond the numbers of the type is the largest of them: what hides scores hides them
 * still, and a row that is hidden as a whole is not NaN. What no number of the type is near, as one
 * below 0 in a type of powers, is 0 bits. */
static void store_float(ElemType e, uint8_t *data, size_t i, float v) {
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
    return graph_add_const(b->m->graph, derived_name(b, base, suffix), tensor_type(b->a, t), t);
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

/* The axis that ONNX's block_size is about: the last one with real blocks, else the last. */
static int blocked_axis(const Quant *q) {
    int at = q->n_axes - 1;
    for (int i = 0; i < q->n_axes; i++)
        if (q->block[i] > 1)
            at = i;
    return at;
}

static bool is_blocked(const Quant *q) {
    return quant_is_blocked(q);
}

/* Shape of the parameters in ONNX: scalar, vector, or the tensor's with one axis in blocks. */
static int params_shape(const Quant *q, Type t, int64_t *dims) {
    if (q->n_axes == 0)
        return 0;
    if (!is_blocked(q)) {
        dims[0] = (int64_t)q->n_scale;
        return 1;
    }
    int k = blocked_axis(q);
    for (int i = 0; i < t.rank; i++)
        dims[i] = t.dims[i].value;
    int64_t block = q->block[k];
    dims[q->axis[k]] = (dims[q->axis[k]] + block - 1) / block;
    return t.rank;
}

/* Whether the parameters follow each other as ONNX's `count` do: one of each, row by row. */
static bool same_order(const Quant *q, size_t count) {
    bool rows = q->n_scale == count;
    for (int i = 1; i < q->n_axes; i++)
        rows = rows && q->axis[i - 1] < q->axis[i];
    return rows || !is_blocked(q);
}

/* Which of the quantization's parameters stands at place `i` of ONNX's `count`. */
static size_t param_at(const Quant *q, Type t, const int64_t *dims, size_t i, size_t count) {
    if (same_order(q, count))
        return i;
    int64_t tensor[MAX_RANK];
    size_t index = 0, step = 1;
    int k = blocked_axis(q);
    for (int d = t.rank - 1; d >= 0; d--) {
        size_t coord = i % (size_t)dims[d];
        i /= (size_t)dims[d];
        if (d == q->axis[k])
            coord *= (size_t)q->block[k];
        tensor[d] = t.dims[d].value;
        index += coord * step;
        step *= (size_t)tensor[d];
    }
    return quant_index(q, t.rank, tensor, index);
}

static Tensor *make_scales(QuantBuild *b, const Quant *q, Type t, int rank, const int64_t *dims) {
    uint8_t *scale;
    Tensor *s = tensor_begin(b->a, q->scale_type, rank, dims, &scale);
    bool as_is = s->count == q->n_scale && same_order(q, s->count) && q->scale_type == ELEM_FLOAT;
    if (as_is)
        memcpy(scale, q->scale, s->count * sizeof *q->scale);
    for (size_t i = 0; i < s->count && !as_is; i++)
        store_float(q->scale_type, scale, i, quant_scale(q, param_at(q, t, dims, i, s->count)));
    return tensor_end(b->a, s);
}

static Tensor *make_zps(QuantBuild *b, const Quant *q, Type t, int rank, const int64_t *dims) {
    uint8_t *zp;
    Tensor *z = tensor_begin(b->a, q->storage, rank, dims, &zp);
    bool zeros = quant_zp_all_zero(q); /* what tensor_begin leaves */
    for (size_t i = 0; i < z->count && !zeros; i++)
        elem_store_int(q->storage, zp, i, quant_zp(q, param_at(q, t, dims, i, z->count)));
    return tensor_end(b->a, z);
}

static QuantParams make_params(QuantBuild *b, const Quant *q, Type t, Str base) {
    int64_t dims[MAX_RANK];
    int rank = params_shape(q, t, dims);
    Tensor *s = make_scales(b, q, t, rank, dims), *z = make_zps(b, q, t, rank, dims);
    Graph *g = b->m->graph;
    QuantParams p = {.q = q};
    module_release_quant(b->m, q);
    p.scale = graph_add_const(g, derived_name(b, base, "_scale"), tensor_type(b->a, s), s);
    p.zp = graph_add_const(g, derived_name(b, base, "_zero_point"), tensor_type(b->a, z), z);
    return p;
}

Str quant_key(Arena *a, const Quant *q) {
    int64_t head[] = {q->kind,
                      q->storage,
                      q->expressed,
                      q->scale_type,
                      quant_is_integers(q) ? quant_lo(q) : 0,
                      quant_is_integers(q) ? quant_hi(q) : 0,
                      (int64_t)q->n_scale,
                      q->n_axes};
    Buf b = buf_new(a);
    buf_put(&b, head, sizeof head);
    if (q->kind == QUANT_ACC) {
        buf_put(&b, q->acc_value, sizeof q->acc_value);
        buf_put(&b, q->acc_quant, sizeof q->acc_quant);
    }
    for (int i = 0; i < q->n_axes; i++) {
        int64_t axis[] = {q->axis[i], q->block[i]};
        buf_put(&b, axis, sizeof axis);
    }
    for (size_t i = 0; i < q->n_scale; i++) {
        struct {
            int64_t zp;
            double scale;
        } one = {quant_zp(q, i), (double)quant_scale(q, i)};
        buf_put(&b, &one, sizeof one);
    }
    return buf_as_str(&b);
}

QuantParams quant_constants(QuantBuild *b, const Quant *q, Type t, Str base) {
    q = onnx_quant(b, q);
    if (q->alias.n)
        base = q->alias;
    if (is_blocked(q)) /* their shape is the tensor's */
        return make_params(b, q, t, base);
    Str key = quant_key(b->m->scratch, q);
    const QuantParams *known = map_get(b->params, key);
    if (known)
        return *known;
    QuantParams p = make_params(b, q, t, base);
    map_set(b->params, key, arena_copy(b->m->scratch, &p, sizeof p));
    return p;
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

bool leaves_range(const Node *n) {
    return !node_int(n, "saturate", 1) && node_conversion(n) == CONVERT_QUANTIZE &&
           elem_is_float(n->out[0]->type.elem);
}

/* Of the attributes only what no type says. */
static void clear_attrs(Node *n) {
    bool keeps = leaves_range(n);
    n->n_attrs = 0;
    n->attrs = NULL;
    if (keeps)
        node_set_int(n, "saturate", 0);
}

void state_params(QuantBuild *b, Node *n, const Quant *q, Type t, Str base) {
    q = onnx_quant(b, q);
    QuantParams p = quant_constants(b, q, t, base);
    n->n_in = 1;
    clear_attrs(n);
    node_add_input(n, p.scale);
    node_add_input(n, p.zp);
    if (is_blocked(q)) {
        int k = blocked_axis(q);
        node_set_int(n, "axis", q->axis[k]);
        node_set_int(n, "block_size", q->block[k]);
    } else if (q->n_axes) {
        node_set_int(n, "axis", q->axis[0]);
    }
    if (node_conversion(n) == CONVERT_DEQUANTIZE && q->expressed != q->scale_type)
        node_set_int(n, "output_dtype", q->expressed);
    op_resolve(n, b->d);
}

void drop_params(Node *n, Diags *d) {
    n->n_in = 1;
    n->domain = STR_NONE;
    clear_attrs(n);
    op_resolve(n, d);
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

/* ---- !name lines ---- */

static void mark_quant(Map *used, const Quant *q) {
    if (!q)
        return;
    map_set_at(used, q, (void *)q);
    for (int i = 0; i < 2; i++) /* acc<!x, !w> */
        mark_quant(used, q->acc_quant[i]);
}

static void mark_value(Value *v, void *used) {
    mark_quant(used, v->type.quant);
}

/* value "logits" !logits: the text of the scheme stays, so its line does. */
static void mark_rules(Map *used, const Scheme *s) {
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < SCHEME_ROLES; k++)
            mark_quant(used, s->rules[i].set[k].line);
}

Map *quants_in_use(Module *m) {
    Map *used = map_new(m->arena);
    module_each_value(m, mark_value, used);
    mark_rules(used, &m->rules);
    return used;
}

void drop_unused_quants_among(Module *m, const Map *among) {
    Map *used = quants_in_use(m);
    size_t kept = 0;
    for (size_t i = 0; i < m->n_quants; i++)
        if (map_get_at(used, m->quants[i]) || (among && !map_get_at(among, m->quants[i])))
            m->quants[kept++] = m->quants[i];
    m->n_quants = kept;
}

void drop_unused_quants(Module *m) {
    drop_unused_quants_among(m, NULL);
}

bool is_nbits_block(int64_t length) {
    return length >= 16 && (length & (length - 1)) == 0;
}
