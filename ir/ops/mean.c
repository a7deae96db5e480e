/* Mean: the sum of any number of operands, divided by their number. From opset 8 they broadcast. */
#include "ir/ops/bind.h"

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    const Value *y = n->out[0];
    Type so_far = n->in[0]->type;
    ElemType e = bind_real(b);
    int sum = bind_value(b, n->in[0]);
    if (!bind_floats_only(b, n))
        return false;
    for (size_t i = 1; i < n->n_in; i++) {
        int to = bind_temp(b, ELEM_FLOAT, (size_t)bind_count(y));
        if (!bind_binary(b, n, "add", e, bind_broadcast(so_far, n->in[i]->type, y->type),
                         (int[]){sum, bind_value(b, n->in[i]), to}))
            return false;
        sum = to;
        so_far = y->type;
    }
    double count = (double)n->n_in;
    return bind_binary(b, n, "div", e, bind_broadcast(so_far, type_tensor(e, 0, NULL), y->type),
                       (int[]){sum, bind_reals(b, 1, &count, "count"), bind_value(b, y)});
}

const OpDef op_Mean = {.domain = "", .name = "Mean", .infer = op_broadcast, .bind = bind};
