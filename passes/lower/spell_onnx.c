/* com.microsoft's operators that are still there when all else is done are spelled with those of
 * ONNX, and what has no such spelling is refused by name: for targets that have no others. By now
 * everything that is no integer operator computes in float, so a spelling costs no accuracy.
 *
 * Gelu, LayerNormalization and their kin are chains of operators below the opset that has them. */
#include <math.h>

#include "ir/onnx_schema.h"
#include "passes/edit.h"
#include "passes/expand.h"
#include "passes/split_products.h"

typedef struct Spelling {
    const char *op;
    void (*spell)(Expand *e);
} Spelling;

static Value *number(Expand *e, double v) {
    return expand_number(e, "_number", v);
}

/* The last axis, as ReduceMean takes it. */
static Value *mean_of(Expand *e, Value *x) {
    int64_t last = -1;
    return e->b.opset < 18 ? expand_ints(e, "ReduceMean", x, "axes", &last, 1)
                           : expand(e, "ReduceMean", x, expand_list(e, "_axis", &last, 1));
}

/* ---- activations ---- */

/* x / 2 * (1 + erf(x / sqrt 2)) */
static Value *gelu(Expand *e, Value *x) {
    if (e->b.opset >= 20)
        return expand(e, "Gelu", x);
    Value *y = expand(e, "Erf", expand(e, "Mul", x, number(e, M_SQRT1_2)));
    y = expand(e, "Mul", x, expand(e, "Add", y, number(e, 1)));
    return expand(e, "Mul", y, number(e, 0.5));
}

static void spell_gelu(Expand *e) {
    expand_yield(e, 0, gelu(e, e->n->in[0]));
}

static void spell_bias_gelu(Expand *e) {
    expand_yield(e, 0, gelu(e, expand(e, "Add", e->n->in[0], e->n->in[1])));
}

/* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) */
static void spell_fast_gelu(Expand *e) {
    Value *x = e->n->in[0], *bias = node_input(e->n, 1);
    if (bias)
        x = expand(e, "Add", x, bias);
    Value *y = expand(e, "Mul", expand(e, "Mul", x, x), number(e, 0.044715));
    y = expand(e, "Mul", x, expand(e, "Add", y, number(e, 1)));
    y = expand(e, "Tanh", expand(e, "Mul", y, number(e, M_2_SQRTPI * M_SQRT1_2)));
    y = expand(e, "Mul", x, expand(e, "Add", y, number(e, 1)));
    expand_yield(e, 0, expand(e, "Mul", y, number(e, 0.5)));
}

static void spell_quick_gelu(Expand *e) {
    Value *x = e->n->in[0];
    double alpha = (double)node_float(e->n, "alpha", 1.702f);
    Value *y = expand(e, "Sigmoid", expand(e, "Mul", x, number(e, alpha)));
    expand_yield(e, 0, expand(e, "Mul", x, y));
}

/* ---- normalization of the last axis ---- */

/* x over the root of the mean of its squares. `spread`: which result is 1 over that root. */
static Value *scaled(Expand *e, Value *x, size_t spread) {
    double epsilon = (double)node_float(e->n, "epsilon", 1e-12f);
    Value *y = mean_of(e, expand(e, "Mul", x, x));
    y = expand(e, "Sqrt", expand(e, "Add", y, number(e, epsilon)));
    if (expand_has_result(e, spread))
        expand_yield(e, spread, expand(e, "Reciprocal", y));
    return expand(e, "Div", x, y);
}

enum { MEAN = 1, SPREAD };

static Value *layer_norm(Expand *e, Value *x, Value *gamma, Value *beta, bool stats) {
    if (e->b.opset >= 17 && !stats) {
        Value *y = beta ? expand(e, "LayerNormalization", x, gamma, beta)
                        : expand(e, "LayerNormalization", x, gamma);
        node_set_float(y->def, "epsilon", node_float(e->n, "epsilon", 1e-12f));
        op_resolve(y->def, e->b.d);
        return y;
    }
    Value *mean = mean_of(e, x);
    if (stats && expand_has_result(e, MEAN))
        mean = expand_yield(e, MEAN, mean);
    Value *y = scaled(e, expand(e, "Sub", x, mean), stats ? SPREAD : SIZE_MAX);
    y = expand(e, "Mul", y, gamma);
    return beta ? expand(e, "Add", y, beta) : y;
}

enum { INPUT, SKIP, GAMMA, BETA, SKIP_BIAS };
enum { SUM = 3 };

static Value *sum_of(Expand *e, size_t bias) {
    Value *x = expand(e, "Add", e->n->in[INPUT], e->n->in[SKIP]), *b = node_input(e->n, bias);
    if (b)
        x = expand(e, "Add", x, b);
    return expand_has_result(e, SUM) ? expand_yield(e, SUM, x) : x;
}

static bool has_stats(const Expand *e) {
    return expand_has_result(e, MEAN) || expand_has_result(e, SPREAD);
}

static void spell_skip(Expand *e) {
    Value *x = sum_of(e, SKIP_BIAS);
    expand_yield(e, 0, layer_norm(e, x, e->n->in[GAMMA], node_input(e->n, BETA), has_stats(e)));
}

/* It has no beta: the bias stands in its place. */
static void spell_skip_simplified(Expand *e) {
    Value *y = scaled(e, sum_of(e, BETA), SPREAD);
    expand_yield(e, 0, expand(e, "Mul", y, e->n->in[GAMMA]));
}

/* ---- EmbedLayerNormalization ---- */

