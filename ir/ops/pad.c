/* Pad: from 11 pads and the value are operands, 18 added axes, 19 mode "wrap". */
#include <math.h>

#include "ir/minifloat.h"
#include "ir/ops/told.h"

typedef struct PadAttrs {
    Str mode;
    Ints pads;   /* before 11 */
    float value; /* before 11 */
} PadAttrs;

static const AttrSpec pad_attrs[] = {
    A_WORD(PadAttrs, mode, "constant", "constant reflect edge wrap"),
    A_INTS(PadAttrs, pads),
    A_FLOAT(PadAttrs, value, 0.0f),
    A_END,
};

enum { DATA, PADS, VALUE, AXES };

/* Elements added before and after an axis; negative ones are cut off. */
typedef struct Edge {
    int64_t before, after;
    bool known;
} Edge;

static bool in_range(int64_t pad) {
    return pad >= -INT32_MAX && pad <= INT32_MAX;
}

/* Of each axis; `known` is false where not even the axes are. */
static bool read_edges(const OpCtx *c, Type x, Edge *edges, bool *known) {
    const PadAttrs *a = c->attrs;
    SomeInts pads = op_known_ints(c, a->pads);
    Ints axes = {NULL, 0};
    bool set[MAX_RANK];
    *known =
        (pads.v || op_some_ints(c, PADS, &pads)) && (!op_in(c, AXES) || op_ints(c, AXES, &axes));
    if (!*known)
        return true;
    size_t n = axes.v ? axes.n : (size_t)x.rank;
    if (pads.n != 2 * n)
        return op_error_param(c, "pads", PADS, "pads has %zu numbers, needs %zu", pads.n, 2 * n);
    if (!op_axes(c, axes, AXES, x.rank, set))
        return false;
    for (int i = 0; i < x.rank; i++)
        edges[i] = (Edge){0, 0, true};
    for (size_t i = 0; i < n; i++) {
        int64_t axis = axes.v ? axes.v[i] : (int64_t)i;
        axis += axis < 0 ? x.rank : 0;
        edges[axis] = (Edge){pads.v[i], pads.v[i + n], pads.known[i] && pads.known[i + n]};
        if ((pads.known[i] && !in_range(pads.v[i])) ||
            (pads.known[i + n] && !in_range(pads.v[i + n])))
            return op_error_param(c, "pads", PADS, "a pad of more than 2147483647");
    }
    return true;
}

/* The same where all of them are to be known. */
static bool read_pads(const OpCtx *c, Type x, int64_t *before, int64_t *after, bool *known) {
    Edge edges[MAX_RANK];
    if (!read_edges(c, x, edges, known))
        return false;
    for (int i = 0; *known && i < x.rank; i++) {
        before[i] = edges[i].before;
        after[i] = edges[i].after;
        *known = edges[i].known;
    }
    return true;
}

static bool is_whole(Edge e) {
    return e.known && e.before == 0 && e.after == 0;
}

static bool pad_infer(OpCtx *c) {
    Type x = op_type(c, DATA);
    Edge edges[MAX_RANK];
    bool known;
    if (x.rank < 0)
        return true;
    if (!read_edges(c, x, edges, &known))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++) {
        bool same = known && is_whole(edges[i]), open = !known || !edges[i].known;
        int64_t d = x.dims[i].value;
        dims[i] = same            ? x.dims[i]
                  : open || d < 0 ? dim_unknown()
                                  : dim_of(dim_add(d, edges[i].before + edges[i].after));
        if (!open && !same && d >= 0 && dims[i].value < 0)
            return op_error_param(c, "pads", PADS, "axis %d is cut to less than nothing", i);
    }
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static int pad_move(const OpCtx *c, int axis) {
    Type x = op_type(c, DATA);
    Edge edges[MAX_RANK];
    bool known;
    if (x.rank <= axis || !read_edges(c, x, edges, &known) || !known)
        return -1;
    return is_whole(edges[axis]) ? axis : -1;
}

