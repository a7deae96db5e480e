/* The recipe QDQ_OP_INT32_BIAS: MatMul of integers that yields float, and the Add of a constant
 * behind it, compute on the accumulator:
 *
 *   %acc : int32q<sx * sw[c]> = MatMul(%x, %w)
 *   %sum : int32q<sx * sw[c]> = Add(%acc, %bias)     bias = rint(b / (sx * sw[c])), as int32
 *   %y   : float              = DequantizeLinear(%sum)
 *
 * which lowering spells MatMulInteger, Add, Cast, Mul. Where int32 could not hold the largest sum
 * there can be, and where the integers are not of 8 bits, the bias stays float, with a remark. */
#include <math.h>
#include <stdlib.h>

#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/params.h"
#include "passes/recipe.h"

static const char PASS_NAME[] = "int32-bias";

typedef struct Int32Bias {
    PassContext *c;
    Uses *uses;
    UniqueNames *names;
    Arena *arena;
    bool *forget; /* by node id: what was remarked of it may be no longer so */
} Int32Bias;

static bool is_byte(const Quant *q) {
    return q && q->kind == QUANT_PARAMS && elem_bits(q->storage) == 8 &&
           q->expressed == ELEM_FLOAT && q->scale_type == ELEM_FLOAT && !quant_is_wide(q);
}

/* ---- whether int32 holds it ---- */

/* Largest |q - zp|. */
static int64_t reach(const Quant *q) {
    int64_t zp = quant_zp(q, 0), below = zp - quant_lo(q), above = quant_hi(q) - zp;
    return below > above ? below : above;
}

/* sum |w - zp| of every column of the last axis, over the axis before it, at its largest. */
static int64_t *largest_sums(Arena *a, const Tensor *w, const Quant *q, size_t columns) {
    size_t terms = w->rank > 1 ? (size_t)w->dims[w->rank - 2] : w->count;
    size_t count = w->rank > 1 ? columns : 1;
    int64_t *sum = NEW_ARRAY(a, int64_t, count + 1), *most = NEW_ARRAY(a, int64_t, count + 1);
    for (size_t i = 0; i < w->count; i++) {
        size_t c = i % count;
        if (i / count % terms == 0)
            sum[c] = 0;
        sum[c] += llabs(tensor_int(w, i) - quant_zp(q, c % (q->n_zp ? q->n_zp : 1)));
        most[c] = sum[c] > most[c] ? sum[c] : most[c];
    }
    return most;
}

/* |bias| of every column at its largest, in units of the accumulator. */
static double *largest_biases(Arena *a, const Tensor *b, const Quant *acc, size_t columns) {
    double *most = NEW_ARRAY(a, double, columns + 1);
    size_t last = b && b->rank ? (size_t)b->dims[b->rank - 1] : 1;
    for (size_t i = 0; b && i < b->count; i++)
        for (size_t c = last > 1 ? i % last % columns : 0; c < columns; c++) {
            double units = fabs(tensor_float(b, i) / (double)quant_scale(acc, c % acc->n_scale));
            most[c] = units > most[c] || isnan(units) ? units : most[c];
            if (last > 1)
                break;
        }
    return most;
}

static bool sums_fit(const Int32Bias *s, const Node *n, const Quant *acc, const Tensor *bias) {
    const Value *w = n->in[n->def->quant.mac.weight];
    size_t columns = w->data->rank > 1 ? (size_t)w->data->dims[w->data->rank - 1] : 1;
    const int64_t *sums = largest_sums(s->arena, w->data, w->type.quant, columns);
    const double *biases = largest_biases(s->arena, bias, acc, columns);
    int64_t x = reach(n->in[0]->type.quant);
    for (size_t c = 0; c < columns; c++)
        if (!((double)(x * sums[c]) + biases[c] <= (double)INT32_MAX)) /* NaN does not */
            return false;
    return true;
}

/* ---- whether it is of that kind ---- */

/* Each dimension of the bias is 1 or the result's. */
static bool broadcasts(const Tensor *bias, Type y) {
    for (int i = 0; i < bias->rank; i++) {
        int at = y.rank - bias->rank + i;
        if (at < 0 || (bias->dims[i] != 1 && bias->dims[i] != y.dims[at].value))
            return false;
    }
    return true;
}

/* What the accumulator is quantized with, NULL with the reason. */
static Quant *accumulator(const Int32Bias *s, const Node *n, const Tensor *bias, const char **why) {
    Value *w = n->in[n->def->quant.mac.weight];
    const Quant *x = op_quant(n->in[0]), *wq = op_quant(w);
    OpCtx c = op_ctx(n, NULL);
    int axis = quant_weight_axis(&n->def->quant, &c);
    Type y = n->out[0]->type;
    *why = "its operands are not quantized to 8 bits";
    if (!is_byte(x) || !is_byte(wq))
        return NULL;
    *why = "there is not one accumulator scale for each column";
    if (!quant_is_per_tensor(x) || wq->n_axes > 1 ||
        (wq->n_axes && (wq->block[0] > 1 || wq->axis[0] != axis)) || y.kind != TYPE_TENSOR ||
        y.rank < 0)
        return NULL;
    Quant *q = quant_product(s->arena, x, wq);
    if (q->n_axes)
        q->axis[0] = y.rank - 1;
    for (size_t i = 0; i < q->n_scale; i++)
        if (!isnormal(quant_scale(q, i)))
            return NULL;
    *why = "its bias does not broadcast to the product";
    if (bias && !broadcasts(bias, y))
        return NULL;
    *why = "the largest sum there can be does not fit int32";
    return sums_fit(s, n, q, bias) ? q : NULL;
}

