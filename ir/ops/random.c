/* RandomUniform, RandomNormal, their forms that take the shape of an operand, Bernoulli and
 * Multinomial. Only types changed. */
#include "ir/ops/random.h"

enum { STATE_WORDS = 625 };

int bind_random_state(Binder *b) {
    return bind_scratch(b, ELEM_UINT32, STATE_WORDS);
}

typedef struct RandomAttrs {
    Ints shape;
    int64_t dtype, sample_size;
    float seed, low, high, mean, scale;
} RandomAttrs;

#define SEED ATTR(RandomAttrs, seed, "seed", ATTR_FLOAT, .def_float = 0)

/* The whole number of it that is nearest to 0. */
static int64_t seed_of(const RandomAttrs *a) {
    return a->seed > -1e15f && a->seed < 1e15f ? (int64_t)a->seed : 0;
}

/* The type that the attribute states, else that of operand 0. */
static bool drawn_type(OpCtx *c, int rank, const Dim *dims) {
    const RandomAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    if (a->dtype && (a->dtype < 0 || a->dtype > 1000 || !elem_known((int)a->dtype)))
        return op_error_attr(c, "dtype", "there is no element type %lld", (long long)a->dtype);
    if (a->dtype || x.kind == TYPE_TENSOR)
        c->out[0] = type_tensor(a->dtype ? (ElemType)a->dtype : type_real_elem(x), rank, dims);
    return true;
}

static bool like_infer(OpCtx *c) {
    Type x = op_type(c, 0);
    return drawn_type(c, x.kind == TYPE_TENSOR ? x.rank : -1, x.dims);
}

static bool shape_infer(OpCtx *c) {
    const RandomAttrs *a = c->attrs;
    Dim *dims = NEW_ARRAY(c->arena, Dim, a->shape.n + 1);
    for (size_t i = 0; i < a->shape.n; i++) {
        dims[i] = dim_of(a->shape.v[i]);
        if (a->shape.v[i] < 0)
            return op_error_attr(c, "shape", "dimension %zu is %lld", i, (long long)a->shape.v[i]);
    }
    return drawn_type(c, a->shape.n > MAX_RANK ? -1 : (int)a->shape.n, dims);
}

static bool uniform_bind(Binder *b, const Node *n, const OpCtx *c) {
    const RandomAttrs *a = c->attrs;
    ElemType e = bind_elem(n->out[0]);
    qk_random_uniform_params p = {
        .n = bind_count(n->out[0]), .seed = seed_of(a), .low = a->low, .high = a->high};
    return bind_call(b, n, bind_kernel(b, "random_uniform", 1, &e), &p, sizeof p, 2,
                     (int[]){bind_random_state(b), bind_value(b, n->out[0])});
}

static bool normal_bind(Binder *b, const Node *n, const OpCtx *c) {
    const RandomAttrs *a = c->attrs;
    ElemType e = bind_elem(n->out[0]);
    qk_random_normal_params p = {
        .n = bind_count(n->out[0]), .seed = seed_of(a), .mean = a->mean, .scale = a->scale};
    return bind_call(b, n, bind_kernel(b, "random_normal", 1, &e), &p, sizeof p, 2,
                     (int[]){bind_random_state(b), bind_value(b, n->out[0])});
}

#define UNIFORM SEED, A_FLOAT(RandomAttrs, low, 0), A_FLOAT(RandomAttrs, high, 1)
#define NORMAL  SEED, A_FLOAT(RandomAttrs, mean, 0), A_FLOAT(RandomAttrs, scale, 1)
#define SHAPED  A_INT(RandomAttrs, dtype, ELEM_FLOAT), A_INTS_REQUIRED(RandomAttrs, shape)

/* What is drawn is not folded: it is meant to differ from what was drawn before. */
#define RANDOM(op, distribution, shape_infer, ...)                                                 \
    static const AttrSpec op##_attrs[] = {__VA_ARGS__, A_END};                                     \
    const OpDef op_##op = {.domain = "",                                                           \
                           .name = #op,                                                            \
                           .stays = true,                                                          \
                           .attrs_size = sizeof(RandomAttrs),                                      \
                           .attrs = op##_attrs,                                                    \
                           .infer = shape_infer,                                                   \
                           .bind = distribution}