static bool holds(const Quant *q, float v) {
    return (float)(quant_of_real(q, 0, v) - quant_zp(q, 0)) * quant_scale(q, 0) == v;
}

/* The value must be one of the numbers that the operand's integers stand for: 0 always is. */
static const char *pad_integer_refusal(const OpCtx *c, const Quant *x) {
    const PadAttrs *a = c->attrs;
    const Tensor *t = op_const(c, VALUE);
    if (!str_is(a->mode, "constant"))
        return NULL;
    if (op_in(c, VALUE) && (!t || !t->data || t->count != 1))
        return "the value it pads with is not a constant";
    float v = t ? (float)tensor_float(t, 0) : a->value;
    if (v == 0)
        return NULL;
    if (!x)
        return "it pads with a value other than 0, which its operand's integers may not hold";
    return x->kind == QUANT_PARAMS && quant_is_per_tensor(x) && holds(x, v)
               ? NULL
               : "the value it pads with is not one that its operand's integers stand for";
}

/* One constant other than 0. */
static bool pad_fills_anew(const OpCtx *c) {
    const PadAttrs *a = c->attrs;
    const Tensor *t = op_const(c, VALUE);
    bool one = op_in(c, VALUE) && t && t->data && t->count == 1 && elem_is_float(t->elem);
    return str_is(a->mode, "constant") && one && tensor_float(t, 0) != 0 &&
           isfinite(tensor_float(t, 0));
}

static bool pad_fills(const OpCtx *c) {
    const PadAttrs *a = c->attrs;
    return str_is(a->mode, "constant");
}

static bool pad_zeros(const OpCtx *c, int64_t *before, int64_t *after) {
    const PadAttrs *a = c->attrs;
    const Tensor *t = op_const(c, VALUE);
    Type x = op_type(c, DATA);
    bool known;
    if (!str_is(a->mode, "constant") || x.rank < 0 || !elem_is_float(type_real_elem(x)) ||
        !read_pads(c, x, before, after, &known) || !known)
        return false;
    for (int i = 0; i < x.rank; i++)
        if (before[i] < 0 || after[i] < 0)
            return false;
    if (!op_in(c, VALUE))
        return a->value == 0;
    return t && t->data && t->count == 1 && elem_is_float(t->elem) && tensor_float(t, 0) == 0;
}

static bool pad_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)d;
    if (from >= 11 || to < 11)
        return true;
    upgrade_ints_attr(n, "pads", PADS, names);
    upgrade_float_attr(n, "value", VALUE, names);
    return true;
}

/* Pads of all axes, without a list of axes: where onnxruntime moves channels last it forgets that.
 */
static void pad_all_axes(Node *n, UniqueNames *names) {
    OpCtx c = op_ctx(n, NULL);
    Type x = op_type(&c, DATA);
    int64_t before[MAX_RANK], after[MAX_RANK];
    bool known;
    if (!op_in(&c, AXES) || x.rank < 0 || !read_pads(&c, x, before, after, &known) || !known)
        return;
    Arena *a = n->graph->module->arena;
    uint8_t *bytes;
    Tensor *t = tensor_new(a, ELEM_INT64, 1, &(int64_t){2 * (int64_t)x.rank}, &bytes);
    memcpy(bytes, before, (size_t)x.rank * sizeof *before);
    memcpy(bytes + (size_t)x.rank * sizeof *before, after, (size_t)x.rank * sizeof *after);
    Str name = unique_name(names, arena_strf(a, STR_FMT "_all", STR_ARG(n->in[PADS]->name)));
    Value *pads = graph_add_const(n->graph, name, tensor_type(a, t), t);
    n->in[PADS] = pads;
    n->in[AXES] = NULL;
    while (!n->in[n->n_in - 1])
        n->n_in--;
}