enum { IDS, SEGMENT_IDS, WORD, POSITION, SEGMENT, EMBED_GAMMA, EMBED_BETA, MASK, POSITION_IDS };
enum { MASK_INDEX = 1, EMBED_SUM };

/* One number of the shape of the ids, as a list. */
static Value *extent(Expand *e, int64_t axis) {
    Value *shape = expand(e, "Shape", e->n->in[IDS]), *index = expand_list(e, "_index", &axis, 1);
    return expand_int(e, "Gather", shape, index, "axis", 0);
}

/* Without ids of positions these are 0, 1, ... */
static Value *place_rows(Expand *e) {
    Value *table = e->n->in[POSITION], *ids = node_input(e->n, POSITION_IDS);
    int64_t first = 0;
    return ids ? expand(e, "Gather", table, ids)
               : expand(e, "Slice", table, expand_list(e, "_first", &first, 1), extent(e, 1));
}

/* How many tokens of each row count. */
static Value *mask_index(Expand *e) {
    Value *mask = node_input(e->n, MASK);
    int64_t axis = 1;
    if (!mask)
        return expand(e, "Expand", build_int(&e->b, e->base, "_none", ELEM_INT32, 0), extent(e, 0));
    Value *one = build_int(&e->b, e->base, "_one", ELEM_INT32, 1);
    mask = expand_int(e, "Cast", expand(e, "Equal", mask, one), NULL, "to", ELEM_INT32);
    mask = expand(e, "ReduceSum", mask, expand_list(e, "_tokens", &axis, 1));
    return expand(e, "Reshape", mask, extent(e, 0));
}

static void spell_embed(Expand *e) {
    Node *n = e->n;
    e->elem = type_real_elem(n->in[WORD]->type);
    Value *x = expand(e, "Add", expand(e, "Gather", n->in[WORD], n->in[IDS]), place_rows(e));
    if (node_input(n, SEGMENT_IDS))
        x = expand(e, "Add", x, expand(e, "Gather", n->in[SEGMENT], n->in[SEGMENT_IDS]));
    if (expand_has_result(e, EMBED_SUM))
        x = expand_yield(e, EMBED_SUM, x);
    if (expand_has_result(e, MASK_INDEX))
        expand_yield(e, MASK_INDEX, mask_index(e));
    expand_yield(e, 0, layer_norm(e, x, n->in[EMBED_GAMMA], n->in[EMBED_BETA], false));
}

/* ---- the pass ---- */

static const Spelling spellings[] = {
    {"Gelu", spell_gelu},
    {"BiasGelu", spell_bias_gelu},
    {"FastGelu", spell_fast_gelu},
    {"QuickGelu", spell_quick_gelu},
    {"SkipLayerNormalization", spell_skip},
    {"SkipSimplifiedLayerNormalization", spell_skip_simplified},
    {"EmbedLayerNormalization", spell_embed},
};

typedef struct Spell {
    Expand e;
    PassContext *c;
    Map *refused; /* by operator: each is named once */
    bool ok;
} Spell;

/* Of a row of ours: ranks and operands have been held against the operator's laws. */
static const Spelling *spelling_of(const Node *n) {
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (n->def && node_is_in(n, "com.microsoft", spellings[i].op))
            return &spellings[i];
    return NULL;
}

/* ONNX's own two sets of operators. TensorRT's plug-ins are operators of other domains. */
static bool is_allowed(const Node *n, Target t) {
    int64_t opset = module_opset(n->graph->module, n->domain);
    if (!domain_is_onnx(n->domain))
        return str_is(n->domain, "ai.onnx.ml") ||
               (t == TARGET_TENSORRT && !str_is(n->domain, "com.microsoft"));
    return onnx_schema_find(n->domain, n->op, (int)opset);
}

static void refuse(Spell *s, const Node *n) {
    Buf key = buf_new(n->graph->module->arena);
    const char *why = holds_products(n) ? split_refusal(n) : NULL;
    Str name = function_key(&key, n->domain, n->op, STR_NONE);
    s->ok = false;
    if (!map_set(s->refused, name, s))
        return;
    diag_error(s->c->d, n->loc,
               "operator %s%s%s is none of ONNX's, and -target=%s has no others%s%s; "
               "-target=ort-cpu takes it",
               diag_name(s->c->d, n->domain), n->domain.n ? "::" : "", diag_name(s->c->d, n->op),
               s->c->target == TARGET_TENSORRT ? "tensorrt"
               : s->c->target == TARGET_AIDGE  ? "aidge"
                                               : "onnx",
               why ? ": " : "", why ? why : "");
}

static void spell_graph(Graph *g, void *ctx) {
    Spell *s = ctx;
    FOR_NODES(n, g) {
        const Spelling *to = spelling_of(n);
        if (to && !expand_fits(&s->e, n)) {
            s->ok = false;
        } else if (to) {
            expand_at(&s->e, n);
            to->spell(&s->e);
            expand_end(&s->e);
        } else if (!is_allowed(n, s->c->target)) {
            refuse(s, n);
        }
    }
}

/* The import of operators that are gone. */
static void forget_import(Module *m, Str domain) {
    size_t kept = 0;
    for (size_t i = 0; i < m->n_imports; i++)
        if (!str_eq(m->imports[i].domain, domain))
            m->imports[kept++] = m->imports[i];
    m->n_imports = kept;
}

bool pass_spell_onnx(Module *m, PassContext *c) {
    Spell s = {expand_new(m, c, "spell-onnx"), c, map_new(m->arena), true};
    if (!pass_split_products(m, c))
        return false;
    module_each_graph(m, spell_graph, &s);
    if (s.ok)
        forget_import(m, STR("com.microsoft"));
    return s.ok;
}
