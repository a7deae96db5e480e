/* RotaryEmbedding of opset 23: pairs of numbers turned by an angle that depends on the step.
 * Operands are [batch, heads, steps, size] or [batch, steps, heads * size]. On integers the tables
 * are float constants, or have parameters of their own. */
#include "ir/ops/bind.h"
#include "kernels/requant_host.h"

#include <math.h>

enum { X, COS, SIN, IDS };

typedef struct RotaryAttrs {
    int64_t interleaved, num_heads, rotary_embedding_dim;
} RotaryAttrs;

static const AttrSpec attrs[] = {
    A_INT(RotaryAttrs, interleaved, 0),
    A_INT(RotaryAttrs, num_heads, 0),
    A_INT(RotaryAttrs, rotary_embedding_dim, 0),
    A_END,
};

static bool verify(const OpCtx *c) {
    const RotaryAttrs *a = c->attrs;
    Type x = op_type(c, X);
    if (x.rank < 0)
        return true;
    if (x.rank != 3 && x.rank != 4)
        return op_error_in(c, X, "has rank %d, must have 3 or 4", x.rank);
    if (x.rank == 3 && a->num_heads < 1)
        return op_error_attr(c, "num_heads", "operands of rank 3 need num_heads");
    if (x.rank == 3 && a->num_heads > INT32_MAX)
        return op_error_attr(c, "num_heads", "num_heads is %lld", (long long)a->num_heads);
    if (a->rotary_embedding_dim < 0)
        return op_error_attr(c, "rotary_embedding_dim",
                             "rotary_embedding_dim is %lld, must not be negative",
                             (long long)a->rotary_embedding_dim);
    int64_t size = x.dims[x.rank - 1].value;
    if (x.rank == 3 && size >= 0 && size % a->num_heads)
        return op_error_in(c, X, "%lld numbers do not divide into %lld heads", (long long)size,
                           (long long)a->num_heads);
    size = size < 0 || x.rank == 4 ? size : size / a->num_heads;
    int64_t turned = a->rotary_embedding_dim ? a->rotary_embedding_dim : size;
    if (turned >= 0 && (turned % 2 || (size >= 0 && turned > size)))
        return op_error(c, "%lld of %lld numbers cannot be turned in pairs", (long long)turned,
                        (long long)size);
    return true;
}

/* Of a row whose tables are constants. */
static const char *integer_refusal(const OpCtx *c, const Quant *x) {
    (void)x;
    for (size_t i = COS; i <= SIN; i++) {
        const Tensor *t = op_const(c, i);
        if (!t || !t->data || !elem_is_float(t->elem))
            return "its tables are not float constants";
    }
    return NULL;
}

static bool tables_computed(const Node *n) {
    return node_computed_floats(n, COS) && node_computed_floats(n, SIN);
}

/* Parameters of the integer kernel begin with those of the float one. */
_Static_assert(offsetof(qk_rotary_q_params, xz) == sizeof(qk_rotary_f32_params),
               "copied as they are");

/* Constant cosines, sines, and behind them 1, all times the ratio of the scales. */
static void constant_tables(Binder *b, const OpCtx *c, double ratio, qk_rotary_q_params *p,
                            int tables[2]) {
    static const char *const names[] = {"cosines", "sines"};
    const Tensor *table[] = {op_const(c, COS), op_const(c, SIN)};
    size_t count = table[0]->count;
    double *real = NEW_ARRAY(binder_arena(b), double, 2 * count + 1);
    int32_t *ints = NEW_ARRAY(binder_arena(b), int32_t, 2 * count + 1);
    for (size_t i = 0; i < 2 * count; i++)
        real[i] = ratio * tensor_float(table[i / count], i % count);
    real[2 * count] = ratio;
    requant_table(real, 2 * count + 1, ints, &p->shift);
    p->one = ints[2 * count];
    for (size_t i = 0; i < 2; i++)
        tables[i] = bind_const(b, ELEM_INT32, count, ints + i * count, names[i]);
}

static double largest(const Value *v) {
    const Quant *q = op_quant(v);
    double lo = (double)(quant_lo(q) - quant_zp(q, 0)), hi = (double)(quant_hi(q) - quant_zp(q, 0));
    return fmax(fabs(lo), fabs(hi)) * (double)quant_scale(q, 0);
}

/* What is computed, in as many bits as the largest of all needs. */
static bool computed_tables(Binder *b, const Node *n, double ratio, qk_rotary_q_params *p,
                            int tables[2]) {
    double most = ratio * fmax(1, fmax(largest(n->in[COS]), largest(n->in[SIN])));
    int32_t unused;
    requant_table(&most, 1, &unused, &p->shift);
    p->one = (int32_t)lrint(ldexp(ratio, p->shift));
    for (size_t i = COS; i <= SIN; i++) {
        const Quant *q = op_quant(n->in[i]);
        qk_table_q_params t = {.n = bind_count(n->in[i]), .xz = quant_zero(q)};
        ElemType e = bind_elem(n->in[i]);
        requant_real(ratio * (double)quant_scale(q, 0), &t.m, &t.shift);
        t.shift -= p->shift;
        tables[i - COS] = bind_temp(b, ELEM_INT32, (size_t)t.n);
        if (t.shift < 0 || t.shift > 62)
            return bind_unsupported(b, n, "its scales are too far apart for integers");
        if (!bind_call(b, n, bind_kernel(b, "table_q", 1, &e), &t, sizeof t, 2,
                       (int[]){bind_value(b, n->in[i]), tables[i - COS]}))
            return false;
    }
    return true;
}