/* The bits to fill with: the value on the grid of a quantized operand. */
static bool pad_value(Binder *b, const Node *n, const OpCtx *c, int64_t *bits) {
    const Quant *q = op_quant(n->in[DATA]);
    const Tensor *t = op_const(c, VALUE);
    ElemType e = n->in[DATA]->type.elem;
    float value = t ? (float)tensor_float(t, 0) : ((const PadAttrs *)c->attrs)->value;
    *bits = 0;
    if (q) {
        if (!quant_plain(q))
            return bind_unsupported(b, n, "its operand is quantized per axis");
        *bits = quant_of_real(q, 0, value);
    } else if (t && elem_is_int(e)) {
        *bits = tensor_int(t, 0);
    } else if (t && elem_bits(e) >= 8 && t->elem == e) {
        memcpy(bits, t->data, (size_t)elem_bits(e) / 8);
    } else if (t) {
        return bind_unsupported(b, n, "its value has another type");
    } else if (elem_is_float(e)) {
        uint64_t encoded;
        if (!float_encode(e, (double)value, &encoded))
            float_encode(e, copysign(INFINITY, (double)value), &encoded);
        *bits = (int64_t)encoded;
    }
    return true;
}

/* Where the element at `i`, counted from the first that is kept, comes from. */
static int64_t pad_source(Str mode, int64_t i, int64_t length) {
    if (str_is(mode, "edge"))
        return i < 0 ? 0 : i >= length ? length - 1 : i;
    int64_t period = str_is(mode, "wrap") ? length : 2 * (length - 1);
    if (period == 0)
        return 0;
    i = (i % period + period) % period;
    return i < length ? i : period - i; /* there and back again */
}

/* What negative pads cut off goes first: nothing comes from there. */
static bool pad_mirrored(Binder *b, const Node *n, Str mode, const int64_t *before,
                         const int64_t *after) {
    Type x = n->in[DATA]->type, y = n->out[0]->type;
    int64_t *from[MAX_RANK];
    if (!str_is(mode, "edge") && !str_is(mode, "reflect") && !str_is(mode, "wrap"))
        return bind_unsupported(b, n, "mode '%s'", diag_name(binder_diags(b), mode));
    for (int i = 0; i < x.rank; i++) {
        int64_t cut = before[i] < 0 ? -before[i] : 0;
        int64_t kept = x.dims[i].value - cut + (after[i] < 0 ? after[i] : 0);
        if (kept <= 0 && bind_count(n->out[0]) > 0)
            return bind_unsupported(b, n, "there is nothing to pad with");
        from[i] = NEW_ARRAY(binder_arena(b), int64_t, (size_t)y.dims[i].value + 1);
        for (int64_t k = 0; kept > 0 && k < y.dims[i].value; k++)
            from[i][k] = cut + pad_source(mode, k - before[i] - cut, kept);
    }
    return bind_take(b, n, n->in[DATA], n->out[0], from);
}

/* The result, all of it, takes the value that the elements outside have. */
static bool pad_fill_all(Binder *b, const Node *n, const OpCtx *c) {
    const Value *value = op_in(c, VALUE);
    const Tensor *t = op_const(c, VALUE);
    ElemType e = bind_elem(n->in[DATA]);
    qk_fill_params p = {.n = bind_count(n->out[0])};
    int y = bind_value(b, n->out[0]);
    if (!value || (t && t->data && t->count == 1))
        return pad_value(b, n, c, &p.value) &&
               bind_call(b, n, bind_kernel(b, "fill", 1, &e), &p, sizeof p, 1, &y);
    if (bind_any_quant(n) || bind_count(value) != 1 || bind_elem(value) != e)
        return bind_unsupported(b, n, "its value is not one constant");
    qk_copy_nd_params same = {.rank = 1, .dim = {bind_count(n->out[0])}, .ds = {1}};
    return bind_call(b, n, bind_kernel(b, "copy_nd", 1, &e), &same, sizeof same, 2,
                     (int[]){bind_value(b, value), y});
}

/* ---- pads that only a run tells ---- */