RANDOM(RandomUniform, uniform_bind, shape_infer, UNIFORM, SHAPED);
RANDOM(RandomNormal, normal_bind, shape_infer, NORMAL, SHAPED);
RANDOM(RandomUniformLike, uniform_bind, like_infer, UNIFORM, A_INT(RandomAttrs, dtype, 0));
RANDOM(RandomNormalLike, normal_bind, like_infer, NORMAL, A_INT(RandomAttrs, dtype, 0));

/* ---- Bernoulli ---- */

static bool bernoulli_bind(Binder *b, const Node *n, const OpCtx *c) {
    ElemType x = bind_elem(n->in[0]), y = bind_elem(n->out[0]);
    size_t count = (size_t)bind_count(n->in[0]);
    bool bytes = y == ELEM_UINT8 || y == ELEM_BOOL;
    if (bind_any_quant(n))
        return bind_unsupported(b, n, "its operand or result is quantized");
    int to = bind_value(b, n->out[0]), ones = bytes ? to : bind_temp(b, ELEM_UINT8, count);
    qk_bernoulli_params p = {.n = (int64_t)count, .seed = seed_of(c->attrs)};
    qk_cast_params cast = {.n = (int64_t)count};
    return bind_call(b, n, bind_kernel(b, "bernoulli", 1, &x), &p, sizeof p, 3,
                     (int[]){bind_value(b, n->in[0]), bind_random_state(b), ones}) &&
           (bytes || bind_call(b, n, bind_kernel(b, "cast", 2, (ElemType[]){ELEM_UINT8, y}), &cast,
                               sizeof cast, 2, (int[]){ones, to}));
}

RANDOM(Bernoulli, bernoulli_bind, like_infer, SEED, A_INT(RandomAttrs, dtype, 0));

/* ---- Multinomial ---- */

static bool multinomial_verify(const OpCtx *c) {
    const RandomAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    if (x.rank >= 0 && x.rank != 2)
        return op_error_in(c, 0, "input must have rank 2, not %d", x.rank);
    if (x.rank == 2 && x.dims[1].value == 0)
        return op_error_in(c, 0, "there is no class to draw");
    return op_number(c, "sample_size", a->sample_size);
}

static bool multinomial_infer(OpCtx *c) {
    const RandomAttrs *a = c->attrs;
    Dim *dims = NEW_ARRAY(c->arena, Dim, 2);
    dims[0] = op_type(c, 0).rank == 2 ? op_type(c, 0).dims[0] : dim_unknown();
    dims[1] = dim_of(a->sample_size);
    return drawn_type(c, 2, dims);
}

static bool multinomial_bind(Binder *b, const Node *n, const OpCtx *c) {
    const RandomAttrs *a = c->attrs;
    Type x = n->in[0]->type;
    ElemType types[] = {bind_elem(n->in[0]), bind_elem(n->out[0])};
    qk_multinomial_params p = {.batch = (int32_t)x.dims[0].value,
                               .classes = (int32_t)x.dims[1].value,
                               .samples = (int32_t)a->sample_size,
                               .seed = seed_of(a)};
    int state = bind_random_state(b), work = bind_scratch(b, ELEM_DOUBLE, (size_t)p.classes);
    return bind_call(b, n, bind_kernel(b, "multinomial", 2, types), &p, sizeof p, 4,
                     (int[]){bind_value(b, n->in[0]), state, work, bind_value(b, n->out[0])});
}

static const AttrSpec multinomial_attrs[] = {
    SEED,
    A_INT(RandomAttrs, dtype, ELEM_INT32),
    A_INT(RandomAttrs, sample_size, 1),
    A_END,
};

const OpDef op_Multinomial = {
    .domain = "",
    .name = "Multinomial",
    .stays = true,
    .attrs_size = sizeof(RandomAttrs),
    .attrs = multinomial_attrs,
    .verify = multinomial_verify,
    .infer = multinomial_infer,
    .bind = multinomial_bind,
};
