/* Rules `bias float`: the bias of Conv, ConvTranspose and Gemm becomes an Add of its own behind the
 * product, in float. decide then leaves the product's result float. */
#include "passes/quantize/choice.h"
#include "passes/edit.h"

static const char PASS_NAME[] = "split-bias";

typedef struct Split {
    PassContext *c;
    UniqueNames *names;
} Split;

/* Times beta; [channels, 1, 1] where windows follow the channels. */
static Value *addend(const Split *s, const Node *n, const Value *b, int window) {
    int64_t dims[MAX_RANK] = {0};
    int rank = b->data->rank;
    float beta = node_float(n, n->def->quant.mac.bias_factor, 1.0F), *out;
    memcpy(dims, b->data->dims, (size_t)rank * sizeof *dims);
    for (int i = 0; i < window; i++)
        dims[rank++] = 1;
    Value *v = edit_new_floats(n->graph, s->names, b->name, rank, dims, &out);
    for (size_t i = 0; i < b->data->count; i++)
        out[i] = beta * (float)tensor_float(b->data, i);
    value_from(v, b, PASS_NAME);
    v->loc = b->loc;
    return v;
}

/* Why the bias cannot stand apart, or NULL. */
static const char *refusal(const Node *n, int window) {
    const Value *b = n->in[n->def->quant.mac.bias];
    if (!edit_float_const(b))
        return "its bias is to stay float, but is no float constant";
    if (n->out[0]->type.quant)
        return "its bias is to stay float, but its result is quantized already";
    return window < 0 || b->data->rank + window > MAX_RANK
               ? "its bias is to stay float, but the shape of its weights is not known"
               : NULL;
}

static void split(const Split *s, Node *n) {
    size_t at = (size_t)n->def->quant.mac.bias;
    Arena *a = n->graph->module->arena;
    Value *y = n->out[0];
    int window = n->in[n->def->quant.mac.weight]->type.rank - 2;
    const char *why = refusal(n, window);
    if (why) {
        pass_remark(s->c, n, "%s", why);
        return;
    }
    Node *add = node_new(n->graph, STR_NONE, STR("Add"), 2, 1);
    node_from(add, n, PASS_NAME);
    add->in[1] = addend(s, n, n->in[at], window);
    n->n_in = at;
    node_drop_attr(n, n->def->quant.mac.bias_factor ? n->def->quant.mac.bias_factor : "");
    Str product = unique_name(s->names, arena_strf(a, STR_FMT "_product", STR_ARG(y->name)));
    node_follow(n, 0, add, product, y->type);
    op_resolve(n, s->c->d);
    op_resolve(add, s->c->d);
}

static void split_graph(Graph *g, void *ctx) {
    const Split *s = ctx;
    FOR_NODES(n, g) {
        const QuantRule *r = n->def ? &n->def->quant : NULL;
        if (r && r->kind == QUANT_MAC && r->mac.bias && n->n_in == (size_t)r->mac.bias + 1 &&
            n->in[r->mac.bias] && n->n_out == 1 && n->out[0] && !choice_why_kept(s->c, n) &&
            choice_float_bias(s->c, n))
            split(s, n);
    }
}

bool pass_split_bias(Module *m, PassContext *c) {
    Split s = {c, unique_names_new(m)};
    module_each_graph(m, split_graph, &s);
    edit_sweep(m);
    return true;
}