static bool bind_pad_box(Binder *b, const Node *n, const OpCtx *c, int box) {
    const PadAttrs *a = c->attrs;
    Type x = n->in[DATA]->type;
    const Value *axes = op_in(c, AXES);
    size_t count = (size_t)x.rank;
    ElemType e = axes ? axes->type.elem : ELEM_INT64;
    if (axes && (axes->type.rank != 1 || !type_count(axes->type, &count)))
        return bind_unsupported(b, n, "its axes are no list");
    if (!bind_told_list(b, n, PADS, 2 * count))
        return false;
    qk_pad_box_params p = {
        .rank = x.rank, .n = (int32_t)count, .mirrors = !str_is(a->mode, "constant")};
    bind_dims(x, p.from);
    return bind_call(b, n, bind_kernel(b, "pad_box", 1, &e), &p, sizeof p, 3,
                     (int[]){bind_value(b, n->in[PADS]), axes ? bind_value(b, axes) : -1, box});
}

static bool pad_bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    int box = bind_box(b, n);
    return bind_pad_box(b, n, c, box) && bind_told_length(b, n, box, length);
}

static bool pad_bind_in_run(Binder *b, const Node *n, const OpCtx *c) {
    const PadAttrs *a = c->attrs;
    int box = bind_box(b, n);
    if (!bind_pad_box(b, n, c, box))
        return false;
    if (!str_is(a->mode, "constant"))
        return bind_take_in_run(b, n, a->mode, box);
    return pad_fill_all(b, n, c) && bind_copy_box(b, n, box);
}

static bool pad_bind(Binder *b, const Node *n, const OpCtx *c) {
    const PadAttrs *a = c->attrs;
    Type x = n->in[DATA]->type, y = n->out[0]->type;
    int64_t before[MAX_RANK], after[MAX_RANK], from = 1, to = 1;
    bool known;
    if (!bind_equal_quant(n->in[DATA], n->out[0]))
        return bind_unsupported(b, n, "operand and result are quantized differently");
    if (node_shape_operand(n))
        return pad_bind_in_run(b, n, c);
    if (!read_pads(c, x, before, after, &known))
        return false;
    if (!str_is(a->mode, "constant"))
        return pad_mirrored(b, n, a->mode, before, after);
    qk_copy_nd_params p = {.rank = x.rank};
    for (int i = x.rank - 1; i >= 0; i--) { /* the box that both have */
        int64_t cut = (before[i] < 0 ? before[i] : 0) + (after[i] < 0 ? after[i] : 0);
        int64_t rest = x.dims[i].value + cut;
        p.dim[i] = rest > 0 ? (int32_t)rest : 0;
        p.ss[i] = (int32_t)from;
        p.ds[i] = (int32_t)to;
        p.src_offset += before[i] < 0 ? -before[i] * from : 0;
        p.dst_offset += before[i] > 0 ? before[i] * to : 0;
        from *= x.dims[i].value;
        to *= y.dims[i].value;
    }
    ElemType e = bind_elem(n->in[DATA]);
    int in = bind_value(b, n->in[DATA]), out = bind_value(b, n->out[0]);
    return pad_fill_all(b, n, c) &&
           bind_call(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p, 2, (int[]){in, out});
}

const OpDef op_Pad = {
    .domain = "",
    .name = "Pad",
    .fixed = 1u << PADS | 1u << AXES,
    .attrs_size = sizeof(PadAttrs),
    .attrs = pad_attrs,
    .infer = pad_infer,
    .quant = {.kind = QUANT_MOVE,
              .data = 1,
              .move.axis = pad_move,
              .move.fill = VALUE,
              .move.fills = pad_fills,
              .move.fills_anew = pad_fills_anew,
              .integer_refusal = pad_integer_refusal},
    .zero_pads = pad_zeros,
    .upgrade = pad_upgrade,
    .normalize = pad_all_axes,
    .bind_length = pad_bind_length,
    .bind = pad_bind,
};
