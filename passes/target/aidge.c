#include "passes/target/aidge.h"

#include <string.h>

static const char *const operators[] = {
#include "passes/target/aidge_ops.def"
};

static const char *refusal(const Quant *q) {
    int bits = elem_bits(q->storage);
    if (q->kind != QUANT_PARAMS || q->expressed != ELEM_FLOAT)
        return "Aidge quantizes float";
    if (!quant_is_per_tensor(q))
        return "Aidge reads one scale for all of it (-per-tensor)";
    return bits == 4 || bits == 8 || bits == 16 || bits == 32 ? NULL
                                                              : "Aidge reads 4, 8 and 16 bits";
}

typedef struct Check {
    PassContext *c;
    Map *told; /* operators */
    bool ok;
} Check;

static void check_value(Value *v, void *ctx) {
    Check *c = ctx;
    const Quant *q = v->type.kind == TYPE_TENSOR ? v->type.quant : NULL;
    const char *why = q ? refusal(q) : NULL;
    if (why)
        c->ok = diag_error(c->c->d, v->loc, "'%s' is quantized to %s%s: %s",
                           diag_name(c->c->d, v->name), elem_name(q->storage),
                           q->n_axes ? ", scales along an axis" : "", why);
}

static bool is_read(const Node *n) {
    if (str_is(n->domain, "qxc")) /* ours, lowered to Q and DQ */
        return true;
    for (size_t i = 0; domain_is_onnx(n->domain) && i < sizeof operators / sizeof *operators; i++)
        if (str_is(n->op, operators[i]))
            return true;
    return false;
}

static void check_graph(Graph *g, void *ctx) {
    Check *c = ctx;
    FOR_NODES(n, g) {
        if (is_read(n) || !map_set(c->told, n->op, n))
            continue;
        c->ok = diag_error(
            c->c->d, n->loc, "aidge_onnx has no converter for %s%s%s, so Aidge cannot run it",
            diag_name(c->c->d, n->domain), n->domain.n ? "::" : "", diag_name(c->c->d, n->op));
    }
}

bool aidge_check(Module *m, PassContext *c) {
    Check check = {c, map_new(m->scratch), true};
    module_each_value(m, check_value, &check);
    module_each_graph(m, check_graph, &check);
    return check.ok;
}