/* ---- the rewrite ---- */

/* One integer for each of the bias's numbers; one number for all becomes one a column. */
static Value *int_bias(const Int32Bias *s, Value *b, const Quant *acc) {
    const Tensor *t = b->data;
    int rank = t->rank;
    int64_t *dims = NEW_ARRAY(s->arena, int64_t, (size_t)rank + 1);
    memcpy(dims, t->dims, (size_t)rank * sizeof *dims);
    size_t last = rank ? (size_t)dims[rank - 1] : 1, n = acc->n_axes ? acc->n_scale : last;
    if (acc->n_axes) {
        rank = rank ? rank : 1;
        dims[rank - 1] = (int64_t)n;
    }
    uint8_t *bytes;
    Tensor *ints = tensor_new(s->arena, ELEM_INT32, rank, dims, &bytes);
    for (size_t i = 0; i < ints->count; i++) {
        size_t at = last == n ? i : i / n;
        elem_store_int(ELEM_INT32, bytes, i,
                       params_bias(tensor_float(t, at), quant_scale(acc, i % acc->n_scale)));
    }
    Quant *q = quant_copy(s->arena, acc);
    if (q->n_axes)
        q->axis[0] = rank - 1;
    q->alias = unique_name(s->names, arena_strf(s->arena, STR_FMT "_quantized", STR_ARG(b->name)));
    module_add_quant(b->graph->module, q);
    Value *v =
        graph_add_const(b->graph, q->alias, type_quantized(tensor_type(s->arena, ints), q), ints);
    value_from(v, b, PASS_NAME);
    v->loc = b->loc;
    return v;
}

/* `n` yields integers from here on, and a DequantizeLinear behind it the float value it did. */
static void dequantize_behind(const Int32Bias *s, Node *n, const Quant *acc) {
    Value *y = n->out[0];
    Node *d = node_new(n->graph, STR_NONE, STR("DequantizeLinear"), 1, 1);
    node_from(d, n, PASS_NAME);
    Str name = unique_name(s->names, arena_strf(s->arena, STR_FMT "_int32", STR_ARG(y->name)));
    node_follow(n, 0, d, name, type_quantized(y->type, acc));
    op_resolve(d, s->c->d);
}

static void rewrite(const Int32Bias *s, Node *n, Node *add, Quant *acc) {
    Value *y = n->out[0];
    if (add) {
        size_t at = add->in[0] == y;
        y->type = type_quantized(y->type, acc);
        y->declared = false;
        add->in[at] = int_bias(s, add->in[at], acc);
    }
    dequantize_behind(s, add ? add : n, acc);
    acc->alias = (add ? add : n)->out[0]->name;
    module_add_quant(n->graph->module, acc);
}

static bool is_product(const Node *n) {
    return recipe_takes(n) && !op_quant(n->out[0]) && op_quant(n->in[0]) &&
           op_quant(n->in[n->def->quant.mac.weight]);
}

/* That its bias is float was remarked, and may not stay so. */
static void mark_remarked(Graph *g, void *ctx) {
    const Int32Bias *s = ctx;
    FOR_NODES(n, g) {
        if (!is_product(n))
            continue;
        const Node *add = recipe_bias_of(s->uses, n);
        s->forget[(add ? add : n)->id] = true;
    }
}

static void rewrite_graph(Graph *g, void *ctx) {
    const Int32Bias *s = ctx;
    FOR_NODES(n, g) {
        if (!is_product(n))
            continue;
        Node *add = recipe_bias_of(s->uses, n);
        const Tensor *bias = add ? edit_float_const(add->in[add->in[0] == n->out[0]]) : NULL;
        const char *why;
        Quant *acc = accumulator(s, n, bias, &why);
        if (acc)
            rewrite(s, n, add, acc);
        else
            pass_remark(s->c, add ? add : n, "its bias is not added to the accumulator: %s", why);
    }
}

bool pass_int32_bias(Module *m, PassContext *c) {
    Int32Bias s = {c, uses_new(m), unique_names_new(m), m->arena,
                   NEW_ARRAY(m->arena, bool, m->n_nodes)};
    module_each_graph(m, mark_remarked, &s);
    pass_forget_remarks(c, s.forget);
    module_each_graph(m, rewrite_graph, &s);
    edit_sweep(m);
    return true;
}