static bool bind_integers(Binder *b, const Node *n, const OpCtx *c, const qk_rotary_f32_params *of,
                          int ids) {
    const Quant *x = op_quant(n->in[X]), *y = op_quant(n->out[0]);
    bool computed = quant_plain(op_quant(n->in[COS])) && quant_plain(op_quant(n->in[SIN]));
    if (!quant_plain(x) || !quant_plain(y) || (!computed && integer_refusal(c, x)))
        return bind_in_double(b, n);
    double ratio = (double)quant_scale(x, 0) / (double)quant_scale(y, 0);
    qk_rotary_q_params p = {.xz = quant_zero(x), RESULT_PARAMS(y)};
    int tables[2];
    memcpy(&p, of, sizeof *of);
    if (!computed)
        constant_tables(b, c, ratio, &p, tables);
    else if (!computed_tables(b, n, ratio, &p, tables))
        return false;
    ElemType types[] = {bind_elem(n->in[X]), bind_elem(n->out[0])};
    return bind_call(
        b, n, bind_kernel(b, "rotary_q", 2, types), &p, sizeof p, 5,
        (int[]){bind_value(b, n->in[X]), tables[0], tables[1], ids, bind_value(b, n->out[0])});
}

static bool bind_floats(Binder *b, const Node *n, const qk_rotary_f32_params *p, int ids) {
    for (size_t i = X; i <= SIN; i++)
        if (n->in[i]->type.elem != bind_real(b) || op_quant(n->in[i]))
            return bind_unsupported(b, n, "operand %zu is not float", i);
    return bind_call(b, n, "qk_rotary_f32", p, sizeof *p, 5,
                     (int[]){bind_value(b, n->in[X]), bind_value(b, n->in[COS]),
                             bind_value(b, n->in[SIN]), ids, bind_value(b, n->out[0])});
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const RotaryAttrs *a = c->attrs;
    Type x = n->in[X]->type, table = n->in[COS]->type;
    const Value *ids = op_in(c, IDS);
    bool heads_first = x.rank == 4;
    qk_rotary_f32_params p = {.batch = (int32_t)x.dims[0].value,
                              .heads = (int32_t)(heads_first ? x.dims[1].value : a->num_heads),
                              .steps = (int32_t)x.dims[heads_first ? 2 : 1].value,
                              .interleaved = a->interleaved != 0};
    p.size = (int32_t)x.dims[x.rank - 1].value / (heads_first ? 1 : p.heads);
    p.half = (int32_t)(a->rotary_embedding_dim ? a->rotary_embedding_dim : p.size) / 2;
    p.xb = p.heads * p.steps * p.size;
    p.xh = heads_first ? p.steps * p.size : p.size;
    p.xs = heads_first ? p.size : p.heads * p.size;
    if (table.rank < 1 || table.dims[table.rank - 1].value != p.half ||
        bind_count(n->in[COS]) != bind_count(n->in[SIN]))
        return bind_unsupported(b, n, "its tables do not have %d numbers a row", p.half);
    p.rows = p.half ? bind_count(n->in[COS]) / p.half : 0;
    if (ids ? bind_count(ids) != p.batch * p.steps || (p.rows == 0 && p.half)
            : p.rows != p.batch * p.steps)
        return bind_unsupported(b, n, "its tables or positions do not fit %d steps of %d sequences",
                                p.steps, p.batch);
    int rows = bind_value(b, ids);
    if (bind_any_quant(n) ? !bind_integers(b, n, c, &p, rows) : !bind_floats(b, n, &p, rows))
        return false;
    bind_within(b, ids, false, &p.rows, 1);
    return true;
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)result;
    return axis == 0 && (i == X || (i == IDS && op_type(c, IDS).rank == 2)) ? 0 : -1;
}

#define ROTARY                                                                                     \
    .domain = "", .name = "RotaryEmbedding", .attrs_size = sizeof(RotaryAttrs), .attrs = attrs,    \
    .verify = verify, .infer = op_same_type, .slices = slices, .bind = bind

static const OpDef computed_row = {
    ROTARY,
    .quant = {.kind = QUANT_COMPUTE,
              .data = 1u << X | 1u << COS | 1u << SIN,
              .prefers_float = GAINS_NOTHING},
};

static const OpDef *form(const Node *n);

const OpDef op_RotaryEmbedding = {
    ROTARY,
    .form = form,
    .quant = {.kind = QUANT_COMPUTE,
              .data = 1u << X,
              .prefers_float = GAINS_NOTHING,
              .integer_refusal = integer_refusal},
};

static const OpDef *form(const Node *n) {
    return tables_computed(n) ? &computed_row : &op_RotaryEmbedding;
}
