/* com.microsoft's FusedConv and FusedGemm, which onnxruntime's optimizer makes of Conv or Gemm, Add
 * and an activation, and leaves in the models that it saves, become these again. An activation that
 * is not known stays fused. */
#include "passes/enclose.h"
#include "passes/prepare/unfuse.h"
#include "passes/quant_build.h"

static const char PASS_NAME[] = "unfuse";

enum { B = 2, Z, MOST_PARAMS = 3 };

/* Names of an activation's attributes, in the order of its numbers. Clip's are operands. */
static const struct {
    const char *op, *attrs[MOST_PARAMS];
} activations[] = {
    {"Relu", {NULL}},
    {"Tanh", {NULL}},
    {"Sigmoid", {NULL}},
    {"LeakyRelu", {"alpha"}},
    {"HardSigmoid", {"alpha", "beta"}},
    {"Clip", {"min", "max"}},
};

typedef struct Fused {
    const char *product;
    size_t kind; /* index into activations */
    bool conv, active;
    float param[MOST_PARAMS];
    size_t n_params;
} Fused;

const char *fused_product(Str domain, Str op) {
    bool microsoft = str_is(domain, "com.microsoft");
    return microsoft && str_is(op, "FusedConv")   ? "Conv"
           : microsoft && str_is(op, "FusedGemm") ? "Gemm"
                                                  : NULL;
}

static void read_params(const Node *n, Fused *f) {
    static const char *const of_gemm[] = {"activation_alpha", "activation_beta",
                                          "activation_gamma"};
    const Attr *list = node_attr(n, "activation_params");
    for (size_t i = 0; i < MOST_PARAMS; i++) {
        bool given = f->conv ? list && list->kind == ATTR_FLOATS && list->n > i
                             : node_attr(n, of_gemm[i]) != NULL;
        if (!given)
            return;
        f->param[f->n_params++] = f->conv ? list->v.f[i] : node_float(n, of_gemm[i], 0);
    }
}

static bool find(const Node *n, Fused *f) {
    const char *product = fused_product(n->domain, n->op);
    const Attr *a = node_attr(n, "activation");
    size_t kinds = sizeof activations / sizeof *activations;
    if (!product || n->n_out != 1 || !n->out[0])
        return false;
    *f = (Fused){.product = product, .conv = strcmp(product, "Conv") == 0};
    f->active = a && a->kind == ATTR_STRING && a->v.s[0].n;
    for (; f->active && f->kind < kinds; f->kind++)
        if (str_is(a->v.s[0], activations[f->kind].op))
            break;
    if (f->active && f->kind == kinds)
        return false;
    read_params(n, f);
    return true;
}

/* `to` computes what `last` did, from its result; returns `to`. */
static Node *follow(QuantBuild *b, Node *last, Node *to, const char *suffix) {
    Value *y = last->out[0];
    Type between = y->type.kind == TYPE_TENSOR ? real_type(y->type) : y->type;
    node_follow(last, 0, to, derived_name(b, y->name, suffix), between);
    return to;
}

static void state_activation(QuantBuild *b, Node *n, const Fused *f) {
    const char *const *attrs = activations[f->kind].attrs;
    bool operands = str_is(n->op, "Clip") && b->opset >= 11;
    for (size_t i = 0; i < f->n_params && attrs[i]; i++)
        if (operands)
            set_operand(n, i + 1,
                        build_float(b, n->out[0]->name, i ? "_max" : "_min", f->param[i]));
        else
            node_set_float(n, attrs[i], f->param[i]);
}

static void take_apart(QuantBuild *b, Node *n, const Fused *f) {
    static const char *const own[] = {"activation", "activation_params", "activation_alpha",
                                      "activation_beta", "activation_gamma"};
    Value *added = f->conv ? node_input(n, Z) : NULL;
    Node *last = n;
    name_call(n);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        node_drop_attr(n, own[i]);
    n->n_in = n->n_in > Z ? Z : n->n_in;
    if (n->n_in == Z && !n->in[B])
        n->n_in = B;
    if (added) {
        last = follow(b, last, build_node(b, n, "Add", STR_NONE, OPERANDS(n->out[0], added)),
                      "_product");
    }
    if (f->active) {
        Node *a = build_node(b, last, activations[f->kind].op, STR_NONE, OPERANDS(last->out[0]));
        last = follow(b, last, a, added ? "_sum" : "_product");
        state_activation(b, a, f);
    }
    n->domain = STR_NONE; /* the others remember what it was */
    n->op = str_from(f->product);
    for (Node *made = n; made; made = made == last ? NULL : made->next)
        op_resolve(made, b->d);
}

static void unfuse_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g) {
        Fused f;
        if (find(n, &f))
            take_apart(ctx, n, &f);
    }
}

static void look(Graph *g, void *ctx) {
    bool *any = ctx;
    Fused f;
    FOR_NODES(n, g)
    *any |= find(n, &f);
}

bool pass_unfuse(Module *m, PassContext *c) {
    bool any = false;
    module_each_graph(m, look, &any);
    if (!any)
        return true;
    QuantBuild b = quant_build_new(m, c, PASS_NAME);
    b.opset = module_opset(m, STR(""));
    module_each_graph(m, unfuse_graph, &b);
    return true;
}
