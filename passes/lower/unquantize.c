/* The float model behind a quantized one: every value is the real number that it stands for, and
 * nothing is rounded. Constants keep the numbers of their integers, which is all that is left of
 * the weights that the model was made from. What integers cut off at their ends is written before
 * (write-cuts). */
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/quant_build.h"

static const char PASS_NAME[] = "unquantize";

typedef struct Unquantize {
    Module *m;
    PassContext *c;
    QuantBuild b;
    bool ok;
} Unquantize;

/* ---- values and conversions ---- */

static void make_real(Value *v, void *ctx) {
    Unquantize *u = ctx;
    Type t = v->type;
    if (t.kind != TYPE_TENSOR || !t.quant || (t.tilde && !elem_is_float(t.elem)))
        return;
    if (v->data && type_is_quantized(t))
        v->data = const_dequantize(u->m->arena, v->data, t.quant);
    v->type = real_type(t);
    v->stated = NULL;
}

/* Integers of one scale that are read as those of another: a factor. */
static void multiply(Unquantize *u, Node *n) {
    const Quant *x = n->in[0]->type.quant, *y = n->out[0]->type.quant;
    bool factor = x && y && quant_is_per_tensor(x) && quant_is_per_tensor(y) &&
                  x->kind == QUANT_PARAMS && y->kind == QUANT_PARAMS &&
                  quant_zp(x, 0) == quant_zp(y, 0);
    if (!factor) {
        u->ok = diag_error(u->c->d, n->loc,
                           "integers are read as those of another zero point or "
                           "of other axes here, which is no factor");
        return;
    }
    float by = (float)((double)quant_scale(y, 0) / (double)quant_scale(x, 0));
    edit_pass_on(n, PASS_NAME, u->c->d);
    n->op = STR("Mul");
    node_add_input(n, build_float(&u->b, n->out[0]->name, "_factor", by));
    op_resolve(n, u->c->d);
}

static void look_at_nodes(Graph *g, void *ctx) {
    Unquantize *u = ctx;
    FOR_NODES(n, g) {
        if (is_reinterpret(n))
            multiply(u, n);
        else if (is_typed_quantize(n) || is_typed_dequantize(n) || is_requantize(n))
            edit_pass_on(n, PASS_NAME, u->c->d);
        else if (node_conversion(n) != CONVERT_NONE || qop_find(n->domain, n->op))
            u->ok =
                diag_error(u->c->d, n->loc,
                           "%s cannot become float: no type says what it quantizes", node_text(n));
    }
}

bool pass_unquantize(Module *m, PassContext *c) {
    Unquantize u = {.m = m, .c = c, .b = quant_build_new(m, c, PASS_NAME), .ok = true};
    module_each_graph(m, look_at_nodes, &u);
    module_each_value(m, make_real, &u);
    drop_unused_quants(m);
    return u.ok;
}
