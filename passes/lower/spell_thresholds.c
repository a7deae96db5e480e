/* QONNX's MultiThreshold with ONNX's operators, for runtimes that have no other:
 *
 *   ReduceSum(Cast(GreaterOrEqual(x[..., new], thresholds))) * out_scale + out_bias
 *
 * where a bias that is a multiple of the scale is added before the product, as that rounds once.
 *
 * As many numbers as there are thresholds stand there for each of x on the way: qxc itself runs the
 * operator, and so does emitted C. */
#include <math.h>

#include "ir/ops/multithreshold.h"
#include "passes/edit.h"
#include "passes/quant_build.h"

typedef struct Spell {
    QuantBuild b;
    Node *n;
    bool ok;
} Spell;

/* From where on axes are operands, and >= compares. */
enum { MIN_OPSET = 13 };

/* With an integer attribute, where `attr` is one. */
static Value *make(Spell *s, const char *op, Value *x, Value *y, Type t, const char *attr,
                   int64_t value) {
    Str name = arena_strf(s->b.a, STR_FMT "_%s", STR_ARG(s->n->out[0]->name), op);
    Node *to = build_node(&s->b, s->n, op, name, OPERANDS(x, y));
    if (attr)
        node_set_int(to, attr, value);
    return build_before(&s->b, s->n, to, name, "_Output", t);
}

/* [channels, n], with the dimensions between where the channels are not the last of x. */
static Value *rows(Spell *s, int axis, int rank) {
    Value *t = s->n->in[1];
    if (axis == rank - 1)
        return t;
    int64_t last = rank - axis - 1, dims[MAX_RANK];
    for (int64_t i = 0; i < last; i++)
        dims[i] = i + 1;
    Value *axes = build_const(&s->b, s->n->out[0]->name, "_between", ELEM_INT64, 1, &last, dims);
    return make(s, "Unsqueeze", t, axes, type_tensor(ELEM_FLOAT, -1, NULL), NULL, 0);
}

static void spell(Spell *s, Node *n) {
    Type x = n->in[0]->type, open = type_tensor(ELEM_FLOAT, -1, NULL), mask = open;
    float scale = node_float(n, "out_scale", 1), bias = node_float(n, "out_bias", 0);
    mask.elem = ELEM_BOOL;
    int64_t one = 1, behind = -1;
    s->n = n;
    Value *last = build_const(&s->b, n->out[0]->name, "_last", ELEM_INT64, 1, &one, &behind);
    Value *v = make(s, "Unsqueeze", n->in[0], last, open, NULL, 0);
    v = make(s, "GreaterOrEqual", v, rows(s, multithreshold_axis(n), x.rank), mask, NULL, 0);
    v = make(s, "Cast", v, NULL, open, "to", ELEM_FLOAT);
    v = make(s, "ReduceSum", v, last, x, "keepdims", 0);
    float steps = rintf(bias / scale);
    bool first = steps * scale == bias;
    v = make(s, first ? "Add" : "Mul", v,
             build_float(&s->b, n->out[0]->name, "_first", first ? steps : scale), x, NULL, 0);
    node_becomes(n, s->b.pass);
    n->domain = STR_NONE;
    n->op = str_from(first ? "Mul" : "Add");
    n->n_attrs = 0;
    n->in[0] = v;
    n->in[1] = build_float(&s->b, n->out[0]->name, "_then", first ? scale : bias);
    op_resolve(n, s->b.d);
}

static void spell_graph(Graph *g, void *ctx) {
    Spell *s = ctx;
    int64_t opset = module_opset(g->module, STR(""));
    FOR_NODES(n, g) {
        if (!n->def || !str_is(n->op, "MultiThreshold") || n->in[0]->type.kind != TYPE_TENSOR ||
            n->in[0]->type.rank < 2 || n->in[0]->type.elem != ELEM_FLOAT)
            continue;
        if (opset >= MIN_OPSET)
            spell(s, n);
        else
            s->ok = diag_error(s->b.d, n->loc,
                               "%s: ONNX has operators for it from opset %d on, not in %lld",
                               node_text(n), MIN_OPSET, (long long)opset);
    }
}

bool pass_spell_thresholds(Module *m, PassContext *c) {
    Spell s = {.b = quant_build_new(m, c, "spell-thresholds"), .ok = true};
    module_each_graph(m, spell_graph, &s);
    return s.ok;
}
