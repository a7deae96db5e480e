#include "passes/quantize/tied.h"

#include "passes/edit.h"
#include "passes/quantize/choice.h"

int tied_axis(const Node *product, size_t at, Diags *d) {
    const QuantRule *r = product->def ? &product->def->quant : NULL;
    const Tensor *t = at < product->n_in ? edit_float_const(product->in[at]) : NULL;
    if (!r || r->kind != QUANT_MAC || at != (size_t)r->mac.weight || !t || t->rank != 2)
        return -1;
    OpCtx c = op_ctx(product, d);
    return quant_weight_axis(r, &c);
}

bool tied_looks_up(const Node *n, const Value *table, int axis) {
    if (!n || !n->def || n->def->quant.kind != QUANT_MOVE || !n->def->quant.move.looks_up ||
        n->n_in != 2 || n->in[0] != table || n->in[1] == table || n->n_out != 1 || !n->out[0] ||
        !edit_float_const(table) || table->data->rank != 2)
        return false;
    OpCtx c = op_ctx(n, NULL);
    const MoveRule *r = &n->def->quant.move;
    return axis >= 0 && r->axis(&c, axis) < 0 && r->axis(&c, 1 - axis) >= 0;
}

const char *tied_refusal(const PassContext *c, const Node *look, const Value *table,
                         const Node *product, const Value *weights) {
    if (choice_why_kept(c, look) || choice_why_kept(c, product))
        return "the table or the product stays float as asked";
    Choice a = choice_of_weight(c, look, table), b = choice_of_weight(c, product, weights);
    if (a.is_float || b.is_float)
        return "the table or the weights stay float as asked";
    bool same = choice_equal(&a, &b) && a.channel == b.channel && a.block == b.block;
    for (int p = 0; p < CHOICE_PROPERTIES && !same; p++)
        if (choice_said(&a, (ChoiceProperty)p))
            return "rules say another type of the table than of the weights";
    return NULL;
}
